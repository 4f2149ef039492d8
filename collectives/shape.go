// Package collectives says who passes what on to whom when one task has something
// for many, or many for one: schedules for broadcast, notification and reduction,
// and a cost model that chooses between them.
//
// A schedule is never stored as a tree. It says how a root cuts the receivers that
// it has before it into ranges, one for each of its children, and a child is the
// root of its range. So a message that carries its range needs nothing else to be
// passed on, a tree of 100,000 tasks costs a task only the ranges on its own way,
// and there is one definition of each shape, from which the tests, the cost model
// and the state machine of package relay all follow.
//
// Everything here is a pure function of its arguments: no MPI, no clock.
package collectives

import (
	"fmt"
	"iter"

	"github.com/pkg/errors"

	"evenkeel/runtime/fabric"
)

// Task is the number of a task in its job.
type Task = fabric.Task

// Kind is a family of trees.
type Kind uint8

// The families. In all of them the tasks below a child follow it directly in the
// order of receivers, so that a reduction combines neighbours.
const (
	// None is no shape: the level of a schedule that is not used.
	None Kind = iota
	// Flat has the root send to everyone by itself.
	Flat
	// Knomial is the k-nomial tree: in each of log_k n rounds all that have the
	// data send it to Radix-1 others. Radix 2 is the binomial tree.
	Knomial
	// Kary is the tree in which every task sends to Radix others, for data in
	// segments: with Radix 1 the chain (pipeline).
	Kary
)

// Shape is a tree for any number of tasks.
type Shape struct {
	Kind  Kind
	Radix uint8 // of Knomial (from 2) and Kary (from 1)
}

// Binomial and Chain are the shapes with names of their own.
var (
	Binomial = Shape{Knomial, 2}
	Chain    = Shape{Kary, 1}
)

// Check says why a shape can't be used.
func (s Shape) Check() error {
	switch {
	case s.Kind == Flat,
		s.Kind == Knomial && s.Radix >= 2,
		s.Kind == Kary && s.Radix >= 1:
		return nil
	case s.Kind == Knomial || s.Kind == Kary:
		return errors.Errorf("a %s tree can't have radix %d", s.Kind, s.Radix)
	}
	return errors.Errorf("%d is no kind of tree", s.Kind)
}

func (k Kind) String() string {
	switch k {
	case None:
		return "none"
	case Flat:
		return "flat"
	case Knomial:
		return "k-nomial"
	case Kary:
		return "k-ary"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

func (s Shape) String() string {
	switch {
	case s == Binomial:
		return "binomial"
	case s == Chain:
		return "chain"
	case s.Kind == Knomial || s.Kind == Kary:
		return fmt.Sprintf("%d-%s", s.Radix, s.Kind.String()[2:])
	}
	return s.Kind.String()
}

// Ranges cuts n receivers, numbered from 0, into one range [first, end) for each
// child of their root, in the order in which the root sends. The first of a range
// is the child; it passes on to the others.
func (s Shape) Ranges(n int) iter.Seq2[int, int] {
	return func(yield func(first, end int) bool) {
		switch s.Kind {
		case Flat:
			for i := range n {
				if !yield(i, i+1) {
					return
				}
			}
		case Knomial:
			s.knomial(n, yield)
		case Kary:
			for i, first := 0, 0; first < n; i++ {
				end := first + (n-first+int(s.Radix)-i-1)/(int(s.Radix)-i)
				if !yield(first, end) {
					return
				}
				first = end
			}
		}
	}
}

// knomial: place v of the tree, the root being 0, has the children v + d*k^i
// (0 < d < k) for every k^i below the last digit of v to the base k that is not 0.
// The largest subtrees, which take longest, are sent to first.
func (s Shape) knomial(n int, yield func(first, end int) bool) {
	k, power := int(s.Radix), 1
	for power*k <= n {
		power *= k
	}
	for ; power > 0; power /= k {
		for place := power; place < power*k && place <= n; place += power {
			if !yield(place-1, min(place-1+power, n)) {
				return
			}
		}
	}
}

// Degree is the largest number of children that a task has where the root has n
// receivers: the root's.
func (s Shape) Degree(n int) int {
	degree := 0
	switch s.Kind {
	case Flat:
		return n
	case Kary:
		return min(n, int(s.Radix))
	}
	for range s.Ranges(n) {
		degree++
	}
	return degree
}

// Depth is how many times a message is passed on, at most, until n receivers have
// it.
func (s Shape) Depth(n int) int {
	switch {
	case n == 0:
		return 0
	case s.Kind == Flat:
		return 1
	case s == Chain:
		return n
	}
	largest := 0 // the largest range is also the deepest
	for first, end := range s.Ranges(n) {
		largest = max(largest, end-first)
	}
	return 1 + s.Depth(largest-1)
}
