package job

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/pkg/errors"
	"golang.org/x/sys/unix"

	"evenkeel/runtime/segment"
)

// Each rank holds the lock of one byte of the segment's file, which the kernel
// takes back from the dead, whatever they died of. A program that closes files
// it does not know loses that lock and lives; it still has the segment mapped.

// Alive says whether a rank that records into the segment still lives. Of a
// segment that can't be read (another version's, or one being made) only the
// locks tell.
func Alive(path string) bool {
	s, err := segment.Open(path, false)
	if err != nil {
		return locked(path)
	}
	defer s.Close()
	return slices.Contains(living(path, s), true)
}

// locked says whether any byte of the file is locked.
func locked(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	return unix.FcntlFlock(file.Fd(), unix.F_GETLK, &lock) == nil && lock.Type != unix.F_UNLCK
}

// living says of each rank of the node whether it lives.
func living(path string, s *segment.Segment) []bool {
	alive := make([]bool, s.Header.LocalRanks)
	file, err := os.Open(path)
	if err != nil {
		return alive
	}
	defer file.Close()
	for i := range alive {
		lock := unix.Flock_t{Type: unix.F_WRLCK, Start: int64(i), Len: 1}
		err := unix.FcntlFlock(file.Fd(), unix.F_GETLK, &lock)
		alive[i] = err == nil && lock.Type != unix.F_UNLCK || hasMapped(path, s.Area(i).Rank)
	}
	return alive
}

// hasMapped says whether a rank that has not said that it is done still has
// the segment mapped.
func hasMapped(path string, rank *segment.Rank) bool {
	if segment.Load(&rank.State) != segment.RankRunning {
		return false
	}
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", segment.Load(&rank.Pid)))
	return err == nil && bytes.Contains(maps, []byte(path))
}

// ends returns a channel that tells the number of each rank of the node when it
// is gone, or done with its segment.
func ends(path string, s *segment.Segment) (<-chan int, error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, errors.Wrap(err, "cannot watch the node segment")
	}
	ended := make(chan int, s.Header.LocalRanks)
	for i := range int(s.Header.LocalRanks) {
		go func() {
			awaitLock(file, int64(i), 1)
			for hasMapped(path, s.Area(i).Rank) {
				time.Sleep(200 * time.Millisecond)
			}
			if rank := s.Area(i).Rank; segment.Load(&rank.State) == segment.RankRunning {
				segment.Store(&rank.DrainedTicks, Now(s.Header)) // it was there until now
				segment.Store(&rank.State, segment.RankKilled)
			}
			ended <- i
		}()
	}
	return ended, nil
}

// removeAtTheEnd removes a segment that can't be read, since another build of
// evenkeel made it, when no rank lives that uses it. It says what was done.
func removeAtTheEnd(path string) string {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return "nothing is known of this job"
	}
	defer file.Close()
	if !segment.IsSegment(file) {
		return "cannot watch"
	}
	awaitLock(file, 0, 0)
	os.Remove(path)
	return "what was recorded on this node is lost"
}

// awaitLock returns when no rank holds the lock of any of these bytes (none:
// all to the end of the file), or that can't be known.
func awaitLock(file *os.File, from, bytes int64) {
	lock := unix.Flock_t{Type: unix.F_WRLCK, Start: from, Len: bytes}
	for errors.Is(unix.FcntlFlock(file.Fd(), unix.F_SETLKW, &lock), unix.EINTR) {
	}
	lock.Type = unix.F_UNLCK // only ranks hold locks
	unix.FcntlFlock(file.Fd(), unix.F_SETLK, &lock)
}
