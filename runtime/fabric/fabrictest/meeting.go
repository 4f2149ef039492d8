package fabrictest

import (
	"sync"

	"evenkeel/runtime/fabric"
)

// Meetings are those of so many tasks of one process, each to be used by a
// goroutine of its own.
func Meetings(tasks int) []fabric.Meeting {
	r := &room{said: make([][]byte, tasks)}
	r.changed.L = &r.lock
	meetings := make([]fabric.Meeting, tasks)
	for i := range meetings {
		meetings[i] = seat{room: r, task: fabric.Task(i)}
	}
	return meetings
}

// room is where tasks exchange what they say, in rounds.
type room struct {
	lock    sync.Mutex
	changed sync.Cond
	said    [][]byte
	count   int
	round   int
	heard   [][]byte // in the round before
}

type seat struct {
	room *room
	task fabric.Task
}

func (s seat) Self() fabric.Task { return s.task }
func (s seat) Tasks() int        { return len(s.room.said) }

func (s seat) Exchange(mine []byte) ([][]byte, error) {
	r := s.room
	r.lock.Lock()
	defer r.lock.Unlock()
	r.said[s.task] = append([]byte(nil), mine...)
	if r.count++; r.count == len(r.said) {
		r.heard = append([][]byte(nil), r.said...)
		r.count = 0
		r.round++
		r.changed.Broadcast()
		return r.heard, nil
	}
	for round := r.round; r.round == round; {
		r.changed.Wait()
	}
	return r.heard, nil
}
