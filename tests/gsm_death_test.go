package tests

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/tests/hosts"
)

// A task is killed wherever it is: the others get an error for each command to it
// within the configured time, and none for others; where its memory is mapped,
// commands are done. What no window shows, or what is protected, does not change,
// and each part of a window holds what its writer says (the tasks look at that
// themselves). EVENKEEL_TEST_CASES says how often, EVENKEEL_TEST_SEED from which
// seed on.
func TestATaskDiesAmongCommands(t *testing.T) {
	const silence = 2 * time.Second
	type account struct {
		Task, Done, Failed int
		Longest            time.Duration
		Mapped             bool
	}
	c := hosts.New(t, hosts.Spec{Count: 2, Slots: 2})
	for _, on := range []struct {
		name      string
		tasks     int
		mapped    int // tasks to which the victim's memory is mapped
		mpirun    func(ctx context.Context, args ...string) *exec.Cmd
		arguments []string
	}{
		{"apart on a node", 3, 0, func(ctx context.Context, args ...string) *exec.Cmd {
			c := exec.CommandContext(ctx, "mpirun", append([]string{"-np", "3", "--oversubscribe"}, args...)...)
			c.Env = append(os.Environ(), rootMayRun()...)
			return c
		}, []string{"-apart"}},
		{"two hosts", 4, 1, func(ctx context.Context, args ...string) *exec.Cmd {
			return c.Mpirun(ctx, 4, nil, args...)
		}, nil},
	} {
		t.Run(on.name, func(t *testing.T) {
			failed, done := 0, 0
			for i := range setting(t, "EVENKEEL_TEST_CASES", 1) {
				seed := setting(t, "EVENKEEL_TEST_SEED", 1) + i
				const victim = 1
				meet := t.TempDir()
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				job := on.mpirun(ctx, append([]string{"--enable-recovery", Program("gsm_death"), "-meet", meet, "-victim", fmt.Sprint(victim),
					"-seed", fmt.Sprint(seed), "-silence", silence.String()}, on.arguments...)...)
				var said output
				job.Stdout, job.Stderr = &said, &said
				require.NoError(t, job.Start())
				ended := make(chan error, 1)
				go func() { ended <- job.Wait() }()
				accounts := func() []string {
					found, _ := filepath.Glob(filepath.Join(meet, "account*"))
					return found
				}
				for len(accounts()) < on.tasks-1 {
					select {
					case err := <-ended:
						ended <- err
						require.Len(t, accounts(), on.tasks-1, "seed %d: %v\n%s", seed, err, &said)
					case <-time.After(10 * time.Millisecond):
					}
				}
				cancel() // mpirun may wait for the dead one's end for ever
				<-ended
				mapped := 0
				for _, path := range accounts() {
					text, err := os.ReadFile(path)
					require.NoError(t, err)
					var a account
					require.NoError(t, json.Unmarshal(text, &a))
					done += a.Done
					failed += a.Failed
					if a.Mapped {
						mapped++
						assert.Zero(t, a.Failed, "seed %d, task %d", seed, a.Task)
						continue
					}
					assert.NotZero(t, a.Failed, "seed %d, task %d", seed, a.Task)
					assert.Less(t, a.Longest, silence+10*time.Second, "seed %d: on a machine that others use too", seed)
				}
				assert.Equal(t, on.mapped, mapped)
			}
			t.Logf("%d commands to a dead task failed, %d others were done", failed, done)
		})
	}
}
