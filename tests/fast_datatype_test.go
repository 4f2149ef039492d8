package tests

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/runtime/profile"
)

const (
	fastNone     = "EVENKEEL_FAST=none"
	fastDatatype = "EVENKEEL_FAST=datatype"
)

// eachRank runs a program with a setting of its own for each rank.
func eachRank(t *testing.T, settings []string, program string, args ...string) Result {
	t.Helper()
	r := Run{Mpirun: []string{"--mca", "osc", "pt2pt"}, Env: []string{"EVENKEEL_SUMMARY=0"}}
	dir := t.TempDir() + "/profile"
	var command []string
	for i, setting := range settings {
		one := r
		one.Ranks = 1
		one.Env = append([]string{setting}, r.Env...)
		if i > 0 {
			one.Mpirun = nil // of the whole job
			command = append(command, ":")
		}
		part := one.mpirun(dir, program, args)
		if i > 0 {
			part = append(part[:2:2], part[3:]...) // --oversubscribe too
		}
		command = append(command, part...)
	}
	result := Command(t, r, "mpirun", command...)
	result.Dir = dir
	return result
}

func fastOf(t *testing.T, r Result) profile.Fast {
	t.Helper()
	return r.Profile(t).Fast
}

// Over 100,000 different random cases whose data are in pieces, each compared with an
// independent list of the bytes, and with what Open MPI packs by itself. Both ranks, one
// or none of them have compiled datatypes.
func TestRandomDatatypesAreMPIs(t *testing.T) {
	for _, c := range []struct {
		name     string
		cases    int
		seed     int
		settings [][]string
	}{
		{"one rank", 150000, 20261121, [][]string{{fastNone}, {fastDatatype}}},
		{"two ranks", 13000, 20261122, [][]string{{fastNone, fastNone}, {fastDatatype, fastDatatype}, {fastDatatype, fastNone}, {fastNone, fastDatatype}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			seed := strconv.Itoa(setting(t, "EVENKEEL_TEST_SEED", c.seed))
			plain := ""
			for i, settings := range c.settings {
				result := eachRank(t, settings, Program("datatype_random"), seed, strconv.Itoa(c.cases))
				require.Zero(t, result.Status, "%v seed %s: %v", settings, seed, result)
				require.EqualValues(t, c.cases, printedNumber(t, result.Stdout, "cases"))
				assert.Greater(t, printedNumber(t, result.Stdout, "in pieces"), int64(c.cases*4/5))
				fast := fastOf(t, result)
				if i == 0 {
					plain = result.Stdout
					assert.Zero(t, fast.Types+fast.TypesPlain+fast.Packed+fast.Unpacked)
					continue
				}
				assert.Equal(t, plain, result.Stdout, "%v seed %s", settings, seed)
				assert.Greater(t, fast.Types, int64(c.cases*3/4))
				assert.Greater(t, fast.Packed+fast.Unpacked, int64(c.cases/3))
			}
		})
	}
}

// Counting, truncation, zero counts, absolute addresses, in-place, pending
// messages of freed types, types committed meanwhile, bytes named twice, those of another
// architecture, addresses that are used again, errors.
func TestEdgesOfDatatypesAreMPIs(t *testing.T) {
	plain := eachRank(t, []string{fastNone, fastNone}, Program("datatype_edges"))
	require.Zero(t, plain.Status, plain)
	require.Regexp(t, regexp.MustCompile(`(?m)^elements \d+$`), plain.Stdout)
	for _, settings := range [][]string{{fastDatatype, fastDatatype}, {fastDatatype, fastNone}, {fastNone, fastDatatype}} {
		result := eachRank(t, settings, Program("datatype_edges"))
		require.Zero(t, result.Status, result)
		assert.Equal(t, plain.Stdout, result.Stdout, "%v", settings)
		fast := fastOf(t, result)
		assert.Greater(t, fast.Types, int64(2900))
		assert.Greater(t, fast.Packed, int64(2900))
		assert.Positive(t, fast.Unpacked)
	}
}

// A table that is full takes no more, and takes new ones where others were freed;
// those beside them are found as before. What is contiguous is not counted.
func TestMoreDatatypesThanPrograms(t *testing.T) {
	const most, more, spaced, fortran, elsewhere = 6144, 856, 10, 3, 9000
	result := Mpirun(t, Run{Ranks: 1, Env: []string{fastDatatype}}, Program("datatype_table"), "many")
	require.Zero(t, result.Status, result)
	assert.Contains(t, result.Stdout, fmt.Sprintf("packed %d\n", most+more+most/2+most/2+1+most/2))
	assert.NotContains(t, result.Stdout, "wrong")
	fast := fastOf(t, result)
	assert.EqualValues(t, most+most/2+spaced+fortran+elsewhere, fast.Types)
	assert.EqualValues(t, more+1, fast.TypesPlain)
	assert.EqualValues(t, most+most/2+most/2+most/2, fast.Packed)
}

// Slots come free all over the table, and the search for a datatype that is in none of
// them ends.
func TestDatatypesThatComeAndGo(t *testing.T) {
	const live, changes = 5000, 150000
	result := Mpirun(t, Run{Ranks: 1, Env: []string{fastDatatype}}, Program("datatype_table"), "changing")
	require.Zero(t, result.Status, result)
	assert.Equal(t, fmt.Sprintf("packed %d\n", (live+changes)/1000+live), result.Stdout)
	fast := fastOf(t, result)
	assert.EqualValues(t, live+changes, fast.Types)
	assert.Zero(t, fast.TypesPlain)
	assert.EqualValues(t, (live+changes)/1000+live, fast.Packed)
}

// 100,000 small ones, half of them nested, and more programs than there may be at once:
// 550 MiB.
func TestFreedDatatypesLeaveNothing(t *testing.T) {
	result := Mpirun(t, Run{Ranks: 1, Env: []string{fastDatatype}}, Program("datatype_table"), "again")
	require.Zero(t, result.Status, result)
	assert.Contains(t, result.Stdout, "small leave nothing\nlarge leave nothing\n")
	fast := fastOf(t, result)
	assert.EqualValues(t, 110000+90, fast.Types)
	assert.Zero(t, fast.TypesPlain)
}

// Of the sender, and then of both sides.
func TestMoreThan2GiBInOneDatatype(t *testing.T) {
	if free := availableMemory(t); free < 5<<30 {
		t.Skipf("it takes 3 GiB of memory, of which %d MiB are available", free>>20)
	}
	const sent, received = 5 << 29, 5 << 29 / 8 * 7
	result := Mpirun(t, Run{Env: []string{fastDatatype}}, Program("datatype_edges"), "huge")
	require.Zero(t, result.Status, result)
	assert.Equal(t, fmt.Sprintf("bytes %d\nwrong 0\nbytes %d\nwrong 0\n", sent, received), result.Stdout)
	fast := fastOf(t, result)
	assert.EqualValues(t, sent+received, fast.PackedBytes)
	assert.EqualValues(t, received, fast.UnpackedBytes)
}

func availableMemory(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/meminfo")
	require.NoError(t, err)
	for _, line := range strings.Split(string(text), "\n") {
		if words := strings.Fields(line); len(words) > 1 && words[0] == "MemAvailable:" {
			kib, err := strconv.ParseInt(words[1], 10, 64)
			require.NoError(t, err)
			return kib << 10
		}
	}
	return 0
}

func TestDatatypesOfOtherLanguagesAreCompiled(t *testing.T) {
	for _, c := range []struct {
		language string
		command  []string
		types    int64 // of both ranks
	}{
		{"Fortran, mpi", []string{Program("datatype_fortran_mpi")}, 4},
		{"Fortran, mpi_f08", []string{Program("datatype_fortran_f08")}, 4},
		{"Python", []string{python, Source("datatype.py")}, 4},
	} {
		t.Run(c.language, func(t *testing.T) {
			result := Mpirun(t, Run{Env: []string{fastDatatype}}, c.command[0], c.command[1:]...)
			require.Zero(t, result.Status, result)
			assert.NotContains(t, result.Stdout, "wrong")
			fast := fastOf(t, result)
			assert.Equal(t, c.types, fast.Types)
			assert.Zero(t, fast.TypesPlain)
			assert.Positive(t, fast.Packed)
			assert.Positive(t, fast.Unpacked)
		})
	}
}
