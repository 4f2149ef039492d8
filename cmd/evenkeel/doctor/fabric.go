package doctor

import (
	"fmt"
	"strconv"
	"strings"

	"evenkeel/runtime/config"
)

// socketBuffer is what the UDP fabric asks the kernel for (udp.Options.Buffer).
const socketBuffer = 4 * megabyte

// fabric tells by which networks tasks reach each other's memory.
func (m Machine) fabric() []Finding {
	settings, _ := config.Load(m.Environ)
	f := Finding{Status: OK, Subject: "fabric", Why: "Tasks reach each other's memory by it (global shared memory)."}
	where := "On a node through shared memory, between nodes"
	if !settings.FabricNode() {
		where = "On a node and between nodes"
	}
	if settings.Fabric() == "mpi" {
		f.What = where + " through MPI (EVENKEEL_FABRIC=mpi), in programs that start it with MPI_THREAD_MULTIPLE."
		return []Finding{f}
	}
	addresses, err := m.addresses(settings.UdpAddress())
	if err != nil {
		f.Status = Warn
		f.What = fmt.Sprintf("UDP can't be used between nodes: %v.", err)
		f.Fix = "Have EVENKEEL_UDP_ADDRESS name an interface or addresses that this host has, or set EVENKEEL_FABRIC=mpi."
		return []Finding{f}
	}
	var names []string
	outside := false
	for _, a := range addresses {
		names = append(names, a.Addr().String())
		outside = outside || !a.Addr().IsLoopback()
	}
	f.What = fmt.Sprintf("%s over UDP (EVENKEEL_FABRIC=%s), at %s.", where, settings.Fabric(), strings.Join(names, ", "))
	if !outside {
		f.What += " No other node reaches these."
	}
	limit, err := strconv.Atoi(m.read("/proc/sys/net/core/rmem_max"))
	if m.uid != 0 && err == nil && limit < socketBuffer {
		f.Status = Warn
		f.What += fmt.Sprintf(" Sockets get room for %d kB, and want %d kB.", limit>>10, socketBuffer>>10)
		f.Why = "What arrives while a task computes has to wait there, or is lost and sent again."
		f.Fix = fmt.Sprintf("sysctl -w net.core.rmem_max=%d net.core.wmem_max=%[1]d", socketBuffer)
	}
	return []Finding{f}
}
