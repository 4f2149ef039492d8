package doctor

import (
	"fmt"

	"evenkeel/collectives"
	"evenkeel/collectives/measure"
	"evenkeel/runtime/fabric"
	fabricshm "evenkeel/runtime/fabric/shm"
	"evenkeel/runtime/fabric/udp"
	"evenkeel/runtime/job"
)

// measureNetwork measures what messages cost between two tasks of this machine: in
// shared memory, and over UDP as to another host.
func (m Machine) measureNetwork() (collectives.Network, error) {
	within, err := measure.Pair(func(meeting fabric.Meeting) (fabric.Fabric, error) {
		return fabricshm.Join(meeting, fabricshm.Options{Directory: m.path(job.SegmentDir)})
	})
	if err != nil {
		return collectives.Network{}, err
	}
	between, err := measure.Pair(func(meeting fabric.Meeting) (fabric.Fabric, error) {
		return udp.Join(meeting, udp.Options{Address: "127.0.0.1"})
	})
	return collectives.Network{Within: within, Between: between}, err
}

// schedules shows the parameters of the cost model, and what it chooses.
func (m Machine) schedules() []Finding {
	f := Finding{Status: OK, Subject: "schedules",
		Why: "Who passes a broadcast on to whom is chosen from what messages cost, which is measured when a job starts."}
	n, err := m.network()
	if err != nil {
		f.Status = Warn
		f.What = fmt.Sprintf("What messages cost can't be measured: %v.", err)
		f.Fix = "See what is said of /dev/shm; let programs use UDP on the loopback device (ip link set lo up)."
		return []Finding{f}
	}
	const nodes, each = 8, 8
	s, cost := n.Choose(collectives.Load{Bytes: 64, Receivers: nodes*each - 1, Nodes: nodes, Fullest: each})
	f.What = fmt.Sprintf("Shared memory: %s. UDP on this machine: %s. If hosts were as far as that, 64 bytes would reach %d tasks on %d nodes in %.1f µs: %s.",
		describeLink(n.Within), describeLink(n.Between), nodes*each, nodes, cost/1000, s)
	return []Finding{f}
}

func describeLink(l collectives.Link) string {
	return fmt.Sprintf("latency %.2f µs, overhead %.2f µs, gap %.2f µs, %.3f ns a byte", l.Latency/1000, l.Overhead/1000, l.Gap/1000, l.PerByte)
}
