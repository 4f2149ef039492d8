package tests

import (
	"bufio"
	"fmt"
	"os"
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
