package tests

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// place is a call site as a program knows it, and how often it came by there.
type place struct {
	call, function, file string
	line                 int
	calls                int64
}

// Programs and libraries lie at other addresses in each rank; a call site is
// the same on all of them, and its function and line are those of the source:
// in a position-independent program, in its library, in a static function, and
// in one that was inlined into another.
func TestCallSitesAreThoseOfTheSource(t *testing.T) {
	const ranks = 3
	result := Mpirun(t, Run{Ranks: ranks}, Program("deep"))
	require.Zero(t, result.Status, result)

	var want, got []place
	lines := bufio.NewScanner(strings.NewReader(result.Stdout))
	for lines.Scan() {
		var p place
		_, err := fmt.Sscanf(lines.Text(), "site %s %s %s %d %d", &p.call, &p.function, &p.file, &p.line, &p.calls)
		require.NoError(t, err, "%q", lines.Text())
		p.calls *= ranks
		want = append(want, p)
	}
	require.NotEmpty(t, want)
	modules := map[string]string{"deep.c": "deep", "deep_library.c": "libdeep.so"}
	for _, s := range result.Profile(t).CallSites {
		file := filepath.Base(s.File)
		got = append(got, place{s.Call, s.Function, file, s.Line, s.Calls})
		assert.Equal(t, modules[file], s.Module)
	}
	assert.ElementsMatch(t, want, got)
}

// mpi4py is the module that calls, but the places are the program's.
func TestCallSitesOfPythonAreThoseOfTheSource(t *testing.T) {
	const ranks = 2
	result := Mpirun(t, Run{Ranks: ranks}, python, Source("sites.py"))
	require.Zero(t, result.Status, result)

	var want, got []place
	lines := bufio.NewScanner(strings.NewReader(result.Stdout))
	for lines.Scan() {
		p := place{file: "sites.py"}
		_, err := fmt.Sscanf(lines.Text(), "site %s %s %d %d", &p.call, &p.function, &p.line, &p.calls)
		require.NoError(t, err, "%q", lines.Text())
		if p.function == "<module>" && p.line == 3 {
			p.file = "made at run time"
		}
		p.calls *= ranks
		want = append(want, p)
	}
	require.Len(t, want, 11)
	for _, s := range result.Profile(t).CallSites {
		file := filepath.Base(s.File)
		got = append(got, place{s.Call, s.Function, file, s.Line, s.Calls})
		assert.Equal(t, file+"::"+s.Function, s.Module)
	}
	assert.ElementsMatch(t, want, got)
}

// In an example, too, every place is in the program.
func TestCallSitesOfAGoExample(t *testing.T) {
	program := filepath.Join(t.TempDir(), "heat")
	text, err := exec.Command("go", "build", "-o", program, "../examples/go/heat").CombinedOutput()
	require.NoError(t, err, "%s", text)
	result := Mpirun(t, Run{Ranks: 3}, program, "-cells", "101", "-steps", "500")
	require.Zero(t, result.Status, result)
	sites := result.Profile(t).CallSites
	functions := map[string]bool{}
	for _, s := range sites {
		functions[s.Call+" "+s.Function] = true
		assert.Regexp(t, `^main\.`, s.Function)
		assert.True(t, strings.HasSuffix(s.File, "examples/go/heat/main.go"), "%s:%d", s.File, s.Line)
	}
	for _, want := range []string{"MPI_Cart_create main.run", "MPI_Wait main.(*rod).step", "MPI_Allreduce main.(*rod).deviation"} {
		assert.True(t, functions[want], "%s: %v", want, functions)
	}
}

// What partitions, arrays, halos and split jobs call is called where the program calls them.
func TestCallSitesOfWhatEvenkeelCalls(t *testing.T) {
	for _, c := range []struct {
		program, preload, file string
		args                   []string
	}{
		{Program("partition_random"), linked, "partition_random.c", []string{"3", "30", "200"}},
		{Program("halo_random"), linked, "halo_random.c", []string{"3", "20", "200"}},
		{Program("split_random"), linked, "split_random.c", []string{"3", "6"}},
		{Program("gsm_message"), linked, "gsm_message.c", nil},
		{Program("partition_fortran"), linked, "partition_fortran.f90", nil},
		{Example("fractal"), "", "main.go", []string{"-frames", "6"}},
		{Example("fractal"), "", "main.go", []string{"-frames", "3", "-way", "split"}},
	} {
		result := Mpirun(t, Run{Ranks: 2, Preload: c.preload}, c.program, c.args...)
		require.Zero(t, result.Status, result)
		p := result.Profile(t)
		assert.Contains(t, Calls(p), "MPI_Barrier", "of a step, a split job's begin or a global fence")
		for _, s := range p.CallSites {
			assert.Equal(t, c.file, filepath.Base(s.File), "%s %v: %s in %s (%s:%d)", c.program, c.args, s.Call, s.Function, s.File, s.Line)
		}
	}
}

// The calls of a Go program are its own, not those of package mpi, which makes them
// for it. But for the two by which it tells the ranks of a new window's size.
func TestCallSitesOfGoAreThoseOfTheSource(t *testing.T) {
	const ranks = 2
	result := Mpirun(t, Run{Ranks: ranks}, Program("go_sites"))
	require.Zero(t, result.Status, result)

	source, err := os.ReadFile(Source("go_sites/main.go"))
	require.NoError(t, err)
	var want, got []string
	for i, line := range strings.Split(string(source), "\n") {
		_, comment, _ := strings.Cut(line, "//")
		for call := range strings.FieldsSeq(comment) {
			if strings.HasPrefix(call, "MPI_") {
				want = append(want, fmt.Sprintf("%s main.go:%d", call, i+1))
			}
		}
	}
	for _, s := range result.Profile(t).CallSites {
		if !strings.HasPrefix(s.Function, "evenkeel/mpi.") {
			got = append(got, fmt.Sprintf("%s %s:%d", s.Call, filepath.Base(s.File), s.Line))
			assert.Regexp(t, `^main\.(messages|collectives|communicators|windows)(\.func\d+)?(\.gowrap\d+)?$`, s.Function)
		} else {
			assert.Equal(t, "window.go", filepath.Base(s.File))
		}
	}
	assert.ElementsMatch(t, want, got)
}
