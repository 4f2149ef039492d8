package doctor

import (
	"fmt"
	"os"
)

// kernel tells the version, and whether evenkeel's own tests can shift clocks.
func (m Machine) kernel() []Finding {
	what := fmt.Sprintf("Linux %s.", m.read("/proc/sys/kernel/osrelease"))
	if _, err := os.Stat(m.path("/proc/self/ns/time")); err != nil {
		what += " It has no time namespaces: evenkeel's own tests of shifted clocks are skipped."
	}
	return []Finding{{Status: OK, Subject: "kernel", What: what,
		Why: "evenkeel's own tests make hosts and clocks out of namespaces; running programs needs none."}}
}
