package tests

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/tests/hosts"
)

// fabricAccount is what a task of tests/programs/fabric says in the end.
type fabricAccount struct {
	Task, Operations, Notified, Silent       int
	Added, Counted                           uint64
	Messages, Called, MessageSum, CallSum    uint64
	Announced, Arrived, AnnounceSum, LandSum uint64
	Longest                                  time.Duration
	Sent, Resent, Raised, Dropped            uint64
	Relayed, Impaired                        uint64
	PeakEarly, Peak                          uint64
}

// add counts for all tasks.
func (sum *fabricAccount) add(a fabricAccount) {
	for _, n := range []struct {
		to   *uint64
		what uint64
	}{
		{&sum.Added, a.Added}, {&sum.Counted, a.Counted},
		{&sum.Messages, a.Messages}, {&sum.Called, a.Called}, {&sum.MessageSum, a.MessageSum}, {&sum.CallSum, a.CallSum},
		{&sum.Announced, a.Announced}, {&sum.Arrived, a.Arrived}, {&sum.AnnounceSum, a.AnnounceSum}, {&sum.LandSum, a.LandSum},
		{&sum.Sent, a.Sent}, {&sum.Resent, a.Resent}, {&sum.Raised, a.Raised}, {&sum.Dropped, a.Dropped},
		{&sum.Relayed, a.Relayed}, {&sum.Impaired, a.Impaired},
	} {
		*n.to += n.what
	}
	sum.Operations += a.Operations
	sum.Notified += a.Notified
	sum.Peak = max(sum.Peak, a.Peak)
}

// fabricTask is one that runs.
type fabricTask struct {
	command *exec.Cmd
	stdout  *bufio.Reader
	stderr  bytes.Buffer
}

// startFabric starts so many tasks, each by a command of its own.
func startFabric(t *testing.T, tasks int, on func(task int, args ...string) *exec.Cmd, args ...string) []*fabricTask {
	meet := t.TempDir()
	var all []*fabricTask
	for task := range tasks {
		own := []string{"-task", fmt.Sprint(task), "-tasks", fmt.Sprint(tasks), "-meet", meet}
		f := &fabricTask{command: on(task, append(own, args...)...)}
		out, err := f.command.StdoutPipe()
		require.NoError(t, err)
		f.stdout = bufio.NewReader(out)
		f.command.Stderr = &f.stderr
		require.NoError(t, f.command.Start())
		all = append(all, f)
	}
	return all
}

func (f *fabricTask) line(t *testing.T) string {
	text, err := f.stdout.ReadString('\n')
	require.NoError(t, err, "%s", &f.stderr)
	return strings.TrimSpace(text)
}

func (f *fabricTask) account(t *testing.T) (a fabricAccount) {
	require.NoError(t, json.Unmarshal([]byte(f.line(t)), &a))
	assert.NoError(t, f.command.Wait(), "%s", &f.stderr)
	return a
}

// Six hosts reach each other's memory through a relay that loses, repeats,
// reorders, cuts short and changes their datagrams: every memory image is right
// and what nobody may write is as it was (the tasks check that themselves), every
// atomic and every message was executed once, and every operation was notified
// once, in memory that does not grow. EVENKEEL_TEST_OPERATIONS has the storm last
// for so many operations, EVENKEEL_TEST_SEED says which one it is.
func TestMemoryOfOtherHostsOverABadNetwork(t *testing.T) {
	storm := []string{"-storm", "-loss", "0.5", "-duplication", "0.5", "-corruption", "0.5", "-truncation", "0.2", "-reordering", "0.5",
		"-delay", "1ms"}
	for _, c := range []struct {
		name       string
		operations int
		arguments  []string
	}{
		{"a good network", 6000, nil},
		{"losses of 20 %", 4000, []string{"-loss", "0.2"}},
		{"losses of 50 %", 2000, []string{"-loss", "0.5"}},
		{"a storm of everything", setting(t, "EVENKEEL_TEST_OPERATIONS", 4000), storm},
	} {
		t.Run(c.name, func(t *testing.T) {
			const tasks, depth = 6, 128
			cluster := hosts.New(t, hosts.Spec{Count: tasks})
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute+time.Duration(c.operations)*10*time.Millisecond)
			defer cancel()
			all := startFabric(t, tasks, func(task int, args ...string) *exec.Cmd {
				if task == 0 { // the relay is with it
					args = append(args, "-relay", "10.0.0.1")
				}
				return cluster.Command(ctx, task, Program("fabric"), args...)
			}, append(c.arguments, "-address", "eth0", "-seed", fmt.Sprint(setting(t, "EVENKEEL_TEST_SEED", 5)), "-silence", "1m",
				"-depth", fmt.Sprint(depth), "-rounds", fmt.Sprint((c.operations+tasks*depth-1)/(tasks*depth)))...)
			var sum fabricAccount
			for _, f := range all {
				a := f.account(t)
				assert.Equal(t, a.Operations, a.Notified)
				assert.Less(t, a.Peak, a.PeakEarly+64<<20, "bytes of memory, in the end and after a tenth of the operations")
				sum.add(a)
			}
			t.Logf("%+v", sum)
			assert.GreaterOrEqual(t, sum.Operations, c.operations)
			assert.Equal(t, sum.Added, sum.Counted, "atomics")
			assert.Equal(t, sum.Messages, sum.Called, "messages")
			assert.Equal(t, sum.MessageSum, sum.CallSum, "messages")
			assert.Equal(t, sum.Announced, sum.Arrived, "arrivals of PUTs")
			assert.Equal(t, sum.AnnounceSum, sum.LandSum, "arrivals of PUTs")
			assert.NotZero(t, sum.Relayed)
			assert.Equal(t, len(c.arguments) > 0, sum.Impaired > 0)
			assert.True(t, sum.Impaired == 0 || sum.Resent > 0, "what is lost is sent again")
		})
	}
}

// setting is a number that the environment may give.
func setting(t *testing.T, name string, otherwise int) int {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, name)
	return n
}

// A task is killed at any point: the others get an error for each operation on
// it, within the configured time, and none for others.
func TestATaskOfAJobIsKilled(t *testing.T) {
	const tasks, victim, silence = 3, 1, time.Second
	all := startFabric(t, tasks, func(_ int, args ...string) *exec.Cmd {
		return exec.CommandContext(t.Context(), Program("fabric"), args...)
	}, "-address", "127.0.0.1", "-victim", fmt.Sprint(victim), "-rounds", "8", "-silence", silence.String())
	require.Equal(t, "under way", all[victim].line(t))
	require.NoError(t, all[victim].command.Process.Kill())
	all[victim].command.Wait()
	for task, f := range all {
		if task == victim {
			continue
		}
		a := f.account(t)
		assert.Equal(t, a.Operations, a.Notified)
		assert.NotZero(t, a.Silent, "task %d", task)
		assert.Less(t, a.Longest, silence+10*time.Second, "on a machine that others use too")
	}
}
