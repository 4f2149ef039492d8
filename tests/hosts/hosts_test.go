package hosts

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func compile(t *testing.T, compiler, source string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	output, err := exec.Command(compiler, "-O1", "-Wall", "-Wextra", "-Werror", "-o", program, source).CombinedOutput()
	require.NoError(t, err, "%s", output)
	return program
}

// run returns the command's standard output; the command has to succeed.
func run(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	require.NoError(t, err, "%s", stderr.String())
	return strings.TrimSpace(string(output))
}

func sortedLines(text string) []string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	sort.Strings(lines)
	return lines
}

// started starts the command and returns the first line of its output, which says that it runs.
func started(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	output, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(output).ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(line)
}

// receivedBytes is what has reached the host over the network.
func receivedBytes(t *testing.T, c *Cluster, host int) int {
	t.Helper()
	for line := range strings.Lines(run(t, c.Command(t.Context(), host, "cat", "/proc/net/dev"))) {
		if device, counts, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(device) == networkInterface {
			received, err := strconv.Atoi(strings.Fields(counts)[0])
			require.NoError(t, err)
			return received
		}
	}
	t.Fatalf("%s has no %s", c.Name(host), networkInterface)
	return 0
}

func TestRanksSeeTwoNodesAndExchangeMessages(t *testing.T) {
	c := New(t, Spec{Count: 2, Slots: 2})
	program := compile(t, "mpicc", "testdata/nodes.c")
	before := receivedBytes(t, c, 1)

	output := run(t, c.Mpirun(t.Context(), 4, nil, program))

	assert.Equal(t, []string{
		"rank 0 of 4 is 0 of 2 on host0, block whole",
		"rank 1 of 4 is 1 of 2 on host0, block whole",
		"rank 2 of 4 is 0 of 2 on host1, block whole",
		"rank 3 of 4 is 1 of 2 on host1, block whole",
	}, sortedLines(output))
	const block = 4 << 20
	assert.Greater(t, receivedBytes(t, c, 1)-before, block, "rank 1's block went to rank 2 over the network")
}

func TestMpirunWorksOnEveryHost(t *testing.T) {
	c := New(t, Spec{Count: 3})
	for host := range c.Count() {
		output := run(t, c.Command(t.Context(), host, "mpirun", "-np", "3", "hostname"))
		assert.Equal(t, []string{"host0", "host1", "host2"}, sortedLines(output))
	}
}

func TestMoreRanksThanSlots(t *testing.T) {
	c := New(t, Spec{Count: 2})
	output := run(t, c.Mpirun(t.Context(), 4, nil, "hostname"))
	assert.Equal(t, []string{"host0", "host0", "host1", "host1"}, sortedLines(output))
}

func TestSharedMemoryFilesBelongToOneHostAndPersist(t *testing.T) {
	c := New(t, Spec{Count: 2})
	run(t, c.Command(t.Context(), 0, "sh", "-c", "echo kept >/dev/shm/segment"))

	assert.Equal(t, "kept", run(t, c.Command(t.Context(), 0, "cat", "/dev/shm/segment")))
	assert.Empty(t, run(t, c.Command(t.Context(), 1, "ls", "-A", "/dev/shm")))
	assert.NoFileExists(t, "/dev/shm/segment")

	byRanks := run(t, c.Mpirun(t.Context(), 2, nil, "sh", "-c", "echo $(hostname) $(ls /dev/shm | grep segment$)"))
	assert.Equal(t, []string{"host0 segment", "host1"}, sortedLines(byRanks))
}

func TestExitStatusOfRanksPassesThrough(t *testing.T) {
	c := New(t, Spec{Count: 2})
	err := c.Mpirun(t.Context(), 2, nil, "sh", "-c", "exit $((OMPI_COMM_WORLD_RANK * 7))").Run()

	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, 7, exit.ExitCode())
}

func TestEnvironmentReachesRanksOnlyByName(t *testing.T) {
	t.Setenv("HOSTS_TEST_UNNAMED", "stays")
	c := New(t, Spec{Count: 2})
	env := []string{"HOSTS_TEST_NAMED=with blanks, commas and a = sign"}

	output := run(t, c.Mpirun(t.Context(), 2, env, "sh", "-c",
		`echo "$(hostname): $HOSTS_TEST_NAMED; ${HOSTS_TEST_UNNAMED:-unset}"`))

	assert.Equal(t, []string{
		"host0: with blanks, commas and a = sign; stays",
		"host1: with blanks, commas and a = sign; unset",
	}, sortedLines(output))
}

func TestHostsReachEachOtherByName(t *testing.T) {
	c := New(t, Spec{Count: 2})
	addresses := run(t, c.Command(t.Context(), 0, "getent", "ahostsv4", c.Name(1)))
	assert.Contains(t, addresses, "10.0.0.2")
}

func TestClockOffsetIsSeenByOneHostOnly(t *testing.T) {
	program := compile(t, "cc", "testdata/clock.c")
	for _, offset := range []time.Duration{time.Hour + 123456789*time.Nanosecond, -987654321 * time.Nanosecond} {
		t.Run(offset.String(), func(t *testing.T) {
			c := New(t, Spec{Count: 2, ClockOffset: map[int]time.Duration{1: offset}})
			for host, expected := range []int64{0, offset.Nanoseconds()} {
				earliest := []int64{now(t, unix.CLOCK_MONOTONIC), now(t, unix.CLOCK_BOOTTIME)}
				var seen [2]int64
				_, err := fmt.Sscan(run(t, c.Command(t.Context(), host, program)), &seen[0], &seen[1])
				require.NoError(t, err)
				latest := []int64{now(t, unix.CLOCK_MONOTONIC), now(t, unix.CLOCK_BOOTTIME)}
				for clock := range seen {
					assert.GreaterOrEqual(t, seen[clock]-expected, earliest[clock], c.Name(host))
					assert.LessOrEqual(t, seen[clock]-expected, latest[clock], c.Name(host))
				}
			}
		})
	}
}

func TestClockOffsetReachesRanks(t *testing.T) {
	c := New(t, Spec{Count: 2, ClockOffset: map[int]time.Duration{1: 90*time.Second + 1}})
	output := run(t, c.Mpirun(t.Context(), 2, nil, "sh", "-c",
		"echo $(hostname) $(grep monotonic /proc/self/timens_offsets)"))
	assert.Equal(t, []string{"host0 monotonic 0 0", "host1 monotonic 90 1"}, sortedLines(output))
}

func now(t *testing.T, clock int32) int64 {
	t.Helper()
	var ts unix.Timespec
	require.NoError(t, unix.ClockGettime(clock, &ts))
	return ts.Nano()
}

func TestCommandKeepsDirectoryAndStandardInput(t *testing.T) {
	c := New(t, Spec{Count: 2})
	cmd := c.Command(t.Context(), 1, "sh", "-c", "hostname; pwd; cat")
	cmd.Dir = t.TempDir()
	cmd.Stdin = strings.NewReader("typed")
	assert.Equal(t, "host1\n"+cmd.Dir+"\ntyped", run(t, cmd))
}

func TestSignalReachesTheProgram(t *testing.T) {
	c := New(t, Spec{Count: 1})
	cmd := c.Command(t.Context(), 0, "sh", "-c", "trap 'exit 3' TERM; echo ready; while :; do sleep 0.05; done")
	started(t, cmd)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))

	var exit *exec.ExitError
	require.ErrorAs(t, cmd.Wait(), &exit)
	assert.Equal(t, 3, exit.ExitCode())
}

func TestFatalSignalOfTheProgramPassesThrough(t *testing.T) {
	c := New(t, Spec{Count: 1})
	for _, fatal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSEGV} {
		err := c.Command(t.Context(), 0, "sh", "-c", fmt.Sprintf("kill -%d $$", fatal)).Run()
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
		status := exit.Sys().(syscall.WaitStatus)
		assert.True(t, status.Signaled())
		assert.Equal(t, fatal, status.Signal())
	}
}

func TestCancelEndsTheProgram(t *testing.T) {
	c := New(t, Spec{Count: 2})
	ctx, cancel := context.WithCancel(t.Context())
	cmd := c.Mpirun(ctx, 2, nil, "sh", "-c", "echo ready; exec sleep 1000")
	started(t, cmd)
	cancel()
	require.Error(t, cmd.Wait())
	assert.Eventually(t, func() bool {
		return c.Command(t.Context(), 0, "pgrep", "sleep").Run() != nil
	}, time.Minute, 50*time.Millisecond, "mpirun ends its ranks")
}

func TestKillEndsTheProgram(t *testing.T) {
	c := New(t, Spec{Count: 1})
	cmd := c.Command(t.Context(), 0, "sh", "-c", "echo $$; exec sleep 1000")
	pid := started(t, cmd)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	assert.Eventually(t, func() bool {
		return c.Command(t.Context(), 0, "kill", "-0", pid).Run() != nil
	}, time.Minute, 10*time.Millisecond, "the program ends with its command")
}

func TestSpecThatMakesNoSense(t *testing.T) {
	for problem, spec := range map[string]Spec{
		"Spec.Count is 0: it must be 1 to 250":             {},
		"Spec.Count is 251: it must be 1 to 250":           {Count: 251},
		"Spec.Slots is -1: it can't be negative":           {Count: 1, Slots: -1},
		"Spec.ClockOffset names host 2: hosts are 0 to 1":  {Count: 2, ClockOffset: map[int]time.Duration{2: 1}},
		"Spec.ClockOffset names host -1: hosts are 0 to 1": {Count: 2, ClockOffset: map[int]time.Duration{-1: 1}},
	} {
		_, err := Start(t.TempDir(), spec)
		assert.EqualError(t, err, problem)
	}
}

func TestClockThatWouldGoBelowZero(t *testing.T) {
	Require(t)
	requireTimeNamespaces(t)
	_, err := Start(t.TempDir(), Spec{Count: 2, ClockOffset: map[int]time.Duration{1: -200 * 365 * 24 * time.Hour}})
	assert.ErrorContains(t, err, "timens_offsets: Numerical result out of range")
	assert.ErrorContains(t, err, "only 1 of 2 hosts could be made")
}
