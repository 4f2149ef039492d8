package tests

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/tests/hosts"
)

// fabricAccount is what a task of tests/programs/fabric says in the end.
type fabricAccount struct {
	Task, Operations, Notified, Silent int
	Added, Counted, Called, Messages   uint64
	Longest                            time.Duration
	Sent, Resent, Raised, Dropped      uint64
	Relayed, Impaired                  uint64
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

// Two and three hosts reach each other's memory through a relay that loses,
// repeats, reorders, cuts short and changes their datagrams: every memory image
// is right (the tasks check that themselves), every atomic and every message was
// executed once, and every operation was notified once.
func TestMemoryOfOtherHostsOverABadNetwork(t *testing.T) {
	for name, impairments := range map[string][]string{
		"a good network": {"-rounds", "150"},
		"losses of 20 %": {"-rounds", "80", "-loss", "0.2"},
		"all at once": {"-rounds", "80", "-loss", "0.05", "-duplication", "0.05", "-corruption", "0.05", "-truncation", "0.05",
			"-reordering", "0.1", "-delay", "3ms"},
	} {
		t.Run(name, func(t *testing.T) {
			const tasks = 3
			c := hosts.New(t, hosts.Spec{Count: tasks})
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			all := startFabric(t, tasks, func(task int, args ...string) *exec.Cmd {
				if task == 0 { // the relay is with it
					args = append(args, "-relay", "10.0.0.1")
				}
				return c.Command(ctx, task, Program("fabric"), args...)
			}, append(impairments, "-address", "eth0", "-seed", "5")...)
			var sum fabricAccount
			for _, f := range all {
				a := f.account(t)
				assert.Equal(t, a.Operations, a.Notified)
				sum.Added += a.Added
				sum.Counted += a.Counted
				sum.Called += a.Called
				sum.Messages += a.Messages
				sum.Operations += a.Operations
				sum.Resent += a.Resent
				sum.Raised += a.Raised
				sum.Dropped += a.Dropped
				sum.Relayed += a.Relayed
				sum.Impaired += a.Impaired
			}
			t.Logf("%+v", sum)
			assert.Equal(t, sum.Added, sum.Counted, "atomics")
			assert.Equal(t, sum.Messages, sum.Called, "messages")
			assert.NotZero(t, sum.Relayed)
			assert.Equal(t, len(impairments) > 2, sum.Impaired > 0)
			assert.True(t, sum.Impaired == 0 || sum.Resent > 0, "what is lost is sent again")
		})
	}
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
