package tests

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// requireProgram runs the test where the program is installed, and in CI.
func requireProgram(t *testing.T, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		if os.Getenv("CI") == "true" {
			require.NoError(t, err, "in CI this test must run")
		}
		t.Skipf("%s is missing; scripts/packages test installs it", name)
	}
}

// everyWay has real programs run with all that evenkeel does in MPI's place, however
// many cores there are.
var everyWay = []string{"EVENKEEL_FAST=all", room}

// lines are those of a text that match the expression.
func lines(text, expression string) []string {
	return regexp.MustCompile(`(?m)^.*(?:`+expression+`).*$`).FindAllString(text, -1)
}

// Of LAMMPS' output, what does not depend on time: the thermodynamic table, and
// what it counts of atoms and neighbours.
const lammpsResults = `^ +\d+ +[-0-9.]+ |^Created|^Nlocal|^Nghost|^Neighs|^Total #|^Neighbor list builds`

func lammps(t *testing.T, preload, input string) Result {
	t.Helper()
	requireProgram(t, "lmp")
	r := Mpirun(t, Run{Preload: preload, Env: everyWay}, "lmp", "-log", "none", "-var", "steps", "200",
		"-in", filepath.Join(Root, "tests", "programs", "lammps_"+input+".in"))
	require.Equal(t, 0, r.Status, r)
	return r
}

func TestLAMMPSIsUnchanged(t *testing.T) {
	without := lines(lammps(t, "none", "corner").Stdout, lammpsResults)
	require.Greater(t, len(without), 5)
	assert.Equal(t, without, lines(lammps(t, "", "corner").Stdout, lammpsResults))
}

func TestLAMMPSWithAllAtomsInOneCornerHasALateRank(t *testing.T) {
	p := lammps(t, "", "corner").Profile(t)
	assert.Greater(t, p.Balance.Imbalance, 0.5)
	assert.Equal(t, []int{0, 1}, p.Balance.Slowest, "rank 0 has all the atoms")
	require.NotEmpty(t, p.Culprits)
	assert.Equal(t, 0, p.Culprits[0].Rank)
	assert.Greater(t, p.Ranks[0].Useful, 2*p.Ranks[1].Useful)
	assert.Greater(t, p.Ranks[1].Late, p.Ranks[0].Late)
	site := p.CallSites[0]
	assert.Contains(t, site.Function, "LAMMPS_NS::", "call sites in a program of Debian's are named")
}

func TestLAMMPSInBalanceHasNone(t *testing.T) {
	least := 1.0
	for range 3 { // other work on the machine makes ranks late, too
		least = min(least, lammps(t, "", "balanced").Profile(t).Balance.Imbalance)
		if least < 0.1 {
			return
		}
	}
	assert.Less(t, least, 0.1)
}

// Of HPCC's report, what does not depend on time.
const hpccResults = `^HPL_(RnormI|Anorm|Xnorm|Bnorm)|^WALL.*PASSED|\.\.\. PASSED|FAILED|Found \d+ errors|tests completed|^Success=`

// hpcc runs HPCC on a small problem and returns its report and, if it ran under
// evenkeel, its profile.
func hpcc(t *testing.T, preload string) (string, Result) {
	t.Helper()
	requireProgram(t, "hpcc")
	input, err := os.ReadFile(filepath.Join(Root, "bench", "programs", "hpccinf.txt"))
	require.NoError(t, err)
	input = bytes.Replace(input, []byte("2000 "), []byte("600 "), 1)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "hpccinf.txt"), input, 0o600))
	r := Mpirun(t, Run{Preload: preload, Env: everyWay, Mpirun: []string{"--wdir", dir}}, "hpcc")
	require.Equal(t, 0, r.Status, r)
	report, err := os.ReadFile(filepath.Join(dir, "hpccoutf.txt"))
	require.NoError(t, err)
	return string(report), r
}

func TestHPCCIsUnchanged(t *testing.T) {
	timeless := func(report string) []string {
		var kept []string
		for _, line := range lines(report, hpccResults) {
			// Times stand before and behind the verdict of the transpose test.
			kept = append(kept, regexp.MustCompile(`\d+\.\d\d PASSED +\S+ +\S+`).ReplaceAllString(line, "PASSED"))
		}
		return kept
	}
	plain, _ := hpcc(t, "none")
	observed, r := hpcc(t, "")
	require.Contains(t, plain, "Success=1")
	assert.Equal(t, timeless(plain), timeless(observed))
	p := r.Profile(t)
	assert.True(t, p.Complete, p.Notes)
	assert.Positive(t, p.Total.Late)
	assert.Zero(t, p.Quality.EventsLost)
	assert.Greater(t, len(p.CallSites), 10)
}

func TestExamplesAreUnchanged(t *testing.T) {
	for name, command := range map[string][]string{
		"nbody":      {Example("nbody"), "20"},
		"mandelbrot": {Example("mandelbrot"), "4"},
		"heat":       {Example("heat"), "100"},
		"kmeans":     {"/usr/bin/python3", filepath.Join(Root, "examples", "kmeans.py"), "20"},
	} {
		t.Run(name, func(t *testing.T) {
			run := func(preload string) Result {
				r := Mpirun(t, Run{Preload: preload, Env: everyWay}, command[0], command[1:]...)
				require.Equal(t, 0, r.Status, r)
				return r
			}
			without, with := run("none"), run("")
			assert.NotEmpty(t, without.Stdout)
			assert.Equal(t, without.Stdout, with.Stdout)
			p := with.Profile(t)
			assert.True(t, p.Complete, p.Notes)
			assert.Positive(t, p.Total.Late)
		})
	}
}

func TestMpi4pyIsUnchanged(t *testing.T) {
	run := func(preload string) Result {
		r := Mpirun(t, Run{Preload: preload, Env: everyWay, Ranks: 3}, "/usr/bin/python3",
			filepath.Join(Root, "tests", "programs", "mpi4py_many.py"), "15")
		require.Equal(t, 0, r.Status, r)
		return r
	}
	without, with := run("none"), run("")
	assert.Len(t, lines(without.Stdout, "."), 15*10)
	assert.Equal(t, without.Stdout, with.Stdout)
}

// A rank has one Go runtime: its own, if it is a Go program.
func TestGoProgramsKeepTheirRuntime(t *testing.T) {
	for name, tags := range map[string]string{"alone": "", "with evenkeel's runtime": "attach"} {
		t.Run(name, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "spmd")
			build := exec.Command("go", "build", "-tags", tags, "-o", program, "./tests/programs/spmd")
			build.Dir = Root
			text, err := build.CombinedOutput()
			require.NoError(t, err, "%s", text)

			r := Mpirun(t, Run{}, program)
			assert.Equal(t, 0, r.Status, r)
			assert.Equal(t, "another Go runtime: false\n", r.Stdout)
			assert.Empty(t, ours(r.Stderr))
			AssertNothingLeft(t, r.Dir)
			p := r.Profile(t)
			assert.True(t, p.Complete, p.Notes)
			assert.Equal(t, int64(100), Calls(p)["MPI_Barrier"])
			require.NotEmpty(t, p.Culprits)
			assert.Equal(t, 1, p.Culprits[0].Rank)
		})
	}
}
