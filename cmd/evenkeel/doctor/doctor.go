// Package doctor looks at a machine and says what it offers and lacks for
// running MPI programs under evenkeel. It changes nothing.
package doctor

import (
	"context"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"evenkeel/collectives"
	"evenkeel/runtime/fabric/udp"
)

// Status is how bad a finding is.
type Status string

// The statuses.
const (
	OK   Status = "OK"
	Warn Status = "WARN" // works, with worse results or only with care
	Fail Status = "FAIL" // keeps evenkeel from working
)

// Finding is one thing that was looked at, in words.
type Finding struct {
	Status  Status `json:"status"`
	Subject string `json:"subject"`
	What    string `json:"what"` // what was found
	Why     string `json:"why"`  // why it matters
	Fix     string `json:"fix"`  // what to do; empty if there is nothing to do
}

// Machine is what is looked at: this machine, and the evenkeel on it.
type Machine struct {
	Environ    []string
	Library    string // path of libevenkeel.so
	LibraryErr error  // why there is none

	// What tests put in place of this machine's own.
	root      string // stands before /proc, /sys and /dev
	statfs    func(path string, to *unix.Statfs_t) error
	affinity  func() int // cores that this process may use
	uid       int
	locked    uint64                                    // bytes of memory that may be locked
	space     uint64                                    // bytes of addresses that a process may have
	near, udp func() (collectives.Link, error)          // what messages cost in shared memory, and over UDP
	addresses func(want string) ([]netip.Prefix, error) // at which others reach this machine
}

// Examine looks at everything, in the order in which a user meets it. It runs
// the commands mpirun, ldconfig and python3.
func Examine(m Machine) []Finding {
	m.statfs = unix.Statfs
	m.affinity = affinity
	m.uid = os.Geteuid()
	m.locked = limit(unix.RLIMIT_MEMLOCK)
	m.space = limit(unix.RLIMIT_AS)
	m.near, m.udp = m.measureNear, measureUDP
	m.addresses = udp.Addresses
	return m.examine()
}

func (m Machine) examine() []Finding {
	return slices.Concat(
		m.openMPI(),
		m.rootRights(),
		m.fortran(),
		m.python(),
		m.libraries(),
		m.settings(),
		m.sharedMemory(),
		m.leftBehind(),
		m.clock(),
		m.cores(),
		m.oversubscription(),
		m.addressSpace(),
		m.lockedMemory(),
		m.singleCopy(),
		m.schedules(),
		m.fabric(),
		m.kernel(),
	)
}

func (m Machine) path(path string) string { return filepath.Join(m.root, path) }

// read returns the text of a file of the machine, empty if it has none.
func (m Machine) read(path string) string {
	data, _ := os.ReadFile(m.path(path))
	return strings.TrimSpace(string(data))
}

func (m Machine) variable(name string) string {
	for _, entry := range m.Environ {
		if value, found := strings.CutPrefix(entry, name+"="); found {
			return value
		}
	}
	return ""
}

// output runs a command and returns what it wrote on stdout; empty if it is
// missing, fails or does not end.
func (m Machine) output(name string, args ...string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	command := exec.CommandContext(ctx, name, args...)
	command.Env = m.Environ
	command.WaitDelay = time.Second
	output, err := command.Output()
	if err != nil {
		return ""
	}
	return string(output)
}
