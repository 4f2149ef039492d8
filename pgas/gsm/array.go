package gsm

import (
	"github.com/pkg/errors"

	"evenkeel/mpi"
	"evenkeel/pgas/gsm/memory"
	"evenkeel/runtime/fabric"
)

// Array is memory that all tasks allocated together: blocks dealt out to them in turn, block i to task i modulo Tasks. Its
// windows have the same number everywhere, so that every task knows all addresses without asking. The embedded Window is
// the calling task's own.
type Array struct {
	*Window
	place        uint64
	bytes, block uint64
}

// AllAllocate allocates zeroed bytes over all tasks, in blocks of so many bytes; 0 gives every task one block, as equal
// as multiples of 64 bytes allow. Every task opens a window over its share. Collective; all tasks must give the same
// arguments, and all get an error if one does.
func (j *Job) AllAllocate(bytes, block uint64, rights Rights) (*Array, error) {
	if err := j.same("allocating an array", bytes, block, uint64(rights)); err != nil {
		return nil, err
	}
	failed := func(err error) error {
		return errors.WithMessagef(err, "task %d: allocating an array of %d bytes in blocks of %d", j.task, bytes, block)
	}
	const most = 1 << 62 // more than any heap, and far from running over
	tasks := uint64(j.Tasks())
	if bytes == 0 || bytes > most {
		return nil, failed(ErrLength)
	}
	if block == 0 {
		block = ((bytes+tasks-1)/tasks + 63) / 64 * 64
	}
	a := &Array{bytes: bytes, block: block}
	place, err := j.space.Take(memory.Collective, a.share(0, tasks)) // no task has more than the first
	if err := j.agree(err, func() { j.space.Give(place) }); err != nil {
		return nil, failed(err)
	}
	a.place = place
	if a.Window, err = j.show(nil, memory.Collective, place, a.share(uint64(j.task), tasks), rights); err != nil {
		j.space.Give(place) // on all tasks, whose tables are alike
		return nil, failed(err)
	}
	// Nobody may use an address before its window is open.
	return a, j.settle()
}

// share is how many bytes a task has.
func (a *Array) share(task, tasks uint64) uint64 {
	blocks, rest := a.bytes/a.block, a.bytes%a.block
	share := blocks / tasks * a.block
	switch {
	case task < blocks%tasks:
		share += a.block
	case task == blocks%tasks:
		share += rest
	}
	return share
}

// same fails on all tasks unless all give the same numbers.
func (j *Job) same(what string, numbers ...uint64) error {
	if j.left.Load() {
		return errors.WithMessagef(ErrClosed, "task %d: %s", j.task, what)
	}
	var both []uint64
	for _, n := range numbers {
		both = append(both, n, ^n)
	}
	if err := mpi.AllreduceInPlace(j.comm, both, mpi.Max); err != nil {
		return errors.WithMessage(err, what)
	}
	for i, n := range numbers {
		if both[2*i] != n || both[2*i+1] != ^n {
			return errors.WithMessagef(ErrUnequal, "task %d: %s: argument %d is %d here, and up to %d and down to %d elsewhere",
				j.task, what, i+1, n, both[2*i], ^both[2*i+1])
		}
	}
	return nil
}

// Bytes is the length of the array, Block that of a block.
func (a *Array) Bytes() uint64 { return a.bytes }

// Block is the number of bytes of a block.
func (a *Array) Block() uint64 { return a.block }

// Local is the calling task's share: its blocks, one after the other.
func (a *Array) Local() []byte {
	return a.job.space.Self().Bytes(a.place, a.Window.bytes)
}

// Address is where a byte of the array is.
func (a *Array) Address(i uint64) Address {
	block, within := i/a.block, i%a.block
	tasks := uint64(len(a.job.areas))
	return Address{Task: fabric.Task(block % tasks), Window: a.number, Offset: block/tasks*a.block + within}
}

// Free gives the array back, when the commands of all tasks have ended. Collective, with the same array everywhere. The
// error of a command without notification is returned as by Fence; the array is freed nevertheless.
func (a *Array) Free() error {
	j := a.job
	if a.areas == nil {
		return errors.WithMessagef(ErrClosed, "task %d: freeing the array of window %d", j.task, a.number)
	}
	if err := j.same("freeing an array", uint64(a.number)); err != nil {
		return err
	}
	if err := j.settle(); err != nil {
		return err
	}
	failed := a.Fence()
	err := a.hide()
	if err == nil {
		err = j.space.Give(a.place)
	}
	if err := j.agree(err, func() {}); err != nil {
		return errors.WithMessagef(err, "task %d: freeing an array", j.task)
	}
	if err := j.settle(); err != nil {
		return err
	}
	return failed
}
