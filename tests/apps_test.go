package tests

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The applications that are measured compare their results with those of a sequential program by themselves. Their
// checksums depend neither on the way, nor on the language, nor on the number of ranks.
func TestApplications(t *testing.T) {
	build := exec.Command("make", "-C", filepath.Join(Root, "bench"), "BUILD="+Build,
		filepath.Join(Build, "bench", "apps"), filepath.Join(Build, "bench", "apps_go"))
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	sums := map[string]string{}
	for program, lines := range map[string]int{"apps": 4 * 3, "apps_go": 4 * 2} {
		for _, ranks := range []int{1, 2, 4} {
			r := Mpirun(t, Run{Ranks: ranks, Preload: "none", Env: []string{"EVENKEEL_ENABLE=0"}},
				filepath.Join(Build, "bench", program), "1", "6")
			require.Zero(t, r.Status, "%s, %d ranks: %s", program, ranks, r)
			printed := 0
			for line := range strings.Lines(r.Stdout) {
				fields := strings.Fields(line)
				require.Len(t, fields, 3, line)
				name, _, _ := strings.Cut(fields[0], ".")
				if _, known := sums[name]; !known {
					sums[name] = fields[2]
				}
				assert.Equal(t, sums[name], fields[2], "%s, %d ranks: %s", program, ranks, fields[0])
				printed++
			}
			assert.Equal(t, lines, printed, r)
		}
	}
	assert.Len(t, sums, 4)
	for program, wanted := range map[string]string{"apps": "usage", "apps_go": "a power of two"} {
		r := Mpirun(t, Run{Ranks: 3, Preload: "none"}, filepath.Join(Build, "bench", program))
		assert.NotZero(t, r.Status, program)
		assert.Contains(t, r.Stderr, wanted, program)
	}
}
