package tests

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/tests/hosts"
)

// goProgram builds a program in Go: go build or go test -c, with -o before the package.
func goProgram(t *testing.T, name string, how ...string) string {
	program := filepath.Join(t.TempDir(), name)
	last := len(how) - 1
	build := exec.Command("go", append(append([]string(nil), how[:last]...), "-o", program, how[last])...)
	build.Dir = Root
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	return program
}

func goSieve(t *testing.T) string { return goProgram(t, "sieve", "build", "./examples/go/sieve") }

// What the tests of pgas/shared try on one machine, with two threads on each of two hosts: half of all accesses, locks,
// collectives and news of the directory go from one host to the other.
func TestSharedObjectsFromGoAcrossHosts(t *testing.T) {
	program := goProgram(t, "shared.test", "test", "-c", "./pgas/shared")
	c := hosts.New(t, hosts.Spec{Count: 2, Slots: 2})
	r := onHosts(t, c, program, "-test.v", "-test.run=^Test/^together$")
	require.Zero(t, r.Status, r)
	for _, one := range []string{"TestLocksExclude", "TestLocksAreFair", "TestALockThatIsFreedWhileOthersWantIt", "TestAFreedArrayIsNotReached",
		"TestStrictAccessesOrderRelaxedOnes", "TestCollectivesWait", "TestFreedMemoryIsUsedAgain"} {
		assert.Contains(t, r.Stdout, "--- PASS: "+one+"/together", one)
	}
}

// A thread in C and one in Go that start a world together are told that there is none.
func TestNoWorldOfThreadsInCAndGo(t *testing.T) {
	r := Mpirun(t, Run{Ranks: 1, Preload: "none"}, Example("sieve"), "1000", "10", ":", "-np", "1", goSieve(t), "-limit", "1000", "-block", "10")
	assert.NotZero(t, r.Status, r)
	assert.Contains(t, r.Stderr, "starting to share objects: threads in C and threads in Go can't share one world", r)
}

// A shared array whose blocks are on two hosts: on each, two threads reach each
// other's memory as their own, and that of the others through the fabric.
func TestSharedArraysAcrossHosts(t *testing.T) {
	program := goSieve(t)
	c := hosts.New(t, hosts.Spec{Count: 2, Slots: 2})
	for _, fabric := range []string{"auto", "udp"} {
		r := onHosts(t, c, "env", "EVENKEEL_FABRIC="+fabric, program, "-limit", "100000", "-block", "777")
		require.Zero(t, r.Status, "%s: %s", fabric, r)
		assert.Contains(t, r.Stdout, "9592 primes below 100000", fabric)
	}
	r := onHosts(t, c, "env", "EVENKEEL_FABRIC=mpi", program)
	assert.NotZero(t, r.Status)
	assert.Contains(t, r.Stderr, "the MPI fabric needs mpi.InitThread(mpi.ThreadMultiple)")
}
