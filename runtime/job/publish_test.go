package job

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/runtime/profile"
	"evenkeel/runtime/segment"
)

// published is what Publish wrote to stderr.
func published(t *testing.T, dir string, show bool, images ...[]byte) string {
	t.Helper()
	stderr, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	require.NoError(t, err)
	defer stderr.Close()
	own := decoded(t, images[0])
	require.NoError(t, Publish(own, images[1:], dir, stderr, show))
	text, err := os.ReadFile(stderr.Name())
	require.NoError(t, err)
	return string(text)
}

func decoded(t testing.TB, image []byte) *segment.Segment {
	t.Helper()
	s, err := segment.Decode(bytes.NewReader(image))
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// finished is the image of a node whose two ranks met once.
func finished(t *testing.T, h segment.Header) []byte {
	h.LocalRanks = 2
	r := record(t, h, 0)
	for i := range 2 {
		r.call(i, "MPI_Barrier", begin+uint64(i)*ms, begin+5*ms, 0)
		r.finalize(i, begin+9*ms)
	}
	return r.image()
}

func read(t *testing.T, dir string) *profile.Profile {
	t.Helper()
	p, err := profile.Read(filepath.Join(dir, ProfileName))
	require.NoError(t, err)
	return p
}

func filesIn(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestPublishKeepsProfileAndImages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "profile")
	stderr := published(t, dir, false, finished(t, segment.Header{}))
	assert.Empty(t, stderr)
	assert.Equal(t, []string{"profile.json", "world-1.node-0.image"}, filesIn(t, dir))
	p := read(t, dir)
	assert.Len(t, p.Ranks, 2)
	assert.InDelta(t, 1e-3, p.Ranks[0].Late, 1e-6)

	run, nodes, err := Load(dir)
	require.NoError(t, err)
	defer CloseAll(nodes)
	assert.Len(t, run.Ranks, 2, "and can be made anew from the images")
}

func TestPublishShowsTheSummary(t *testing.T) {
	for locale, heading := range map[string]string{"C": "-- evenkeel --", "C.UTF-8": "── evenkeel ──"} {
		t.Setenv("LC_ALL", locale)
		stderr := published(t, filepath.Join(t.TempDir(), "profile"), true, finished(t, segment.Header{}))
		assert.Contains(t, stderr, heading)
		assert.Contains(t, stderr, "parallel efficiency")
		assert.Contains(t, stderr, "evenkeel report")
	}
}

func TestPublishLeavesOtherJobsAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "profile")
	published(t, dir, false, finished(t, segment.Header{SampleSeed: 1}))
	before, err := os.Stat(filepath.Join(dir, ProfileName))
	require.NoError(t, err)

	published(t, dir, false, finished(t, segment.Header{SampleSeed: 2})) // the same job number, another run
	published(t, dir, false, finished(t, segment.Header{SampleSeed: 3}))
	assert.Len(t, filesIn(t, dir), 2)
	assert.Len(t, filesIn(t, dir+"-2"), 2)
	assert.Len(t, filesIn(t, dir+"-3"), 2)
	after, err := os.Stat(filepath.Join(dir, ProfileName))
	require.NoError(t, err)
	assert.Equal(t, before.ModTime(), after.ModTime())

	published(t, dir, false, finished(t, segment.Header{SampleSeed: 2})) // the same run again
	assert.NoDirExists(t, dir+"-4")
}

func TestPublishJoinsTheWorldsOfAJob(t *testing.T) {
	const worlds = 6
	dir := filepath.Join(t.TempDir(), "profile")
	var images [][]byte
	for world := range uint32(worlds) {
		images = append(images, finished(t, segment.Header{World: world + 1, SampleSeed: uint64(world)}))
	}
	var all sync.WaitGroup
	for _, image := range images { // all end at the same time
		own := decoded(t, image)
		all.Go(func() { assert.NoError(t, Publish(own, nil, dir, os.Stderr, false)) })
	}
	all.Wait()
	assert.Len(t, read(t, dir).Ranks, 2*worlds)
	assert.NoFileExists(t, filepath.Join(dir, ".lock"))
	assert.NoDirExists(t, dir+"-2")
}

func TestPublishKeepsEachNodesOwnImage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "profile")
	var images [][]byte
	for _, node := range []uint32{2, 0, 1} {
		images = append(images, finished(t, segment.Header{Nodes: 3, Node: node}))
	}
	published(t, dir, false, images...)
	for node := range uint32(3) {
		s, err := readImage(filepath.Join(dir, fmt.Sprintf(imagePattern, 1, node)))
		require.NoError(t, err)
		assert.Equal(t, node, s.Header.Node)
		s.Close()
	}
}

func TestPublishOverlooksADamagedImage(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "world-2.node-0.image"), []byte("damaged"), 0o644))
	published(t, dir, false, finished(t, segment.Header{}))
	assert.Len(t, read(t, dir).Ranks, 2)
}

func TestPublishWhereTheDirectoryCannotBe(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	stderr := published(t, filepath.Join(file, "profile"), false, finished(t, segment.Header{}))
	assert.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
	assert.Contains(t, stderr, "not a directory; the profile goes to "+os.TempDir())
	kept, err := filepath.Glob(filepath.Join(os.TempDir(), "profile-*"))
	require.NoError(t, err)
	require.Len(t, kept, 1)
	assert.Len(t, read(t, kept[0]).Ranks, 2)

	t.Setenv("TMPDIR", file)
	stderr = published(t, filepath.Join(file, "profile"), true, finished(t, segment.Header{}))
	assert.Contains(t, stderr, "the profile is not kept")
	assert.Contains(t, stderr, "parallel efficiency", "the summary is shown all the same")
}

func TestPublishNamesADamagedImage(t *testing.T) {
	own := decoded(t, finished(t, segment.Header{}))
	assert.ErrorContains(t, Publish(own, [][]byte{[]byte("x")}, t.TempDir(), os.Stderr, true), "not a node image")
}

func TestLoadNamesWhatIsWrong(t *testing.T) {
	_, _, err := Load(t.TempDir())
	assert.ErrorContains(t, err, "holds no recording of evenkeel")
	_, _, err = Load("no-such-job")
	assert.ErrorContains(t, err, "neither the directory of a profile nor a job that runs on this host")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "world-1.node-0.image"), []byte("damaged"), 0o644))
	_, _, err = Load(dir)
	assert.ErrorContains(t, err, "world-1.node-0.image: not a node image")
}
