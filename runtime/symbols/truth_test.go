package symbols

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// truth is what a program of testdata printed of one of its call sites: where
// it is, and what its source says of it.
type truth struct {
	module   string
	offset   uint64
	file     string
	line     int
	function string
	inlined  []string // name:line
}

// build runs a compiler on files of testdata and returns the result's path.
func build(t testing.TB, compiler string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(compiler)
	if err != nil {
		require.Empty(t, os.Getenv("CI"), "in CI, %s must be there", compiler)
		t.Skipf("%s is not installed", compiler)
	}
	_, err = os.ReadDir("testdata") // tells `go test` that results depend on what is there
	require.NoError(t, err)
	out := filepath.Join(t.TempDir(), "program")
	args = append(args, "-o", out)
	if compiler == "go" {
		args = append([]string{"build", "-o", out}, args[:len(args)-2]...)
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = "testdata"
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s: %s", cmd, text)
	return out
}

// command runs a tool that must succeed.
func command(t testing.TB, name string, args ...string) {
	t.Helper()
	text, err := exec.Command(name, args...).CombinedOutput()
	require.NoError(t, err, "%s %s: %s", name, args, text)
}

// run runs a program of testdata and returns what it printed.
func run(t testing.TB, program string) []truth {
	t.Helper()
	output, err := exec.Command(program).Output()
	require.NoError(t, err, program)
	var truths []truth
	for _, line := range strings.Split(strings.TrimSpace(string(output)), "\n") {
		columns := strings.Split(line, "\t")
		if len(columns) == 5 { // trimmed at the end of the output
			columns = append(columns, "")
		}
		require.Len(t, columns, 6, line)
		offset, err := strconv.ParseUint(columns[1], 16, 64)
		require.NoError(t, err)
		number, err := strconv.Atoi(columns[3])
		require.NoError(t, err)
		truths = append(truths, truth{columns[0], offset, columns[2], number, columns[4], strings.Fields(columns[5])})
	}
	return truths
}

// requireTruth asks for every call site of a program and compares.
func requireTruth(t *testing.T, r *Resolver, truths []truth) {
	t.Helper()
	require.NotEmpty(t, truths)
	for _, want := range truths {
		got := r.Resolve(want.module, want.offset)
		assert.Equal(t, want.function, got.Function, "%+v", want)
		assert.Equal(t, filepath.Base(want.file), filepath.Base(got.File), "%+v", want)
		assert.Equal(t, want.line, got.Line, "%+v", want)
		var inlined []string
		for _, outer := range got.Inlined {
			assert.Equal(t, filepath.Base(want.file), filepath.Base(outer.File), "%+v", want)
			assert.Empty(t, outer.Inlined)
			inlined = append(inlined, fmt.Sprintf("%s:%d", outer.Function, outer.Line))
		}
		assert.Equal(t, want.inlined, append([]string{}, inlined...), "%+v", want)
	}
}
