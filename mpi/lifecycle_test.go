package mpi_test

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/pkg/errors"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/mpi"
)

// programVariable names the program that the test binary is to be, instead of the tests.
const programVariable = "MPI_TEST_PROGRAM"

// programs are what a test starts in processes of its own, because it ends MPI or the process.
var programs = map[string]func() int{
	"lifecycle": lifecycle,
	"abort":     abort,
	"panic":     nilDereference,
	"sigterm":   terminated,
	"forgotten": forgotten,
}

// start runs a program on n ranks, and returns what it prints and its exit status. It needs the
// machine to itself, so it runs in the test run of one rank only.
func start(t *testing.T, program string, n int) (string, int) {
	if mpi.World.Size() > 1 {
		t.Skip("starts ranks of its own")
	}
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command("mpirun", "-np", strconv.Itoa(n), "--oversubscribe", self)
	// A job inside a job: the inner mpirun must not take itself for a rank of the outer one.
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "OMPI_") && !strings.HasPrefix(v, "PMIX_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, programVariable+"="+program,
		"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil {
		require.ErrorAs(t, err, &exit)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// must ends a program at the first thing that is not as it should be.
func must(ok bool, what string, values ...any) {
	if !ok {
		fmt.Println("failed:", what, values)
		os.Exit(3)
	}
}

func TestLifecycle(t *testing.T) {
	out, status := start(t, "lifecycle", 2)
	assert.Equal(t, 0, status, out)
	assert.Equal(t, 2, strings.Count(out, "done"), out)
}

// lifecycle uses MPI before Init and after Finalize, where the library itself would end the job.
func lifecycle() int {
	refused := func() {
		_, recv := mpi.Recv(mpi.World, []int{0}, 0, 0)
		_, dup := mpi.Self.Dup()
		_, dims := mpi.Dims(4, 0)
		_, name := mpi.ProcessorName()
		_, level := mpi.QueryThread()
		_, alloc := mpi.AllocMem[int](1)
		_, count := mpi.Count[int](mpi.Status{})
		for i, err := range []error{recv, dup, dims, name, level, alloc, count,
			mpi.World.Barrier(), mpi.World.Abort(1), mpi.Finalize()} {
			must(errors.Is(err, mpi.ErrNotRunning), "refusal", i, err)
		}
	}
	must(!mpi.Initialized() && !mpi.Finalized(), "before Init")
	must(mpi.World.Rank() == mpi.Undefined, "rank before Init")
	must(mpi.ErrRank.Error() != "", "text before Init")
	refused()

	must(mpi.Init() == nil, "Init")
	must(mpi.Initialized() && !mpi.Finalized(), "after Init")
	must(mpi.Init() != nil, "second Init")
	must(mpi.World.Size() == 2 && mpi.Self.Size() == 1, "sizes")
	level, err := mpi.QueryThread()
	must(err == nil && level >= mpi.ThreadSerialized, "thread level", level, err)
	r, err := mpi.Irecv(mpi.World, []int{0}, mpi.ProcNull, 0)
	must(err == nil, "Irecv", err)
	_, err = r.Wait()
	must(err == nil, "Wait", err)

	must(mpi.Finalize() == nil, "Finalize")
	must(mpi.Initialized() && mpi.Finalized(), "after Finalize")
	must(mpi.Init() != nil, "Init after Finalize")
	_, err = r.Wait()
	must(errors.Is(err, mpi.ErrNotRunning), "Wait after Finalize", err)
	refused()
	fmt.Println("done")
	return 0
}

func TestAbort(t *testing.T) {
	_, status := start(t, "abort", 2)
	assert.Equal(t, 42, status)
}

func abort() int {
	must(mpi.Init() == nil, "Init")
	if mpi.World.Rank() == 0 {
		must(mpi.World.Abort(42) == nil, "Abort")
	}
	must(mpi.World.Barrier() == nil, "Barrier")
	return 0
}

// MPI leaves Go's handling of a nil dereference alone.
func TestNilDereferenceIsAPanic(t *testing.T) {
	out, status := start(t, "panic", 1)
	assert.Equal(t, 0, status, out)
	assert.Contains(t, out, "recovered: runtime error: invalid memory address")
}

func nilDereference() int {
	must(mpi.Init() == nil, "Init")
	func() {
		defer func() { fmt.Println("recovered:", recover()) }()
		var nothing *struct{ value int }
		fmt.Println(nothing.value)
	}()
	must(mpi.Finalize() == nil, "Finalize")
	return 0
}

// SIGTERM reaches a program that asks for it, and ends one that does not.
func TestSIGTERM(t *testing.T) {
	out, status := start(t, "sigterm", 1)
	assert.Contains(t, out, "notified: terminated")
	assert.Equal(t, 128+int(syscall.SIGTERM), status, out)
}

func terminated() int {
	must(mpi.Init() == nil, "Init")
	notified := make(chan os.Signal, 1)
	signal.Notify(notified, syscall.SIGTERM)
	must(syscall.Kill(os.Getpid(), syscall.SIGTERM) == nil, "kill")
	fmt.Println("notified:", <-notified)
	signal.Reset(syscall.SIGTERM)
	must(syscall.Kill(os.Getpid(), syscall.SIGTERM) == nil, "kill")
	select {}
}

// A request or window that the program forgets keeps its memory, and Finalize tells of the request.
func TestForgottenRequest(t *testing.T) {
	out, status := start(t, "forgotten", 2)
	assert.Equal(t, 0, status, out)
	assert.Equal(t, 2, strings.Count(out, "MPI_Finalize: 1 requests were never completed"), out)
}

func forgotten() int {
	must(mpi.Init() == nil, "Init")
	func() {
		_, err := mpi.Irecv(mpi.Self, make([]int64, 5000), 0, 0)
		must(err == nil, "Irecv", err)
		_, err = mpi.WinCreate(mpi.World, make([]int64, 5000))
		must(err == nil, "WinCreate", err)
	}()
	collect() // would end the program if it found the pins of either
	must(mpi.Send(mpi.Self, make([]int64, 5000), 0, 0) == nil, "Send")
	collect()
	fmt.Println(mpi.Finalize())
	return 0
}

func TestClockAndNames(t *testing.T) {
	before := mpi.Wtime()
	assert.GreaterOrEqual(t, mpi.Wtime(), before)
	assert.Positive(t, mpi.Wtick())
	major, minor := mpi.Version()
	assert.GreaterOrEqual(t, major*10+minor, 31)
	assert.NotEmpty(t, mpi.LibraryVersion())
	name, err := mpi.ProcessorName()
	require.NoError(t, err)
	host, err := os.Hostname()
	require.NoError(t, err)
	assert.Equal(t, host, name)
}
