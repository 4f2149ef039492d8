package measure

import (
	"github.com/pkg/errors"

	"evenkeel/collectives"
	"evenkeel/runtime/fabric"
)

// Pair measures a kind of fabric between two tasks of this process, each of which
// joins it.
func Pair(join func(fabric.Meeting) (fabric.Fabric, error)) (collectives.Link, error) {
	type result struct {
		network collectives.Network
		err     error
	}
	results := make(chan result, 2)
	there, back := make(chan []byte, 1), make(chan []byte, 1)
	for task, s := range []seat{{0, there, back}, {1, back, there}} {
		go func() {
			f, err := join(s)
			if err != nil {
				results <- result{err: errors.WithMessagef(err, "task %d", task)}
				return
			}
			n, err := Network(s, f, nil)
			if failed := f.Close(); err == nil {
				err = failed
			}
			results <- result{n, err}
		}()
	}
	first := <-results
	if first.err != nil {
		return collectives.Link{}, first.err // the other may wait for ever; it is idle
	}
	second := <-results
	return second.network.Between, second.err
}

// seat is where a task of a Pair exchanges what it has to say.
type seat struct {
	task      fabric.Task
	say, hear chan []byte
}

func (s seat) Self() fabric.Task { return s.task }
func (s seat) Tasks() int        { return 2 }

func (s seat) Exchange(mine []byte) ([][]byte, error) {
	s.say <- append([]byte(nil), mine...)
	other := <-s.hear
	if s.task == 0 {
		return [][]byte{mine, other}, nil
	}
	return [][]byte{other, mine}, nil
}
