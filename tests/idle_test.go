package tests

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func idleLog(dir string, rank int) string { return fmt.Sprintf("%s.idle.%d", dir, rank) }

// The idle program computes in rank 0's waits, at the lowest priority and on the
// rank's cores, without our library; what it writes goes to its log, and it is gone at the end.
func TestIdleProgramRunsInWaits(t *testing.T) {
	run := waiting("adaptive", `EVENKEEL_IDLE_RUN=[ -z "$LD_PRELOAD" ] && exec `+Program("idle_guest"))
	run.Mpirun = []string{"--bind-to", "core"}
	r := Mpirun(t, run, Program("wait_cpu"), "receive", "60", "10")
	require.Equal(t, 0, r.Status, r)
	AssertNothingLeft(t, r.Dir)
	without := Mpirun(t, Run{}, Program("wait_cpu"), "receive", "60", "10")
	assert.Equal(t, len(strings.Fields(without.Stdout)), len(strings.Fields(r.Stdout)), "only the program's own words are on stdout")
	idle := r.Profile(t).Idle
	assert.Positive(t, idle.Runs)
	assert.Greater(t, idle.Ran, 0.3)
	log, err := os.ReadFile(idleLog(r.Dir, 0))
	require.NoError(t, err)
	words := strings.Fields(string(log))
	require.Greater(t, len(words), 4, "it computed for less than 10 ms")
	assert.Equal(t, []string{"idle", "1"}, words[:2])
	assert.Equal(t, int64(1), printedNumber(t, string(log), "cpus"))
}

// Outside of waits it stands still, and what it started too.
func TestIdleProgramStandsStillOutsideWaits(t *testing.T) {
	run := waiting("adaptive", "EVENKEEL_IDLE_RUN="+Program("idle_guest")+" & "+Program("idle_guest"))
	j := Start(t, run, Program("wait_cpu"), "receive", "60", "5", "2000")
	j.Until(t, "took")
	stopped := 0
	look := func(pid int) {
		environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		require.NoError(t, err)
		if !strings.Contains(string(environment), "OMPI_COMM_WORLD_RANK=0\x00") {
			return // the other rank may wait now
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		require.NoError(t, err)
		assert.True(t, stands(string(status)), string(status))
		stopped++
	}
	eachProcess(t, j.Dir, "idle_guest", look)
	eachProcess(t, j.Dir, "sh", look) // on a busy machine it may not have come to start them
	assert.Positive(t, stopped)
	require.Equal(t, 0, j.Wait(t).Status)
	AssertNothingLeft(t, j.Dir)
}

// stands says of /proc/PID/status whether the process is stopped, or will be before it computes again: at the
// lowest priority it may be long until it gets to take the signal.
func stands(status string) bool {
	var pending uint64
	_, words, _ := strings.Cut(status, "\nShdPnd:\t")
	fmt.Sscanf(words, "%x", &pending)
	return strings.Contains(status, "\nState:\tT") || pending>>(syscall.SIGSTOP-1)&1 == 1
}

// Where nobody waits it never runs, not even to begin.
func TestIdleProgramDoesNotRunWithoutWaits(t *testing.T) {
	began := filepath.Join(t.TempDir(), "began")
	run := waiting("adaptive", "EVENKEEL_IDLE_RUN=touch "+began)
	run.Ranks = 1
	r := Mpirun(t, run, Program("wait_cpu"), "receive", "5", "10")
	require.Equal(t, 0, r.Status, r)
	AssertNothingLeft(t, r.Dir)
	assert.Zero(t, r.Profile(t).Idle.Runs)
	assert.NoFileExists(t, began)
	assert.NoFileExists(t, idleLog(r.Dir, 0))
}

// An idle program that starts others, in its group and out of it, is gone with all
// of them, however the ranks end.
func TestNothingIsLeftOfAnIdleProgram(t *testing.T) {
	guest := "setsid sleep 1000 & sleep 1000 & (setsid sleep 1000 &) ; echo begun; sleep 1000"
	ends := map[string]func(t *testing.T, j *Running){
		"killed": func(t *testing.T, j *Running) { signalProcesses(t, j.Dir, "wait_cpu", syscall.SIGKILL) },
		"segv":   func(t *testing.T, j *Running) { signalProcesses(t, j.Dir, "wait_cpu", syscall.SIGSEGV) },
		"ended by mpirun": func(t *testing.T, j *Running) {
			j.Signal(syscall.SIGTERM)
		},
		"mpirun killed": func(t *testing.T, j *Running) {
			j.Signal(syscall.SIGKILL)
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			j := Start(t, waiting("adaptive", "EVENKEEL_IDLE_RUN="+guest), Program("wait_cpu"), "receive", "1000", "1000")
			require.Eventually(t, func() bool {
				log, _ := os.ReadFile(idleLog(j.Dir, 0))
				return strings.Contains(string(log), "begun")
			}, time.Minute, 10*time.Millisecond, "the idle program does not run")
			end(t, j)
			AssertNothingLeft(t, j.Dir)
		})
	}
	t.Run("well", func(t *testing.T) {
		r := Mpirun(t, waiting("adaptive", "EVENKEEL_IDLE_RUN="+guest), Program("wait_cpu"), "receive", "40", "10")
		require.Equal(t, 0, r.Status, r)
		for _, left := range processes(t, r.Dir) {
			assert.NotContains(t, left, "sleep", "MPI_Finalize returns when it is gone")
		}
		AssertNothingLeft(t, r.Dir)
	})
}

// signalProcesses sends a signal to the job's processes of that program.
func signalProcesses(t *testing.T, dir, program string, s syscall.Signal) {
	t.Helper()
	sent := 0
	eachProcess(t, dir, program, func(pid int) {
		require.NoError(t, syscall.Kill(pid, s))
		sent++
	})
	assert.Positive(t, sent)
}

// eachProcess names all processes of the job with that profile directory whose
// command line begins with that program.
func eachProcess(t *testing.T, dir, program string, do func(pid int)) {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/environ")
	require.NoError(t, err)
	for _, path := range paths {
		environment, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(environment), "EVENKEEL_OUT="+dir+"\x00") {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		name, _, _ := strings.Cut(string(line), "\x00")
		if filepath.Base(name) != program {
			continue
		}
		var pid int
		fmt.Sscan(filepath.Base(filepath.Dir(path)), &pid)
		do(pid)
	}
}

// One that can't be started, or fails, costs the job nothing but a line.
func TestIdleProgramThatFails(t *testing.T) {
	r := Mpirun(t, waiting("adaptive", "EVENKEEL_IDLE_RUN=/no/such/program"), Program("wait_cpu"), "receive", "40", "10")
	require.Equal(t, 0, r.Status, r)
	assert.Contains(t, r.Stderr, `EVENKEEL_IDLE_RUN: the idle program "/no/such/program": ended with status 127`)
	AssertNothingLeft(t, r.Dir)
	log, err := os.ReadFile(idleLog(r.Dir, 0))
	require.NoError(t, err)
	assert.Contains(t, string(log), "not found")
}

func TestWaitsAreNotUsedWhereTheySpin(t *testing.T) {
	r := Mpirun(t, waiting("spin", "EVENKEEL_IDLE_RUN=true"), Program("wait_cpu"), "receive", "5", "2")
	require.Equal(t, 0, r.Status, r)
	assert.Contains(t, r.Stderr, "only under EVENKEEL_WAIT=adaptive or EVENKEEL_WAIT=sleep")
	AssertNothingLeft(t, r.Dir)
}

// Hooks run in waits; one that fails is dropped at once, one that takes longer
// than declared the third time.
func TestHooksRunInWaits(t *testing.T) {
	r := Mpirun(t, waiting("adaptive"), Program("idle_hooks"), "hooks")
	require.Equal(t, 0, r.Status, r)
	const senseless = "the arguments make no sense"
	for _, what := range []string{"no hook", "no time", "unknown"} {
		assert.Contains(t, r.Stdout, what+": "+senseless)
	}
	assert.Contains(t, r.Stdout, "good: done\ntaken back: done\n")
	calls := printedNumber(t, r.Stdout, "calls")
	assert.GreaterOrEqual(t, calls, int64(5))
	assert.LessOrEqual(t, calls, int64(9), "once in a wait")
	assert.Equal(t, int64(1), printedNumber(t, r.Stdout, "failures"))
	assert.Equal(t, int64(3), printedNumber(t, r.Stdout, "overruns"))
	assert.Equal(t, int64(0), printedNumber(t, r.Stdout, "after"))
	assert.Equal(t, int64(0), printedNumber(t, r.Stdout, "patient"), "no wait is so long")
	assert.Equal(t, int64(1), printedNumber(t, r.Stdout, "renewing"))
	renewed := printedNumber(t, r.Stdout, "renewed")
	assert.Greater(t, renewed, int64(1), "the one that has the place of one that failed stays")
	assert.Contains(t, r.Stderr, "rank 0: the idle hook failing failed (7); it is not called any more")
	assert.Contains(t, r.Stderr, "rank 0: the idle hook slow took longer than declared 3 times")
	idle := r.Profile(t).Idle
	assert.Equal(t, calls+1+3+1+renewed, idle.Hooks)
	assert.GreaterOrEqual(t, idle.HooksOverrun, int64(3))

	spinning := Mpirun(t, waiting("spin"), Program("idle_hooks"), "hooks")
	require.Equal(t, 0, spinning.Status, spinning)
	assert.Contains(t, spinning.Stdout, "good: evenkeel is not recording")
	assert.Equal(t, int64(0), printedNumber(t, spinning.Stdout, "calls"))
}

func TestMemoryGoesBackInWaits(t *testing.T) {
	for _, trim := range []string{"0", "1"} {
		r := Mpirun(t, waiting("adaptive", "EVENKEEL_IDLE_TRIM="+trim), Program("idle_hooks"), "trim")
		require.Equal(t, 0, r.Status, r)
		back := printedNumber(t, r.Stdout, "before") - printedNumber(t, r.Stdout, "after")
		if trim == "1" {
			assert.Greater(t, back, int64(40), r)
		} else {
			assert.Less(t, back, int64(20), r)
		}
	}
}
