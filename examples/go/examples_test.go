// Package examples runs the Go examples as a user would.
package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// build compiles the example of a folder and returns the program.
func build(t *testing.T, folder string) string {
	program := filepath.Join(t.TempDir(), folder)
	out, err := exec.Command("go", "build", "-o", program, "./"+folder).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

// mpirun runs a program on some ranks and returns what they print.
func mpirun(t *testing.T, ranks int, program string, args ...string) (string, error) {
	args = append([]string{"-np", strconv.Itoa(ranks), "--oversubscribe", program}, args...)
	cmd := exec.Command("mpirun", args...)
	cmd.Env = append(os.Environ(), "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestRing(t *testing.T) {
	program := build(t, "ring")
	for ranks, sum := range map[int]string{1: "0", 2: "1", 4: "6"} {
		out, err := mpirun(t, ranks, program)
		require.NoError(t, err, out)
		assert.Contains(t, out, "from "+strconv.Itoa(ranks)+" ranks as "+sum+",")
	}
}

// The temperature does not depend on the number of ranks, and is near the exact one.
func TestHeat(t *testing.T) {
	program := build(t, "heat")
	pattern := regexp.MustCompile(`at most (\S+)`)
	var results []string
	for ranks := 1; ranks <= 4; ranks++ {
		out, err := mpirun(t, ranks, program, "-cells", "101", "-steps", "500")
		require.NoError(t, err, out)
		found := pattern.FindStringSubmatch(out)
		require.NotNil(t, found, out)
		results = append(results, found[1])
		assert.Equal(t, results[0], found[1], "%d ranks", ranks)
	}
	worst, err := strconv.ParseFloat(results[0], 64)
	require.NoError(t, err)
	assert.Less(t, worst, 1e-4)

	out, err := mpirun(t, 2, program, "-cells", "1")
	assert.Error(t, err)
	assert.Contains(t, out, "each of the 2 ranks needs a cell")
}

// The number of primes below a limit is known.
func TestSieve(t *testing.T) {
	program := build(t, "sieve")
	for ranks := 1; ranks <= 4; ranks++ {
		out, err := mpirun(t, ranks, program, "-limit", "100000", "-block", strconv.Itoa(1000*ranks-999))
		require.NoError(t, err, out)
		assert.Contains(t, out, "9592 primes below 100000")
	}
	out, err := mpirun(t, 2, program, "-block", "-1")
	assert.Error(t, err)
	assert.Contains(t, out, "blocks of -1 elements")
}
