package tests

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
			require.NotEmpty(t, p.Culprits)
			culprit := p.Culprits[0]
			assert.Equal(t, 1, culprit.Rank)
			// Where others use the machine, ranks also wait in between.
			least, most := slept-0.06, slept+0.06+0.5*(p.Total.Elapsed-slept)+5*p.Total.LateError
			assert.Greater(t, culprit.Cost, least)
			assert.Less(t, culprit.Cost, most)
			require.NotEmpty(t, p.CallSites)
			assert.Equal(t, call, p.CallSites[0].Call)
			assert.Greater(t, p.CallSites[0].Late, least)
			assert.Less(t, p.CallSites[0].Late, most)
		})
	}
}
