package tests

import (
	"bufio"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/runtime/profile"
)

// printedRegion is a line of regions.c, summed over ranks.
type printedRegion struct {
	name           string
	entries, calls int64
	seconds        float64
}

func printedRegions(t testing.TB, stdout string) []printedRegion {
	t.Helper()
	var regions []printedRegion
	lines := bufio.NewScanner(strings.NewReader(stdout))
	for lines.Scan() {
		var r printedRegion
		_, err := fmt.Sscanf(lines.Text(), "region %s entries %d calls %d seconds %f", &r.name, &r.entries, &r.calls, &r.seconds)
		require.NoError(t, err, "%q", lines.Text())
		regions = append(regions, r)
	}
	require.NotEmpty(t, regions)
	return regions
}

// regionsByName also checks that no region is there twice.
func regionsByName(t testing.TB, p *profile.Profile) map[string]profile.Region {
	t.Helper()
	regions := map[string]profile.Region{}
	for _, r := range p.Regions {
		require.NotContains(t, regions, r.Name)
		regions[r.Name] = r
	}
	return regions
}

// assertRegion compares a region with what the program printed of it. Times are
// taken a moment apart, and a rank may lose its core in between.
func assertRegion(t testing.TB, want printedRegion, got profile.Region) {
	t.Helper()
	assert.Equal(t, want.calls, got.Calls, "calls in %s", want.name)
	assert.Equal(t, want.entries, got.Entries, "entries of %s", want.name)
	assert.InDelta(t, want.seconds, got.Useful+got.MPI, 0.05*want.seconds+0.05, "seconds in %s", want.name)
}

func TestRegionsByNameAndNumber(t *testing.T) {
	for _, convention := range []string{"named", "numbered"} {
		t.Run(convention, func(t *testing.T) {
			result := Mpirun(t, Run{}, Program("regions"), convention)
			require.Zero(t, result.Status, result)
			printed, regions := printedRegions(t, result.Stdout), regionsByName(t, result.Profile(t))
			require.Len(t, regions, len(printed))
			whole, outer, inner := printed[0], printed[1], printed[2]
			assertRegion(t, whole, regions["whole run"])
			assertRegion(t, outer, regions[outer.name])
			assertRegion(t, inner, regions[inner.name])
			assert.Equal(t, "whole run", regions[outer.name].Parent)
			assert.Equal(t, outer.name, regions[inner.name].Parent)
		})
	}
}

// What is done with recording off is counted, and in no time.
func TestRecordingOffAndOn(t *testing.T) {
	result := Mpirun(t, Run{}, Program("regions"), "onoff")
	require.Zero(t, result.Status, result)
	p := result.Profile(t)
	printed, regions := printedRegions(t, result.Stdout), regionsByName(t, p)
	whole, off := printed[0], printed[1]
	require.Len(t, regions, 1)
	assertRegion(t, whole, regions["whole run"])
	assert.Equal(t, whole.calls+off.calls, p.Quality.Calls)
	assert.InDelta(t, whole.seconds, p.Total.Useful+p.Total.MPI, 0.05*whole.seconds+0.05)
	assert.Equal(t, whole.calls, p.Quality.TimedCalls)
}

// MPI_Pcontrol(1) with nothing behind the 1 finds in its register what was left
// there: any text, or what is no address at all. It opens no region.
func TestPcontrolWithoutName(t *testing.T) {
	result := Mpirun(t, Run{}, Program("pcontrol"))
	require.Zero(t, result.Status, result)
	p := result.Profile(t)
	regions := regionsByName(t, p)
	require.Len(t, regions, 1)
	assert.Equal(t, int64(2*10), regions["whole run"].Calls)
	assert.Equal(t, int64(2*15), p.Quality.Calls)
}

// A program that is linked to evenkeel is recorded without a preload, and marks
// its regions by ek_region_begin.
func TestProgramLinkedToEvenkeel(t *testing.T) {
	for _, preload := range []string{"none", Library} {
		result := Mpirun(t, Run{Preload: preload}, Program("linked"))
		require.Zero(t, result.Status, result)
		assert.Equal(t, strings.Repeat("inactive, active, inactive\n", 2), result.Stdout)
		regions := regionsByName(t, result.Profile(t))
		require.Len(t, regions, 3)
		assert.Equal(t, int64(2*20), regions["solve"].Calls)
		assert.Equal(t, int64(2*10), regions["solve"].Entries)
		assert.Equal(t, int64(2*30), regions["exchange"].Calls)
		assert.Equal(t, "solve", regions["exchange"].Parent)
		assert.Equal(t, int64(2*1), regions["whole run"].Calls)
	}
}
