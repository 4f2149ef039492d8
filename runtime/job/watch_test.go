package job

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/runtime/profile"
	"evenkeel/runtime/segment"
)

const nobody = 1 << 30 // above any process number

// recordTwo is a node of two ranks that met once and are in the middle of the
// run. Its profile goes to the returned directory.
func recordTwo(t *testing.T) (recorder, string) {
	dir := filepath.Join(t.TempDir(), "profile")
	h := segment.Header{LocalRanks: 2}
	copy(text(h.Out[:]), dir)
	r := record(t, h, 0)
	for i := range 2 {
		r.call(i, "MPI_Barrier", begin+uint64(i)*ms, begin+5*ms, 0)
		r.s.Area(i).Rank.Pid = nobody
	}
	return r, dir
}

func states(p *profile.Profile) []string {
	var s []string
	for _, r := range p.Ranks {
		s = append(s, r.State)
	}
	return s
}

func TestWatchMakesTheProfileOfTheDead(t *testing.T) {
	r, dir := recordTwo(t)
	l := r.live()
	require.NoError(t, Watch(l.Path, os.Stderr, false))
	assert.NoFileExists(t, l.Path)
	assert.Equal(t, []string{"killed", "killed"}, states(read(t, dir)))
}

func TestWatchHasNothingToDoForAGoodEnd(t *testing.T) {
	r, dir := recordTwo(t)
	for i := range 2 {
		r.finalize(i, begin+9*ms)
	}
	r.s.Header.Reported = segment.ReportMade
	l := r.live()
	require.NoError(t, Watch(l.Path, os.Stderr, false))
	assert.FileExists(t, l.Path, "the ranks remove it themselves")
	assert.NoDirExists(t, dir)
}

func TestWatchOfRanksWithoutTheRuntime(t *testing.T) {
	r, dir := recordTwo(t)
	for i := range 2 {
		r.finalize(i, begin+9*ms)
	}
	l := r.live()
	require.NoError(t, Watch(l.Path, os.Stderr, false))
	assert.NoFileExists(t, l.Path)
	assert.Equal(t, []string{"finalized", "finalized"}, states(read(t, dir)))
	assert.True(t, read(t, dir).Complete)
}

func TestWatchTellsOfABadEndBeforeTheOthersCome(t *testing.T) {
	r, dir := recordTwo(t)
	r.s.Area(1).Rank.Pid = uint32(os.Getpid()) // rank 1 lives
	l := r.live()
	stderr, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	require.NoError(t, err)
	defer stderr.Close()
	watched := make(chan error)
	go func() { watched <- Watch(l.Path, stderr, true) }()
	require.Eventually(t, func() bool { return segment.Load(&l.Header.Reported) == segment.ReportEarly }, time.Minute, time.Millisecond)
	early := read(t, dir)
	assert.Equal(t, []string{"killed", "running"}, states(early))
	assert.Contains(t, early.Notes[1], "The other ranks still ran at")
	assert.Equal(t, uint32(os.Getpid()), segment.Load(&l.Header.Watcher))
	assert.FileExists(t, l.Path)

	rank := l.Area(1).Rank
	segment.Store(&rank.FinalizeEnter, Now(l.Header))
	segment.Store(&rank.State, segment.RankFinalized)
	require.NoError(t, <-watched)
	assert.Equal(t, []string{"killed", "finalized"}, states(read(t, dir)))
	assert.NoFileExists(t, l.Path)
	shown, err := os.ReadFile(stderr.Name())
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(string(shown), "parallel efficiency"), "the summary is shown once")
}

// The launcher may be gone by then, and with it whoever reads what it passes on.
func TestWatchThatNobodyListensTo(t *testing.T) {
	r, dir := recordTwo(t)
	r.s.Area(1).Rank.Pid = uint32(os.Getpid()) // rank 1 lives
	l := r.live()
	reader, stderr, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, reader.Close())
	defer stderr.Close()
	watched := make(chan error)
	go func() { watched <- Watch(l.Path, stderr, true) }()
	require.Eventually(t, func() bool { return segment.Load(&l.Header.Reported) == segment.ReportEarly }, time.Minute, time.Millisecond)

	rank := l.Area(1).Rank
	segment.Store(&rank.FinalizeEnter, Now(l.Header))
	segment.Store(&rank.State, segment.RankFinalized)
	assert.ErrorContains(t, <-watched, "broken pipe")
	assert.Equal(t, []string{"killed", "finalized"}, states(read(t, dir)), "the profile is made of all")
	assert.NoFileExists(t, l.Path)
}

func TestWatchOfAJobThatDiedInMPIInit(t *testing.T) {
	r, dir := recordTwo(t)
	for i := range 2 {
		r.s.Area(i).Rank.State, r.s.Area(i).Rank.InitLeave = segment.RankEmpty, 0
	}
	l := r.live()
	require.NoError(t, Watch(l.Path, os.Stderr, true))
	assert.NoFileExists(t, l.Path)
	assert.NoDirExists(t, dir)
}

func TestWatchOfAJobThatIsOverAlready(t *testing.T) {
	assert.NoError(t, Watch(filepath.Join(t.TempDir(), "gone"), os.Stderr, true))
}

func TestWatchRefusesAForeignFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "foreign")
	require.NoError(t, os.WriteFile(path, make([]byte, 9000), 0o600))
	assert.ErrorContains(t, Watch(path, os.Stderr, true), "not a node segment")
	assert.FileExists(t, path)
}

func TestAliveWhileARankHasTheSegmentMapped(t *testing.T) {
	r := record(t, segment.Header{LocalRanks: 1}, 0)
	l := r.live()
	assert.True(t, Alive(l.Path))
	segment.Store(&l.Area(0).Rank.Pid, nobody)
	assert.False(t, Alive(l.Path))
	assert.False(t, Alive(l.Path+"x"))
}

// A segment that another build of evenkeel made can't be read, but is not left
// behind either.
func TestWatchRemovesASegmentThatItCannotRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "evenkeel.0.1.1.0")
	foreign := append([]byte("EVENKEEL"), make([]byte, 8192)...)
	require.NoError(t, os.WriteFile(path, foreign, 0o600))
	assert.ErrorContains(t, Watch(path, os.Stderr, false), "what was recorded on this node is lost")
	assert.NoFileExists(t, path)
}
