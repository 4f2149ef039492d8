package engine

import (
	"sync/atomic"

	"github.com/pkg/errors"

	"evenkeel/pgas/gsm/epoch"
	"evenkeel/pgas/gsm/wire"
)

// Operation is a command, and what becomes of it. The caller makes it, may use it
// again when it is done, and must leave it alone, with its Data, from Start until
// then.
type Operation struct {
	epoch.Command // but for Token, which is the engine's

	// Done is called once when the operation is done, if it is not nil: the
	// notification. It runs in whichever goroutine drives the engine, must return
	// soon, and may start operations but not wait for any.
	Done func(*Operation)

	result epoch.Notification
	err    error
	state  atomic.Uint32
	woken  chan struct{} // made by the first Wait that has to sleep
}

// States of an operation.
const (
	idle    uint32 = iota // never started, or done
	pending               // started
	parked                // and somebody sleeps until it is done
)

// Finished says whether the operation is done, or was never started.
func (o *Operation) Finished() bool { return o.state.Load() == idle }

// Value is the word as it was before an atomic; of an operation that is done.
func (o *Operation) Value() uint64 { return o.result.Value }

// Reply is what a message's handler replied; of an operation that is done.
func (o *Operation) Reply() []byte { return o.result.Reply }

// Err says why the operation failed, or nil; of one that is done. There is a
// wire.Reason in its chain. After Silent, Dead, Exhausted and Closed the
// operation may have been executed, or not.
func (o *Operation) Err() error {
	if o.err == nil && o.result.Reason == wire.OK {
		return nil
	}
	why := o.err
	if why == nil {
		why = o.result.Reason
	}
	if o.Op == wire.Message {
		return errors.Wrapf(why, "%v to handler %d of task %d", o.Op, o.Handler, o.Peer)
	}
	return errors.Wrapf(why, "%v of %d bytes at task %d, window %d, offset %d", o.Op, o.bytes(), o.Peer, o.Window, o.Offset)
}

func (o *Operation) bytes() int {
	if o.Op.Atomic() {
		return o.Width
	}
	return len(o.Data)
}

// finish is the operation's one notification.
func (o *Operation) finish(n *epoch.Notification, err error) {
	o.result, o.err = *n, err
	done := o.Done
	if o.state.Swap(idle) == parked {
		o.woken <- struct{}{}
	}
	if done != nil {
		done(o)
	}
}
