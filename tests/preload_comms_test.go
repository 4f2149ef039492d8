package tests

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// printedNumber reads the line "NAME n" of a program's output.
func printedNumber(t testing.TB, stdout, name string) int64 {
	t.Helper()
	found := regexp.MustCompile(`(?m)^` + name + ` (\d+)$`).FindStringSubmatch(stdout)
	require.NotNil(t, found, "no %s in:\n%s", name, stdout)
	n, err := strconv.ParseInt(found[1], 10, 64)
	require.NoError(t, err)
	return n
}

// Communicators that come and go leave nothing behind: not in the rank's
// memory, nor in the profile.
func TestCommunicatorsThatComeAndGo(t *testing.T) {
	size := func(n int) (profile int64) {
		result := Mpirun(t, Run{}, Program("comms"), strconv.Itoa(n))
		require.Zero(t, result.Status, result)
		assert.Equal(t, map[string]int64{"MPI_Comm_dup": int64(2 * n), "MPI_Barrier": int64(2 * n), "MPI_Comm_free": int64(2 * n)},
			Calls(result.Profile(t)))
		assert.Len(t, result.Profile(t).Communicators, 2)
		begin, end := printedNumber(t, result.Stdout, "peak_kib_at_tenth"), printedNumber(t, result.Stdout, "peak_kib_at_end")
		without := Mpirun(t, Run{Preload: "none"}, Program("comms"), strconv.Itoa(n))
		grows := printedNumber(t, without.Stdout, "peak_kib_at_end") - printedNumber(t, without.Stdout, "peak_kib_at_tenth")
		// Rings and history fill up to their fixed size: 64 bytes an event.
		assert.Less(t, end-begin, grows+8192, "KiB")
		return directorySize(t, result.Dir)
	}
	small, large := size(2000), size(20000)
	t.Logf("profile of 2,000 communicators: %d bytes, of 20,000: %d bytes", small, large)
	assert.Less(t, large, int64(8<<20))
}

func directorySize(t testing.TB, dir string) (bytes int64) {
	t.Helper()
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, f := range files {
		info, err := os.Stat(filepath.Join(dir, f.Name()))
		require.NoError(t, err)
		bytes += info.Size()
	}
	return bytes
}

// There is room for 253 communicators besides the world, the rank itself and
// "other", which takes the calls on those beyond. A thread has room for 512
// pairs of a place and a communicator, and nearly as many are used here: calls
// without a place of their own are "other calls", on no communicator.
func TestMoreCommunicatorsAtOnceThanThereIsRoomFor(t *testing.T) {
	const atOnce, ranks = 600, 2
	result := Mpirun(t, Run{Ranks: ranks}, Program("comms"), strconv.Itoa(atOnce), strconv.Itoa(atOnce))
	require.Zero(t, result.Status, result)
	p := result.Profile(t)
	calls := int64(0)
	for _, c := range p.Communicators {
		calls += c.Calls
		if c.Size == ranks && c.Name != "MPI_COMM_WORLD" {
			assert.LessOrEqual(t, c.Calls, int64(2*ranks), "the barrier and the free of %s", c.ID)
			assert.LessOrEqual(t, c.Operations, int64(2))
		}
	}
	assert.Equal(t, int64(3*atOnce*ranks), calls)
	assert.LessOrEqual(t, len(p.Communicators), 256)
	others := communicators(p, "other")
	require.Len(t, others, 1)
	assert.GreaterOrEqual(t, others[0].Calls, int64(2*(atOnce-253)*ranks))
	assert.Zero(t, others[0].Operations, "calls on different communicators are no operation")
}

// Parts of the world are told apart, are known by their names, and the rank
// that comes last to a part is known by its number in the world.
func TestPartsOfTheWorld(t *testing.T) {
	result := Mpirun(t, Run{Ranks: 4}, Program("grid"))
	assertCounted(t, result)
	p := result.Profile(t)
	// After each 30 barriers or 20 sums, the free is one more operation.
	for _, want := range []struct {
		name       string
		operations int64
		last       int
	}{{"row 0", 31, 1}, {"row 1", 31, 3}, {"column 0", 21, 0}, {"column 1", 21, 1}} {
		found := communicators(p, want.name)
		require.Len(t, found, 1, want.name)
		assert.Equal(t, 2, found[0].Size, want.name)
		assert.Equal(t, want.operations, found[0].Operations, want.name)
		assert.Equal(t, want.last, found[0].LastRank, want.name)
	}
	world := communicators(p, "MPI_COMM_WORLD")
	require.Len(t, world, 1)
	assert.Equal(t, int64(2), world[0].Operations, "two splits")
}

// Threads that each copy a communicator of their own do so in any order, which
// is not the same on all ranks: still the ranks agree which copy is which, and
// all operations find their members.
func TestCommunicatorsMadeByThreadsAtOnce(t *testing.T) {
	const threads, rounds, messages, ranks = 4, 10, 20, 2
	args := []string{fmt.Sprint(threads), fmt.Sprint(rounds), fmt.Sprint(messages)}
	result := Mpirun(t, Run{Ranks: ranks}, Program("thread_multiple"), args...)
	assertCounted(t, result)
	got, want := int64(0), int64(threads*(rounds+1)) // the threads' own are copied, and freed in the end
	for _, c := range result.Profile(t).Communicators {
		if c.Name == "" {
			got += c.Operations
		}
	}
	for thread := 1; thread <= threads; thread++ {
		want += int64(rounds * (messages/10 + thread + 1))
	}
	assert.Equal(t, want, got)
}
