package hosts

import (
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"

	"github.com/pkg/errors"
)

const namespacesOfCluster = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET |
	syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC

// Require returns where hosts can be made. Elsewhere it skips the test and says why; with CI=true in the
// environment it fails the test instead, so that such tests can't silently stop running.
func Require(t testing.TB) {
	t.Helper()
	endUnless(t, cannotMakeHosts(), os.Getenv("CI") == "true")
}

func requireTimeNamespaces(t testing.TB) {
	t.Helper()
	_, err := os.Stat("/proc/self/ns/time")
	endUnless(t, errors.Wrap(err, "this kernel can't offset a clock (it takes Linux 5.6)"), os.Getenv("CI") == "true")
}

func endUnless(t testing.TB, obstacle error, ci bool) {
	t.Helper()
	switch {
	case obstacle == nil:
	case ci:
		t.Fatalf("this test needs several hosts, and in CI it must run: %v", obstacle)
	default:
		t.Skipf("this test needs several hosts: %v", obstacle)
	}
}

// cannotMakeHosts says what stands in the way, by trying in namespaces that end at once.
var cannotMakeHosts = sync.OnceValue(func() error {
	if os.Geteuid() != 0 {
		return errors.New("it takes root to make them; run the tests as root")
	}
	for _, tool := range []string{"cc", "ip", "mpirun"} {
		if _, err := exec.LookPath(tool); err != nil {
			return errors.Errorf("%s is missing; scripts/packages test installs it", tool)
		}
	}
	trial := exec.Command("sh", "-ec", `
		mount --make-rprivate /
		mount -t proc proc /proc
		mount -t tmpfs tmpfs /dev/shm
		ip link add bridge0 type bridge
		ip link add port0 type veth peer name eth0`)
	trial.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespacesOfCluster}
	output, err := trial.CombinedOutput()
	return errors.Wrapf(err, "this machine does not let root make them (a container has to be privileged): %s", output)
})
