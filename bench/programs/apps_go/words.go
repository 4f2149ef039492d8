package main

import (
	"unsafe"

	"evenkeel/mpi"
	"evenkeel/pgas/gsm"
	"evenkeel/runtime/fabric"
)

// words are memory of all ranks, of 8 bytes each: a word is of a task, and has a number there.
type words interface {
	Local() []uint64
	Xor(task, word int, operand uint64) error
	Add(task, word int, operand uint64) error
	CompareAndSwap(task, word int, compare, value uint64) (old uint64, err error)
	Get(task, word int) (uint64, error)
	Fence() error // what any rank has done is seen by all; collective
	Free() error
}

// newWords makes so many words for each rank, in both ways.
func (j *job) newWords(count int) (both [ways]words, err error) {
	array, err := j.gsm.AllAllocate(uint64(8*count*j.ranks), uint64(8*count), gsm.AllowAll)
	if err != nil {
		return both, err
	}
	both[ours] = ourWords{array, j.gsm}
	both[mpis], err = newMPIWords(count)
	return both, err
}

func freeWords(both [ways]words) error {
	for _, w := range both {
		if err := w.Free(); err != nil {
			return err
		}
	}
	return nil
}

type ourWords struct {
	*gsm.Array
	job *gsm.Job
}

func (w ourWords) at(task, word int) gsm.Address {
	return gsm.Address{Task: fabric.Task(task), Window: w.Number(), Offset: uint64(8 * word)}
}

func (w ourWords) Local() []uint64 {
	local := w.Array.Local()
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(local))), len(local)/8)
}

func (w ourWords) Xor(task, word int, operand uint64) error {
	return w.Xor64(w.at(task, word), operand)
}
func (w ourWords) Add(task, word int, operand uint64) error {
	return w.Add64(w.at(task, word), operand)
}
func (w ourWords) Get(task, word int) (uint64, error) { return w.Get64(w.at(task, word)) }
func (w ourWords) Fence() error                       { return w.job.GlobalFence() }

func (w ourWords) CompareAndSwap(task, word int, compare, value uint64) (old uint64, err error) {
	return w.CompareAndSwap64(w.at(task, word), compare, value)
}

// mpiWords are a window of MPI_Win_allocate_shared.
type mpiWords struct {
	*mpi.Win[uint64]
	one []uint64 // where MPI puts what it got
}

func newMPIWords(count int) (words, error) {
	w, err := mpi.WinAllocateShared[uint64](mpi.World, count)
	if err != nil {
		return nil, err
	}
	return &mpiWords{w, make([]uint64, 1)}, w.LockAll()
}

func (w *mpiWords) Xor(task, word int, operand uint64) error {
	return w.update(task, word, operand, mpi.Bxor)
}

func (w *mpiWords) Add(task, word int, operand uint64) error {
	return w.update(task, word, operand, mpi.Sum)
}

func (w *mpiWords) update(task, word int, operand uint64, op mpi.Op) error {
	if err := w.FetchAndOp(operand, &w.one[0], task, word, op); err != nil {
		return err
	}
	return w.FlushLocal(task)
}

func (w *mpiWords) CompareAndSwap(task, word int, compare, value uint64) (old uint64, err error) {
	if err := w.Win.CompareAndSwap(value, compare, &w.one[0], task, word); err != nil {
		return 0, err
	}
	err = w.Flush(task)
	return w.one[0], err
}

func (w *mpiWords) Get(task, word int) (uint64, error) {
	if err := w.Win.Get(w.one, task, word); err != nil {
		return 0, err
	}
	err := w.Flush(task)
	return w.one[0], err
}

func (w *mpiWords) Fence() error {
	if err := w.FlushAll(); err != nil {
		return err
	}
	if err := w.Sync(); err != nil {
		return err
	}
	if err := mpi.World.Barrier(); err != nil {
		return err
	}
	return w.Sync()
}

func (w *mpiWords) Free() error {
	if err := w.UnlockAll(); err != nil {
		return err
	}
	return w.Win.Free()
}
