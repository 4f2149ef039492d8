package tests

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/runtime/profile"
)

// One long wait in a place that is otherwise thick and fast is hardly ever in
// the sample, and is seen all the same: for whom, and, within the 50 ms between
// two looks of the drainer, for how long.
func TestOneLongWaitAmongManyShortOnes(t *testing.T) {
	for way, call := range map[string]string{"barrier": "MPI_Barrier", "pingpong": "MPI_Recv"} {
		t.Run(way, func(t *testing.T) {
			result := Mpirun(t, Run{}, Program("rare"), way, "500000")
			require.Zero(t, result.Status, result)
			var slept float64
			_, err := fmt.Sscanf(result.Stdout, "slept %f", &slept)
			require.NoError(t, err, result)

			p := result.Profile(t)
			assert.Less(t, p.Quality.TimedCalls, p.Quality.Calls/2, "the long one may just have been in the sample")
			i := slices.IndexFunc(p.Culprits, func(c profile.Culprit) bool { return c.Rank == 1 })
			require.GreaterOrEqual(t, i, 0)
			culprit := p.Culprits[i]
			// Where others use the machine, ranks also wait in between.
			least, most := slept-0.06, slept+0.06+0.5*(p.Total.Elapsed-slept)+5*p.Total.LateError
			assert.Greater(t, culprit.Cost, least)
			assert.Less(t, culprit.Cost, most)
			late := map[string]float64{}
			for _, site := range p.CallSites {
				late[site.Call] = max(late[site.Call], site.Late)
			}
			assert.Greater(t, late[call], least)
			assert.Less(t, late[call], most)
		})
	}
}
