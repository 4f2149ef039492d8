// Package courier carries the messages of a protocol core (collectives/carrier) as
// active messages of a task's engine, which proves who sends them, delivers each once,
// and serves the job's other traffic too.
package courier

import (
	"sync"
	"time"

	"github.com/pkg/errors"

	"evenkeel/collectives/carrier"
	"evenkeel/pgas/gsm/engine"
	"evenkeel/pgas/gsm/epoch"
	"evenkeel/pgas/gsm/wire"
	"evenkeel/runtime/fabric"
)

// Courier is a carrier over an engine. The engine repeats what is lost, so the core's own
// repetitions can be far apart.
type Courier struct {
	engine   *engine.Engine
	handlers *engine.Handlers
	number   wire.Handler
	silent   func(fabric.Task)
	core     carrier.Core
	alarm    *carrier.Alarm
	wake     chan struct{}
	closed   chan struct{}
	ended    chan struct{}
	idle     sync.Pool // of *parcel
}

var _ carrier.Carrier = (*Courier)(nil)

// parcel is a message under way.
type parcel struct{ engine.Operation }

// New makes a courier over an engine whose handlers are these. Number is its handler, the
// same in all tasks. Silent is told of tasks that the engine finds silent or dead; nil:
// nobody.
func New(e *engine.Engine, handlers *engine.Handlers, number wire.Handler, silent func(fabric.Task)) *Courier {
	c := &Courier{engine: e, handlers: handlers, number: number, silent: silent, alarm: carrier.NewAlarm(),
		wake: make(chan struct{}, 1), closed: make(chan struct{}), ended: make(chan struct{})}
	c.idle.New = func() any {
		p := &parcel{}
		p.Done = func(o *engine.Operation) { c.done(p) }
		return p
	}
	return c
}

// Self is the engine's task.
func (c *Courier) Self() fabric.Task { return c.engine.Self() }

// Limit is what an active message can hold.
func (c *Courier) Limit(tasks int) int {
	limit := 1 << 30
	for t := range fabric.Task(tasks) {
		if t != c.Self() {
			limit = min(limit, c.engine.MessageLimit(t, wire.JobKey))
		}
	}
	return limit
}

// Start has messages run the core.
func (c *Courier) Start(core carrier.Core) error {
	c.core = core
	err := c.handlers.Messages(c.number, func(source fabric.Task, data, reply []byte) ([]byte, error) {
		_ = core.Receive(source, data) // what is no message is as good as lost
		return reply, nil
	})
	if err != nil {
		return err
	}
	go c.repeat()
	return nil
}

// Send starts an active message. What is not started, since the engine is closed, is as
// good as lost.
func (c *Courier) Send(to fabric.Task, message []byte) {
	p := c.idle.Get().(*parcel)
	p.Command = epoch.Command{Op: wire.Message, Peer: to, Handler: c.number, Data: message}
	_ = c.engine.Start(&p.Operation)
}

func (c *Courier) done(p *parcel) {
	if err := p.Err(); err != nil && c.silent != nil && (errors.Is(err, wire.Silent) || errors.Is(err, wire.Dead)) {
		c.silent(p.Peer)
	}
	p.Data = nil
	c.idle.Put(p)
}

// Due wakes the goroutine that repeats, if it sleeps for longer.
func (c *Courier) Due(in time.Duration) {
	if c.alarm.Late(in) {
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
}

// repeat lets the core repeat what is not answered.
func (c *Courier) repeat() {
	defer close(c.ended)
	timer := time.NewTimer(carrier.LongWait)
	defer timer.Stop()
	for {
		c.alarm.Awake()
		timer.Reset(c.alarm.Asleep(c.core.Tick()))
		select {
		case <-timer.C:
		case <-c.wake:
		case <-c.closed:
			return
		}
	}
}

// Close takes the core off the engine, which goes on.
func (c *Courier) Close() error {
	c.handlers.Remove(c.number)
	close(c.closed)
	<-c.ended
	return nil
}
