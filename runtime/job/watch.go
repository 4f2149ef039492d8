package job

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/pkg/errors"

	"evenkeel/runtime/segment"
)

// Watch waits until every rank of the segment is gone. If they did not make
// their profile themselves, because the job was aborted or killed, it makes it
// from what they left, and it removes the segment. Nothing is asked of the
// ranks meanwhile.
//
// When the first rank comes to a bad end, the launcher ends the others and
// soon listens to nobody. So the summary is shown then, and a profile that
// holds the end of the others too is made when they are gone.
func Watch(path string, stderr *os.File, show bool) error {
	s, err := segment.Open(path, true)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // finished already
	}
	if err != nil {
		return errors.WithMessage(err, removeAtTheEnd(path))
	}
	defer s.Close()
	ended, err := ends(path, s)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	mpirun := findLauncher(int(segment.Load(&s.Area(0).Rank.Pid)))
	segment.Store(&s.Header.Watcher, uint32(os.Getpid()))
	for left := int(s.Header.LocalRanks); left > 0; {
		i := <-ended
		left--
		if segment.Load(&s.Header.Reported) != 0 || !badEnd(s.Area(i).Rank) {
			continue
		}
		if segment.Load(&s.Area(i).Rank.State) != segment.RankAborted { // which waits for us
			left = settle(ended, left)
		}
		if left == 0 {
			break
		}
		// What fails now, as where nobody listens any more, is tried again at the end, when the segment goes.
		if postmortem(path, s, mpirun.choose(stderr), show) == nil {
			show = false
		}
		segment.Store(&s.Header.Reported, segment.ReportEarly)
	}
	if segment.Load(&s.Header.Reported) == segment.ReportMade {
		return nil
	}
	defer os.Remove(path)
	return postmortem(path, s, mpirun.choose(stderr), show)
}

// badEnd says whether a rank that is gone left before MPI_Finalize had the
// profile made.
func badEnd(rank *segment.Rank) bool {
	switch segment.Load(&rank.State) {
	case segment.RankFinalized, segment.RankEmpty:
		return false
	}
	return true
}

// settle gives the other ranks a moment to end too, so that one report does
// for all. It returns how many are left.
func settle(ended <-chan int, left int) int {
	for deadline := time.After(100 * time.Millisecond); left > 0; left-- {
		select {
		case <-ended:
		case <-deadline:
			return left
		}
	}
	return left
}

// patience is how long the first node's watcher waits for the others' images
// before it shows a summary without them.
const patience = 2 * time.Second

// postmortem writes the profile of a node of which ranks are dead. Each node's
// watcher adds its image and makes the profile anew; the first node's shows
// the summary.
func postmortem(path string, s *segment.Segment, stderr *os.File, show bool) error {
	if !anythingRecorded(s) {
		return nil
	}
	node, err := Live{path, s}.Snapshot()
	if err != nil {
		return err
	}
	defer node.Close()
	dir := segment.Text(s.Header.Out[:])
	var others [][]byte
	if s.Header.Nodes > 1 {
		others = otherNodes(dir, s.Header)
	}
	return Publish(node, others, dir, stderr, show && s.Header.Node == 0)
}

func anythingRecorded(s *segment.Segment) bool {
	for i := range int(s.Header.LocalRanks) {
		if s.Area(i).Rank.InitLeave != 0 {
			return true
		}
	}
	return false
}

// otherNodes are the images that the watchers of the world's other nodes have
// written. Node 0 gives them a moment.
func otherNodes(dir string, h *segment.Header) [][]byte {
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		images := imagesOf(dir, h)
		if h.Node != 0 || len(images) == int(h.Nodes)-1 || time.Now().After(deadline) {
			return images
		}
	}
}

func imagesOf(dir string, h *segment.Header) [][]byte {
	var images [][]byte
	for node := range h.Nodes {
		if node == h.Node {
			continue
		}
		image, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf(imagePattern, h.World, node)))
		if err != nil {
			continue
		}
		other, err := segment.DecodeHeader(bytes.NewReader(image))
		if err == nil && other.SampleSeed == h.SampleSeed {
			images = append(images, image)
		}
	}
	return images
}
