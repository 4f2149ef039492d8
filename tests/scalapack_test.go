package tests

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// scalapack runs one of ScaLAPACK's own test programs beside its input.
func scalapack(t *testing.T, preload, program string) Result {
	t.Helper()
	found, err := filepath.Glob("/usr/lib/*/scalapack/openmpi-tests/" + program)
	require.NoError(t, err)
	if len(found) == 0 {
		require.NotEqual(t, "true", os.Getenv("CI"), "in CI this test must run")
		t.Skip("ScaLAPACK's tests are missing; scripts/packages test installs them")
	}
	return Mpirun(t, Run{Preload: preload, Env: everyWay, Ranks: 4, Mpirun: []string{"--wdir", filepath.Dir(found[0])}}, found[0])
}

// The testers of the PBLAS and the BLACS send matrices and trapezes of all
// types, as derived datatypes, between all ranks, and compare what comes; they
// print no times.
func TestScaLAPACKsTestersPrintTheSame(t *testing.T) {
	for _, program := range []string{"BLACS/xCbtest", "PBLAS/dpb1tst", "PBLAS/zpb2tst", "PBLAS/dpb3tst"} {
		t.Run(filepath.Base(program), func(t *testing.T) {
			without, with := scalapack(t, "none", program), scalapack(t, "", program)
			assert.Equal(t, without.Status, with.Status, with)
			assert.Greater(t, strings.Count(without.Stdout, "\n"), 100)
			// Whether the order in which summands come is seen in the sum, or the test
			// of that is skipped, depends on time.
			byChance := regexp.MustCompile(`(PASSED |SKIPPED) REPEATABLE SUM`)
			assert.Equal(t, byChance.ReplaceAllString(without.Stdout, ""), byChance.ReplaceAllString(with.Stdout, ""))
		})
	}
}

// The testers of the solvers print a verdict and a time in each line.
func TestScaLAPACKsSolversPassTheSameTests(t *testing.T) {
	verdict := regexp.MustCompile(`(?i)passed|failed|skipped`)
	for _, program := range []string{"xdlu", "xzqr", "xdls", "xzllt", "xdsvd"} {
		t.Run(program, func(t *testing.T) {
			without, with := scalapack(t, "none", program), scalapack(t, "", program)
			assert.Equal(t, without.Status, with.Status, with)
			verdicts := verdict.FindAllString(without.Stdout, -1)
			assert.Greater(t, len(verdicts), 20)
			assert.Equal(t, verdicts, verdict.FindAllString(with.Stdout, -1))
		})
	}
}
