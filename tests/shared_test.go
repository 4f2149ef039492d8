package tests

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/tests/hosts"
)

// A shared array whose blocks are on two hosts: on each, two threads reach each
// other's memory as their own, and that of the others through the fabric.
func TestSharedArraysAcrossHosts(t *testing.T) {
	program := filepath.Join(t.TempDir(), "sieve")
	build := exec.Command("go", "build", "-o", program, "./examples/go/sieve")
	build.Dir = Root
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
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
