package tests

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/runtime/job"
	"evenkeel/runtime/segment"
)

// Running is a job that has been started.
type Running struct {
	Dir            string
	command        *exec.Cmd
	stdout, stderr output
	ended          chan struct{}
}

// output collects what a command writes; it may be read meanwhile.
type output struct {
	sync.Mutex
	bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.Lock()
	defer o.Unlock()
	return o.Buffer.Write(p)
}

func (o *output) text() string {
	o.Lock()
	defer o.Unlock()
	return o.Buffer.String()
}

// Start starts a program under evenkeel; it is ended with the test at the
// latest.
func Start(t testing.TB, r Run, program string, args ...string) *Running {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "profile")
	return start(t, dir, exec.Command("mpirun", r.mpirun(dir, program, args)...))
}

func start(t testing.TB, dir string, command *exec.Cmd) *Running {
	t.Helper()
	j := &Running{Dir: dir, command: command, ended: make(chan struct{})}
	command.Env = append(append(os.Environ(), rootMayRun()...), command.Env...)
	command.Dir = t.TempDir()
	command.Stdout, command.Stderr = &j.stdout, &j.stderr
	command.WaitDelay = 5 * time.Second
	require.NoError(t, command.Start())
	go func() {
		defer close(j.ended)
		command.Wait()
	}()
	t.Cleanup(func() {
		j.Signal(syscall.SIGTERM)
		select {
		case <-j.ended:
		case <-time.After(20 * time.Second):
			j.Signal(syscall.SIGKILL)
			<-j.ended
		}
	})
	return j
}

// Signal sends a signal to mpirun.
func (j *Running) Signal(s syscall.Signal) {
	j.command.Process.Signal(s)
}

// Until returns when the program has written that on stdout.
func (j *Running) Until(t testing.TB, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(j.stdout.text(), text) }, time.Minute, 5*time.Millisecond,
		"waiting for %q\n%s", text, &j.stderr)
}

// Wait returns what the job left when it has ended.
func (j *Running) Wait(t testing.TB) Result {
	t.Helper()
	select {
	case <-j.ended:
	case <-time.After(time.Minute):
		require.Fail(t, "the job does not end", "%s\n%s", j.stdout.text(), j.stderr.text())
	}
	return Result{Status: j.command.ProcessState.ExitCode(), Stdout: j.stdout.text(), Stderr: j.stderr.text(), Dir: j.Dir}
}

// Segments are the node segments of the job with that profile directory.
func Segments(t testing.TB, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(job.SegmentDir, "evenkeel.*"))
	require.NoError(t, err)
	var own []string
	for _, path := range paths {
		s, err := segment.Open(path, false)
		if err != nil {
			continue // it may be removed, or not complete, at any moment
		}
		if segment.Text(s.Header.Out[:]) == dir {
			own = append(own, path)
		}
		s.Close()
	}
	return own
}

// processes are the command lines of all processes of the job with that
// profile directory.
func processes(t testing.TB, dir string) []string {
	t.Helper()
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	require.NoError(t, err)
	var found []string
	for _, path := range environments {
		environment, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(environment, []byte("EVENKEEL_OUT="+dir+"\x00")) {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		found = append(found, string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
	}
	return found
}

// AssertNothingLeft waits until the job with that profile directory is over,
// and fails unless no process, no segment and no lock is left of it.
func AssertNothingLeft(t testing.TB, dir string) {
	t.Helper()
	assert.Eventually(t, func() bool { return len(processes(t, dir)) == 0 && len(Segments(t, dir)) == 0 },
		30*time.Second, 20*time.Millisecond, "processes and segments are left")
	assert.Empty(t, processes(t, dir))
	assert.Empty(t, Segments(t, dir))
	if _, err := os.Stat(dir); err == nil {
		files, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, f := range files {
			assert.False(t, strings.HasPrefix(f.Name(), "."), "%s is left in the profile's directory", f.Name())
		}
	}
}
