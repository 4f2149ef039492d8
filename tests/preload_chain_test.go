package tests

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// toolCounts reads what tool.c counted.
func toolCounts(t testing.TB, stdout string) map[string]int64 {
	t.Helper()
	counts := map[string]int64{}
	for _, line := range regexp.MustCompile(`(?m)^tool (MPI_\w+) (\d+)$`).FindAllStringSubmatch(stdout, -1) {
		n, err := strconv.ParseInt(line[2], 10, 64)
		require.NoError(t, err)
		counts[line[1]] += n
	}
	require.NotEmpty(t, counts, "the tool said nothing:\n%s", stdout)
	return counts
}

// Another tool before ours, behind it, or linked to the program as a library:
// each sees each call once.
func TestToolsInAChainSeeEachCallOnce(t *testing.T) {
	chain, pmpi := Program("libtool_chain.so"), Program("libtool_pmpi.so")
	for _, c := range []struct{ name, preload, program string }{
		{"before", chain + ":" + Library, "calls"},
		{"behind", Library + ":" + chain, "calls"},
		{"behind, calling PMPI", Library + ":" + pmpi, "calls"},
		{"separated by a space", Library + " " + chain, "calls"},
		{"linked as a library", Library, "calls_with_tool_library"},
	} {
		t.Run(c.name, func(t *testing.T) {
			result := Mpirun(t, Run{Preload: c.preload}, Program(c.program))
			assertCounted(t, result)
			made := printedCounts(t, result.Stdout)
			for function, seen := range toolCounts(t, result.Stdout) {
				assert.Equal(t, made[function], seen, function)
			}
		})
	}
}

// Functions that the program itself defines call PMPI past everybody else:
// they work as without us, and all others are recorded.
func TestToolInsideTheProgramWorks(t *testing.T) {
	result := Mpirun(t, Run{}, Program("calls_with_tool"))
	require.Zero(t, result.Status, result)
	made, recorded := printedCounts(t, result.Stdout), Calls(result.Profile(t))
	for function, seen := range toolCounts(t, result.Stdout) {
		assert.Equal(t, made[function], seen, function)
		assert.NotContains(t, recorded, function)
		delete(made, function)
	}
	assert.Equal(t, made, recorded)
}
