package collectives

import (
	"fmt"
	"iter"

	"github.com/pkg/errors"
)

// Schedule says how data goes from a root to its receivers: the broadcast header's
// kind of communication (the shapes) and data schedule (the segments).
type Schedule struct {
	// Outer is the shape of the whole, or, where Inner is not None, of the tree
	// that leads to the first receiver on each node.
	Outer Shape
	// Inner is the shape within each node: a two-level schedule, in which the data
	// goes to each node once.
	Inner Shape
	// Segment is the length in bytes of the pieces in which data is passed on; 0:
	// in one piece.
	Segment uint32
}

// Check says why a schedule can't be used.
func (s Schedule) Check() error {
	if err := s.Outer.Check(); err != nil {
		return errors.WithMessage(err, "the outer shape")
	}
	if s.Inner.Kind == None {
		return nil
	}
	return errors.WithMessage(s.Inner.Check(), "the inner shape")
}

func (s Schedule) String() string {
	text := s.Outer.String()
	if s.Inner.Kind != None {
		text += " between nodes, " + s.Inner.String() + " within"
	}
	if s.Segment > 0 {
		text += fmt.Sprintf(", in segments of %d bytes", s.Segment)
	}
	return text
}

// Nodes says on which node a task runs. Nil: no one knows, and all schedules are of
// one level.
type Nodes func(Task) uint32

// Split yields the children of a task, and the receivers to which each of them
// passes on, in the order in which the task sends. The receivers are all others;
// where the schedule has two levels, those of a node must stand together, and those
// of the task's own node first (see Arrange). What it yields is so again, for the
// child. The slices are parts of receivers.
func (s Schedule) Split(task Task, receivers []Task, nodes Nodes) iter.Seq2[Task, []Task] {
	return func(yield func(Task, []Task) bool) {
		if s.Inner.Kind == None || nodes == nil {
			for first, end := range s.Outer.Ranges(len(receivers)) {
				if !yield(receivers[first], receivers[first+1:end]) {
					return
				}
			}
			return
		}
		own := 0
		for own < len(receivers) && nodes(receivers[own]) == nodes(task) {
			own++
		}
		begins := []int{own} // of the other nodes, and the end
		for i := own + 1; i <= len(receivers); i++ {
			if i == len(receivers) || nodes(receivers[i]) != nodes(receivers[i-1]) {
				begins = append(begins, i)
			}
		}
		for first, end := range s.Outer.Ranges(len(begins) - 1) {
			if !yield(receivers[begins[first]], receivers[begins[first]+1:begins[end]]) {
				return
			}
		}
		for first, end := range s.Inner.Ranges(own) {
			if !yield(receivers[first], receivers[first+1:end]) {
				return
			}
		}
	}
}
