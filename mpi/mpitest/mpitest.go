// Package mpitest lets plain go test run the tests of a package that needs mpirun.
//
//	func TestMain(m *testing.M) { os.Exit(mpitest.Run(m, 1, 2, 4)) }
//
// go test starts the test program once, without MPI. Run starts it again under mpirun, once for
// every number of ranks, and there runs the tests on all ranks, between mpi.InitThread and
// mpi.Finalize. go test shows what rank 0 prints; what the tests of other ranks print is shown when
// one of them fails. A rank stops at its first failed test, and mpirun then ends the others, which
// may wait for it.
//
// The test program can also be started by hand: go test -c, then mpirun -np 3 ./program.test.
package mpitest

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"testing"

	"github.com/pkg/errors"

	"evenkeel/mpi"
)

// Run runs the tests under mpirun for each of the numbers of ranks and returns the exit status for
// os.Exit. All flags of go test reach the ranks; files that they name are written by rank 0 of the
// last run.
func Run(m *testing.M, ranks ...int) int {
	flag.Parse()
	if os.Getenv("OMPI_COMM_WORLD_SIZE") != "" {
		return runRank(m)
	}
	mpirun, err := exec.LookPath("mpirun")
	if err != nil {
		fmt.Fprintln(os.Stderr, "mpitest: these tests need mpirun, which is not in PATH; "+
			"install it with: apt-get install openmpi-bin libopenmpi-dev")
		return 1
	}
	status := 0
	for _, n := range ranks {
		if err := launch(mpirun, n); err != nil {
			fmt.Fprintf(os.Stderr, "mpitest: with %d ranks: %v\n", n, err)
			status = 1
		}
	}
	return status
}

// launch runs this program again, with the same arguments, on n ranks.
func launch(mpirun string, n int) error {
	program, err := os.Executable()
	if err != nil {
		return errors.Wrap(err, "finding the test program")
	}
	// The kernel sends Pdeathsig when the starting thread ends, so it must live as long as we do.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	args := append([]string{"-np", strconv.Itoa(n), "--oversubscribe", program}, os.Args[1:]...)
	cmd := exec.Command(mpirun, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	// mpirun ends its ranks at the first SIGTERM and forgets them at the second, so it gets the one
	// when this process dies, and none of those that the shell sends to the process group.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	cmd.Env = os.Environ()
	if os.Geteuid() == 0 {
		cmd.Env = append(cmd.Env, "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	}
	return errors.Wrap(cmd.Run(), "mpirun")
}

// runRank runs the tests in one rank.
func runRank(m *testing.M) int {
	// Flags of the other ranks that name a file would have them write the same one.
	private := []string{"coverprofile", "gocoverdir", "testlogfile", "cpuprofile", "memprofile",
		"blockprofile", "mutexprofile", "trace"}
	first := os.Getenv("OMPI_COMM_WORLD_RANK") == "0"
	settings := map[string]string{"test.failfast": "true"}
	for _, name := range private {
		if !first {
			settings["test."+name] = ""
		}
	}
	for name, value := range settings {
		if err := flag.Set(name, value); err != nil {
			fmt.Fprintf(os.Stderr, "mpitest: %v\n", err)
			return 1
		}
	}
	if first {
		return runTests(m)
	}
	return held(func() int { return runTests(m) })
}

func runTests(m *testing.M) int {
	if _, err := mpi.InitThread(mpi.ThreadMultiple); err != nil {
		fmt.Fprintf(os.Stderr, "mpitest: %v\n", err)
		return 1
	}
	if status := m.Run(); status != 0 {
		return status // without Finalize, which would wait for the other ranks
	}
	if err := mpi.Finalize(); err != nil {
		fmt.Fprintf(os.Stderr, "mpitest: %v\n", err)
		return 1
	}
	return 0
}

// held keeps what run prints on stdout, and shows it on stderr when run fails.
func held(run func() int) int {
	file, err := os.CreateTemp("", "mpitest-*.out")
	if err != nil {
		fmt.Fprintf(os.Stderr, "mpitest: %v\n", err)
		return 1
	}
	defer file.Close()
	// Without a name the file goes away with the process, however it ends.
	if err := os.Remove(file.Name()); err != nil {
		fmt.Fprintf(os.Stderr, "mpitest: %v\n", err)
	}
	stdout := os.Stdout
	os.Stdout = file
	status := run()
	os.Stdout = stdout
	if status == 0 {
		return 0
	}
	fmt.Fprintf(os.Stderr, "--- rank %s failed:\n", os.Getenv("OMPI_COMM_WORLD_RANK"))
	if _, err := file.Seek(0, io.SeekStart); err == nil {
		io.Copy(os.Stderr, file)
	}
	return status
}
