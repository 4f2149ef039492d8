package hosts

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ownedByAnother makes a test process build a cluster and keep it, so that another can kill that process.
const ownedByAnother = "EVENKEEL_HOSTS_TEST_OWNER"

// realMachine is everything of the real machine that a cluster could change.
func realMachine(t *testing.T) map[string]string {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	name, err := os.Hostname()
	require.NoError(t, err)
	// Other tests may be at work on this machine, so only names with a host of ours in them count.
	var files []string
	for _, pattern := range []string{"/dev/shm/*host[0-9]*", "/run/*host[0-9]*", "/tmp/ompi.host[0-9]*"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		files = append(files, found...)
	}
	return map[string]string{
		"mounts":             string(mounts),
		"host name":          name,
		"interfaces":         run(t, exec.Command("ip", "-brief", "address")),
		"network namespaces": run(t, exec.Command("ip", "netns", "list")),
		"files":              fmt.Sprint(files),
	}
}

// pidNamespace identifies the cluster's PID namespace.
func pidNamespace(t *testing.T, processOne int) string {
	t.Helper()
	namespace, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", processOne))
	require.NoError(t, err)
	return namespace
}

// processesIn counts the processes that run in a PID namespace.
func processesIn(t *testing.T, namespace string) int {
	t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*")
	require.NoError(t, err)
	count := 0
	for _, process := range processes {
		found, err := os.Readlink(process + "/ns/pid")
		if err != nil || found != namespace {
			continue
		}
		status, err := os.ReadFile(process + "/status")
		// Those that have ended wait for the machine's process 1, which may be slow or never come.
		if err == nil && !strings.Contains(string(status), "State:\tZ") {
			count++
		}
	}
	return count
}

func TestNothingIsLeftAfterClose(t *testing.T) {
	before := realMachine(t)
	c := New(t, Spec{Count: 2})
	namespace := pidNamespace(t, c.first.Process.Pid)
	ranks := c.Mpirun(t.Context(), 2, nil, "sh", "-c", "echo ready; exec sleep 1000")
	started(t, ranks)
	detached := c.Command(t.Context(), 1, "setsid", "sh", "-c",
		"(trap '' HUP TERM; sleep 1000) >/dev/null 2>&1 & echo ready")
	started(t, detached)
	require.NoError(t, detached.Wait())
	assert.Equal(t, before, realMachine(t), "a running cluster changes nothing of the machine")
	assert.Greater(t, processesIn(t, namespace), 3)

	require.NoError(t, c.Close())

	require.Error(t, ranks.Wait())
	assert.Zero(t, processesIn(t, namespace))
	assert.Equal(t, before, realMachine(t))
	assert.NoError(t, c.Close(), "a second Close does nothing")
}

func TestOrphansLeaveNoZombie(t *testing.T) {
	c := New(t, Spec{Count: 1})
	pid := run(t, c.Command(t.Context(), 0, "sh", "-c", "sleep 0.01 >/dev/null 2>&1 & echo $!"))
	assert.Eventually(t, func() bool {
		return c.Command(t.Context(), 0, "kill", "-0", pid).Run() != nil
	}, time.Minute, 10*time.Millisecond, "an orphan that ended does not look alive")
}

func TestNothingIsLeftWhenTheTestIsKilled(t *testing.T) {
	Require(t)
	before := realMachine(t)
	owner := exec.Command(os.Args[0], "-test.run=^TestOwner$")
	owner.Env = append(os.Environ(), ownedByAnother+"=1", "TMPDIR="+t.TempDir())
	var processOne int
	_, err := fmt.Sscan(started(t, owner), &processOne)
	require.NoError(t, err)
	namespace := pidNamespace(t, processOne)
	assert.Greater(t, processesIn(t, namespace), 3)

	require.NoError(t, owner.Process.Kill())
	require.Error(t, owner.Wait())

	assert.Eventually(t, func() bool { return processesIn(t, namespace) == 0 },
		time.Minute, 10*time.Millisecond, "a cluster ends with its creator")
	assert.Equal(t, before, realMachine(t))
}

// TestOwner is the process that TestNothingIsLeftWhenTheTestIsKilled kills.
func TestOwner(t *testing.T) {
	if os.Getenv(ownedByAnother) == "" {
		t.Skip("it runs only as a part of TestNothingIsLeftWhenTheTestIsKilled")
	}
	c := New(t, Spec{Count: 2})
	ranks := c.Mpirun(t.Context(), 2, nil, "sh", "-c", "echo ready; exec sleep 1000")
	started(t, ranks)
	fmt.Println(c.first.Process.Pid)
	require.NoError(t, ranks.Wait())
}

func TestTwoClustersAtOnceDoNotMeet(t *testing.T) {
	one, other := New(t, Spec{Count: 2}), New(t, Spec{Count: 2})
	run(t, one.Command(t.Context(), 1, "touch", "/dev/shm/mine"))

	assert.Empty(t, run(t, other.Command(t.Context(), 1, "ls", "-A", "/dev/shm")))
	assert.Equal(t, []string{"host0", "host1"}, sortedLines(run(t, other.Mpirun(t.Context(), 2, nil, "hostname"))))
	require.NoError(t, one.Close())
	assert.Equal(t, []string{"host0", "host1"}, sortedLines(run(t, other.Mpirun(t.Context(), 2, nil, "hostname"))))
}
