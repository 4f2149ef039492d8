package shared

import (
	"github.com/pkg/errors"

	"evenkeel/mpi"
)

// barrier is the split-phase barrier under way.
type barrier struct {
	request *mpi.Request
	values  []uint64
	sent    []uint64
	value   uint64
}

// Notify is upc_notify: the thread has come to the barrier, and may do what is its own until it calls
// Wait. All threads must give the same value, or Wait tells all of them. What the thread wrote before is
// seen by all after their Wait.
func (w *World) Notify(value uint64) error {
	if err := w.usable("notify"); err != nil {
		return err
	}
	if err := w.Fence(); err != nil {
		return err
	}
	b := barrier{values: make([]uint64, 2), sent: []uint64{value, ^value}, value: value}
	request, err := mpi.Iallreduce(w.comm, b.sent, b.values, mpi.Max)
	if err != nil {
		return errors.WithMessagef(err, "thread %d: notify", w.thread)
	}
	b.request = request
	w.barrier = b
	return nil
}

// Wait is upc_wait: it returns when all threads have called Notify.
func (w *World) Wait() error {
	b := w.barrier
	if b.request == nil {
		return errors.Errorf("thread %d: wait: without a notify", w.thread)
	}
	w.barrier = barrier{}
	if _, err := b.request.Wait(); err != nil {
		return errors.WithMessagef(err, "thread %d: wait", w.thread)
	}
	if most, least := b.values[0], ^b.values[1]; most != least {
		return errors.Errorf("thread %d: barrier %d: other threads are at barriers from %d to %d", w.thread, b.value, least, most)
	}
	return w.Fence()
}

// Barrier is upc_barrier.
func (w *World) Barrier(value uint64) error {
	if err := w.Notify(value); err != nil {
		return err
	}
	return w.Wait()
}
