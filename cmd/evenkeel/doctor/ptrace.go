package doctor

import "fmt"

// singleCopy tells whether ranks of a node may read each other's memory, by
// which Open MPI moves large messages in one copy. It lets others do so where
// the kernel leaves that to each process (scope 1).
func (m Machine) singleCopy() []Finding {
	f := Finding{Status: OK, Subject: "single copy", What: "Ranks of a node may copy large messages straight out of each other's memory.",
		Why: "Otherwise Open MPI copies them twice and needs the sender's help, and evenkeel leaves large sends to it."}
	if scope := m.read("/proc/sys/kernel/yama/ptrace_scope"); scope > "1" && m.uid != 0 {
		f.Status = Warn
		f.What = fmt.Sprintf("The kernel forbids processes to read each other's memory (kernel.yama.ptrace_scope is %s).", scope)
		f.Fix = "sysctl -w kernel.yama.ptrace_scope=1"
	}
	return []Finding{f}
}
