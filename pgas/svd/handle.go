package svd

import (
	"fmt"

	"evenkeel/collectives"
)

// Task is the number of a task in its job.
type Task = collectives.Task

// Handle names a shared object in the whole job: opaque to programs. It holds the
// partition (24 bits), the index in it (24 bits) and the generation (16 bits), which
// tells objects apart that had the same index one after the other; an index whose
// generations are used up is not used again. The zero Handle names nothing.
type Handle uint64

// All is the partition of static and collectively allocated objects, whose home is
// task 0; every other partition is that of the task with its number.
const All Task = 1<<24 - 1

const (
	maxIndex      = 1<<24 - 1
	maxGeneration = 1<<16 - 1
)

func newHandle(partition Task, index uint32, generation uint16) Handle {
	return Handle(partition)<<40 | Handle(index)<<16 | Handle(generation)
}

// Partition is the task to which the object has affinity, or All.
func (h Handle) Partition() Task { return Task(h >> 40) }

// Index is the object's place in its partition.
func (h Handle) Index() uint32 { return uint32(h>>16) & maxIndex }

// Generation is from 1.
func (h Handle) Generation() uint16 { return uint16(h) }

// Home is the task that keeps the object's entry, and changes it.
func (h Handle) Home() Task {
	if h.Partition() == All {
		return 0
	}
	return h.Partition()
}

func (h Handle) String() string {
	switch {
	case h == 0:
		return "no object"
	case h.Partition() == All:
		return fmt.Sprintf("everyone's object %d.%d", h.Index(), h.Generation())
	}
	return fmt.Sprintf("thread %d's object %d.%d", h.Partition(), h.Index(), h.Generation())
}
