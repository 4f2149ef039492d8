package tests

import (
	"bufio"
	"fmt"
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
