package doctor

import (
	"fmt"
	"strings"

	"evenkeel/collectives"
	"evenkeel/collectives/measure"
	"evenkeel/runtime/config"
	"evenkeel/runtime/fabric"
	fabricshm "evenkeel/runtime/fabric/shm"
	"evenkeel/runtime/fabric/udp"
	"evenkeel/runtime/job"
)

// measureNear measures what messages cost between two tasks of this machine in shared memory.
func (m Machine) measureNear() (collectives.Link, error) {
	return measure.Pair(func(meeting fabric.Meeting) (fabric.Fabric, error) {
		return fabricshm.Join(meeting, fabricshm.Options{Directory: m.path(job.SegmentDir)})
	})
}

// measureUDP measures what they cost over UDP, as to another host.
func measureUDP() (collectives.Link, error) {
	return measure.Pair(func(meeting fabric.Meeting) (fabric.Fabric, error) {
		return udp.Join(meeting, udp.Options{Address: "127.0.0.1"})
	})
}

// schedules shows the parameters of the cost model for the fabrics that are in use, and what it chooses.
func (m Machine) schedules() []Finding {
	f := Finding{Status: OK, Subject: "schedules",
		Why: "Who passes a broadcast on to whom is chosen from what messages cost, which is measured when a job starts."}
	settings, _ := config.Load(m.Environ)
	near, udp := settings.FabricNode(), settings.Fabric() != "mpi"
	var n collectives.Network
	var said []string
	var err error
	if near {
		n.Within, err = m.near()
		said = append(said, fmt.Sprintf("Shared memory: %s.", describeLink(n.Within)))
	}
	if udp && err == nil {
		n.Between, err = m.udp()
		said = append(said, fmt.Sprintf("UDP on this machine: %s.", describeLink(n.Between)))
	}
	if err != nil {
		f.Status = Warn
		f.What = fmt.Sprintf("What messages cost can't be measured: %v.", err)
		f.Fix = "See what is said of /dev/shm; let programs use UDP on the loopback device (ip link set lo up)."
		return []Finding{f}
	}
	if !near {
		n.Within = n.Between
	}
	if udp {
		const nodes, each = 8, 8
		s, cost := n.Choose(collectives.Load{Bytes: 64, Receivers: nodes*each - 1, Nodes: nodes, Fullest: each})
		said = append(said, fmt.Sprintf("If hosts were as far as that, 64 bytes would reach %d tasks on %d nodes in %.1f µs: %s.", nodes*each, nodes, cost/1000, s))
	} else {
		said = append(said, "What messages cost through MPI (EVENKEEL_FABRIC=mpi) only a job can tell.")
	}
	f.What = strings.Join(said, " ")
	return []Finding{f}
}

func describeLink(l collectives.Link) string {
	return fmt.Sprintf("latency %.2f µs, overhead %.2f µs, gap %.2f µs, %.3f ns a byte", l.Latency/1000, l.Overhead/1000, l.Gap/1000, l.PerByte)
}
