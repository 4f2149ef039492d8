package job

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/pkg/errors"
	"golang.org/x/sys/unix"

	"evenkeel/runtime/segment"
)

// Watch waits until every rank of the segment is gone. If they did not make
// their profile themselves, because the job was aborted or killed, it makes it
// from what they left, and it removes the segment. Nothing is asked of the
// ranks meanwhile.
func Watch(path string, stderr *os.File, show bool) error {
	s, err := segment.Open(path, true)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := waitForAll(path, s); err != nil {
		return err
	}
	if segment.Load(&s.Header.Reported) != 0 {
		return nil
	}
	defer os.Remove(path)
	return postmortem(s, stderr, show)
}

// waitForAll returns when no rank holds its lock any more.
func waitForAll(path string, s *segment.Segment) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if os.IsNotExist(err) {
		return nil // finished already
	}
	if err != nil {
		return errors.Wrap(err, "cannot watch the node segment")
	}
	defer file.Close()
	for i := range int(s.Header.LocalRanks) {
		lock := unix.Flock_t{Type: unix.F_WRLCK, Start: int64(i), Len: 1}
		for {
			err := unix.FcntlFlock(file.Fd(), unix.F_SETLKW, &lock)
			if err == nil {
				break
			}
			if !errors.Is(err, unix.EINTR) {
				return errors.Wrap(err, "cannot wait for the ranks' locks")
			}
		}
		waitForProcess(path, s, i)
	}
	return nil
}

// waitForProcess waits for a rank that lost its lock but lives: one that closed
// all its files. It still has the segment mapped.
func waitForProcess(path string, s *segment.Segment, i int) {
	rank := s.Area(i).Rank
	for segment.Load(&rank.State) == segment.RankRunning {
		maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", segment.Load(&rank.Pid)))
		if err != nil || !bytes.Contains(maps, []byte(path)) {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// patience is how long the first node's watcher waits for the others' images
// before it shows a summary without them.
const patience = 2 * time.Second

// postmortem writes the profile of a node whose ranks are dead. Each node's
// watcher adds its image and makes the profile anew; the first node's shows
// the summary.
func postmortem(s *segment.Segment, stderr *os.File, show bool) error {
	if !anythingRecorded(s) {
		return nil
	}
	c, err := s.Copy()
	if err != nil {
		return err
	}
	defer c.Close()
	// Assembling drains the rings, so that the image holds all there is.
	if _, err := Assemble([]Node{{Segment: c}}); err != nil {
		return err
	}
	var image bytes.Buffer
	if err := c.Encode(&image); err != nil {
		return err
	}
	dir := segment.Text(s.Header.Out[:])
	images := [][]byte{image.Bytes()}
	if s.Header.Nodes > 1 {
		images = append(images, otherNodes(dir, s.Header)...)
	}
	return Publish(images, dir, stderr, show && s.Header.Node == 0)
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
		other, err := segment.Decode(bytes.NewReader(image))
		if err != nil {
			continue
		}
		if other.Header.SampleSeed == h.SampleSeed {
			images = append(images, image)
		}
		other.Close()
	}
	return images
}
