// Package tests runs real MPI programs under evenkeel: what needs mpirun,
// several hosts, or injected faults. It tests what `make all examples
// programs` has built into build/.
package tests

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"evenkeel/runtime/profile"
)

// Root is the top of the repository, Build its build directory.
var (
	Root  = rootDirectory()
	Build = filepath.Join(Root, "build")
)

func rootDirectory() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(file))
}

// Library is the preload library, Evenkeel the command.
var (
	Library  = filepath.Join(Build, "lib", "libevenkeel.so")
	Evenkeel = filepath.Join(Build, "bin", "evenkeel")
)

// Program is the path of a program of tests/programs.
func Program(name string) string { return filepath.Join(Build, "tests", name) }

// Source is the path of a source file of tests/programs.
func Source(name string) string { return filepath.Join(Root, "tests", "programs", name) }

// Example is the path of a program of examples/.
func Example(name string) string { return filepath.Join(Build, "examples", name) }

// Run is how a program is to be run.
type Run struct {
	Ranks   int           // default 2
	Env     []string      // NAME=value, for the ranks
	Preload string        // default Library; "none": without
	Mpirun  []string      // further options of mpirun
	Timeout time.Duration // default 2 minutes
	Stdin   string
}

// Result is what a run left.
type Result struct {
	Status int // exit status of mpirun
	Stdout string
	Stderr string
	Dir    string // directory of the profile
}

// Mpirun runs a program under evenkeel and returns what it left. The profile
// goes to a directory of the test's own.
func Mpirun(t testing.TB, r Run, program string, args ...string) Result {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "profile")
	result := Command(t, r, "mpirun", r.mpirun(dir, program, args)...)
	result.Dir = dir
	return result
}

// mpirun is what follows on mpirun's command line.
func (r Run) mpirun(dir, program string, args []string) []string {
	ranks := max(r.Ranks, 1)
	if r.Ranks == 0 {
		ranks = 2
	}
	command := append([]string{"-np", strconv.Itoa(ranks), "--oversubscribe"}, r.Mpirun...)
	switch r.Preload {
	case "none":
	case "":
		command = append(command, "-x", "LD_PRELOAD="+Library)
	default:
		command = append(command, "-x", "LD_PRELOAD="+r.Preload)
	}
	for _, e := range append([]string{"EVENKEEL_OUT=" + dir}, r.Env...) {
		command = append(command, "-x", e)
	}
	return append(append(command, program), args...)
}

// Command runs a command with the test's time limit. It fails the test only if
// the command can't be run at all or does not end.
func Command(t testing.TB, r Run, name string, args ...string) Result {
	t.Helper()
	limit := r.Timeout
	if limit == 0 {
		limit = 2 * time.Minute
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	c := exec.CommandContext(ctx, name, args...)
	c.Env = append(append(os.Environ(), "LC_ALL=C.UTF-8"), rootMayRun()...)
	c.Dir = t.TempDir()
	if r.Stdin != "" {
		c.Stdin = bytes.NewBufferString(r.Stdin)
	}
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	c.WaitDelay = 5 * time.Second
	err := c.Run()
	require.NoError(t, ctx.Err(), "%s %v did not end within %v\n%s%s", name, args, limit, stdout.String(), stderr.String())
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return Result{Status: c.ProcessState.ExitCode(), Stdout: stdout.String(), Stderr: stderr.String()}
}

// rootMayRun is what mpirun wants to be told twice.
func rootMayRun() []string {
	if os.Getuid() != 0 {
		return nil
	}
	return []string{"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"}
}

// Profile reads the profile that the run wrote.
func (r Result) Profile(t testing.TB) *profile.Profile {
	t.Helper()
	p, err := profile.Read(filepath.Join(r.Dir, "profile.json"))
	require.NoError(t, err, "stdout:\n%s\nstderr:\n%s", r.Stdout, r.Stderr)
	return p
}

// Calls adds up the calls of each MPI function over all call sites.
func Calls(p *profile.Profile) map[string]int64 {
	calls := map[string]int64{}
	for _, site := range p.CallSites {
		calls[site.Call] += site.Calls
	}
	return calls
}

// String shows a result in a failed test.
func (r Result) String() string {
	return fmt.Sprintf("status %d\nstdout:\n%s\nstderr:\n%s", r.Status, r.Stdout, r.Stderr)
}
