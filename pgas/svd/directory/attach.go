package directory

import (
	"time"

	"github.com/pkg/errors"

	"evenkeel/pgas/gsm/engine"
	"evenkeel/pgas/gsm/epoch"
	"evenkeel/pgas/gsm/wire"
	"evenkeel/pgas/svd"
	"evenkeel/runtime/fabric"
)

// Attached is a directory whose messages are active messages of an engine, which
// proves who sends them, delivers each once, and serves the job's other traffic too.
type Attached struct {
	*Directory
	handlers *engine.Handlers
	number   wire.Handler
	wake     chan struct{}
	closed   chan struct{}
	ended    chan struct{}
}

// Attach makes a directory over an engine whose handlers are these. Number is the
// directory's handler, the same in all tasks. Self, Limit, Send and Changed of the
// configuration are the engine's; since it repeats what is lost itself, Retry can be
// long. Silent is also told of tasks that the engine finds silent or dead. All tasks
// have attached before one uses the directory.
func Attach(e *engine.Engine, handlers *engine.Handlers, number wire.Handler, c Config) (*Attached, error) {
	a := &Attached{handlers: handlers, number: number, wake: make(chan struct{}, 1), closed: make(chan struct{}), ended: make(chan struct{})}
	c.Self, c.Limit = e.Self(), 1<<30
	for t := range svd.Task(c.Tasks) {
		if t != c.Self {
			c.Limit = min(c.Limit, e.MessageLimit(t))
		}
	}
	silent := c.Silent
	c.Send = func(to svd.Task, message []byte) {
		// What is not started, since the engine is closed, is as good as lost.
		_ = e.Start(&engine.Operation{
			Command: epoch.Command{Op: wire.Message, Peer: to, Handler: number, Data: message},
			Done: func(o *engine.Operation) {
				if err := o.Err(); silent != nil && (errors.Is(err, wire.Silent) || errors.Is(err, wire.Dead)) {
					silent(to)
				}
			},
		})
	}
	c.Changed = func() {
		select {
		case a.wake <- struct{}{}:
		default:
		}
	}
	d, err := New(c)
	if err != nil {
		return nil, err
	}
	a.Directory = d
	err = handlers.Messages(number, func(source fabric.Task, data, reply []byte) ([]byte, error) {
		_ = d.Receive(source, data) // what is no message is as good as lost
		return reply, nil
	})
	if err != nil {
		return nil, err
	}
	go a.repeat()
	return a, nil
}

// repeat lets the directory repeat what is not answered.
func (a *Attached) repeat() {
	defer close(a.ended)
	timer := time.NewTimer(longWait)
	defer timer.Stop()
	for {
		wait, waits := a.Tick()
		if !waits {
			wait = longWait
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-a.wake:
		case <-a.closed:
			return
		}
	}
}

// longWait is how long nobody looks where nothing is waited for.
const longWait = time.Minute

// Close takes the directory off the engine. It is called once.
func (a *Attached) Close() {
	a.handlers.Remove(a.number)
	close(a.closed)
	<-a.ended
}
