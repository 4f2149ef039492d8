package job

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pkg/errors"
	"golang.org/x/sys/unix"

	"evenkeel/runtime/drain"
	"evenkeel/runtime/history"
	"evenkeel/runtime/segment"
)

// SegmentDir is where the segments of running jobs are.
const SegmentDir = "/dev/shm"

// Live is the segment of a running job on this host.
type Live struct {
	Path string
	*segment.Segment
}

// Job is the name of the job.
func (l Live) Job() string { return segment.Text(l.Header.Job[:]) }

// Find returns the segments on this host of a job, or of all jobs if the name
// is empty, ordered by job, world and node. Segments whose ranks are all dead
// are left out. The caller closes them.
func Find(name string) ([]Live, error) {
	paths, err := filepath.Glob(filepath.Join(SegmentDir, "evenkeel.*.*.*.*"))
	if err != nil {
		return nil, errors.Wrap(err, "cannot look into "+SegmentDir)
	}
	var found []Live
	for _, path := range paths {
		if !Alive(path) {
			continue
		}
		s, err := segment.Open(path, false)
		if err != nil {
			continue // another user's, or being made
		}
		l := Live{path, s}
		if name != "" && l.Job() != strings.TrimPrefix(name, "evenkeel.") {
			s.Close()
			continue
		}
		found = append(found, l)
	}
	slices.SortFunc(found, func(a, b Live) int {
		return cmp.Or(cmp.Compare(a.Job(), b.Job()), cmp.Compare(a.Header.World, b.Header.World),
			cmp.Compare(a.Header.Node, b.Header.Node))
	})
	return found, nil
}

// Now is the present in the ticks of the segment's node, which must be this
// one.
func Now(h *segment.Header) uint64 {
	var t unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return drain.ClockOf(h).Ticks(uint64(t.Nano()))
}

// Snapshot is a node of a running job as it stands now, drained. Ranks that are
// gone without a word are marked so. The caller closes it.
func (l Live) Snapshot() (*segment.Segment, error) {
	alive := living(l.Path, l.Segment)
	c, err := l.Copy()
	if err != nil {
		return nil, err
	}
	for i := range alive {
		rank := c.Area(i).Rank
		until := rank.DrainedTicks
		switch {
		case alive[i]:
			until = Now(c.Header)
		case rank.State == segment.RankRunning:
			rank.State = segment.RankKilled
		}
		drain.New(c, i).Drain(until)
	}
	return c, nil
}

// Load returns the run that a name stands for, and its nodes, which the caller
// closes: the directory of a profile, or a running job on this host.
func Load(name string) (*history.Run, []*segment.Segment, error) {
	nodes, err := load(name)
	if err != nil {
		return nil, nil, err
	}
	run, err := Assemble(nodes)
	if err != nil {
		CloseAll(nodes)
		return nil, nil, err
	}
	return run, nodes, nil
}

// CloseAll closes the segments.
func CloseAll(nodes []*segment.Segment) {
	for _, n := range nodes {
		n.Close()
	}
}

func load(name string) ([]*segment.Segment, error) {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		nodes, err := readImages(name)
		if err != nil {
			CloseAll(nodes)
			return nil, err
		}
		if len(nodes) == 0 {
			return nil, errors.Errorf("%s holds no recording of evenkeel (no world-*.node-*.image): name the directory that a run wrote, or a running job", name)
		}
		return nodes, nil
	}
	live, err := Find(name)
	if err != nil {
		return nil, err
	}
	if len(live) == 0 {
		return nil, errors.Errorf("%s is neither the directory of a profile nor a job that runs on this host%s", name, running())
	}
	var nodes []*segment.Segment
	for _, l := range live {
		n, err := l.Snapshot()
		l.Close()
		if err != nil {
			CloseAll(nodes)
			return nil, err
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// running lists the jobs that could have been meant.
func running() string {
	live, err := Find("")
	if err != nil || len(live) == 0 {
		return " (none runs here)"
	}
	var names []string
	for _, l := range live {
		names = append(names, l.Job())
		l.Close()
	}
	return fmt.Sprintf(" (running here: %s)", strings.Join(slices.Compact(names), ", "))
}
