// Package carrier carries the messages of a protocol core over a fabric: a goroutine
// that receives, lets the core repeat, sends, and sleeps when there is nothing to do.
package carrier

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/pkg/errors"

	"evenkeel/runtime/fabric"
)

// Core is what messages are carried for. Both functions are called by the carrier's
// goroutine.
type Core interface {
	// Receive takes a packet, whose bytes are valid until it returns. With an error
	// it is as good as lost.
	Receive(from fabric.Task, packet []byte) error
	// Tick says in what time it is to be called again, at the latest; false: not
	// before something has arrived or Wake was called.
	Tick() (time.Duration, bool)
}

// Carrier has a fabric to itself.
type Carrier struct {
	core   Core
	fabric fabric.Fabric

	lock    sync.Mutex // over queue
	queue   []fabric.Packet
	queued  atomic.Bool
	asleep  atomic.Bool
	closing atomic.Bool
	ended   chan struct{}
}

// batch is how many packets are received at once; longWait how long a carrier sleeps
// where nothing is to be done.
const (
	batch    = 64
	longWait = time.Second
)

// New makes a carrier that does nothing until Start, for a core that sends through it.
func New(f fabric.Fabric) *Carrier {
	return &Carrier{fabric: f, ended: make(chan struct{})}
}

// Start starts the carrier's goroutine. It is called once.
func (c *Carrier) Start(core Core) {
	c.core = core
	go c.carry()
}

// Self is the task whose end of the fabric this is.
func (c *Carrier) Self() fabric.Task { return c.fabric.Self() }

// Limit is the length in bytes of the longest message that the fabric takes to each
// of so many tasks.
func (c *Carrier) Limit(tasks int) int {
	limit := 1 << 30
	for t := range fabric.Task(tasks) {
		if t != c.fabric.Self() {
			limit = min(limit, c.fabric.MTU(t))
		}
	}
	return limit
}

// Send sends a message, or loses it. It does not block; the message is the carrier's
// from then on. Any goroutine may call it.
func (c *Carrier) Send(to fabric.Task, message []byte) {
	c.lock.Lock()
	c.queue = append(c.queue, fabric.Packet{Peer: to, Class: fabric.Control, Data: message})
	c.queued.Store(true)
	c.lock.Unlock()
	if c.asleep.Load() {
		c.fabric.Wake()
	}
}

// Wake has the carrier call Tick. Any goroutine may call it.
func (c *Carrier) Wake() { c.fabric.Wake() }

// Close ends the goroutine and closes the fabric. What is still to be sent is lost.
func (c *Carrier) Close() error {
	if c.closing.Swap(true) {
		return errors.New("it is closed")
	}
	c.fabric.Wake()
	<-c.ended
	return c.fabric.Close()
}

func (c *Carrier) carry() {
	defer close(c.ended)
	var in [batch]fabric.Packet
	var out []fabric.Packet
	for !c.closing.Load() {
		n, err := c.fabric.Receive(in[:])
		if err != nil {
			return
		}
		for _, p := range in[:n] {
			_ = c.core.Receive(p.Peer, p.Data) // what is no message is as good as lost
		}
		wait, waits := c.core.Tick()
		if !waits || wait > longWait {
			wait = longWait
		}
		c.lock.Lock()
		out = append(out, c.queue...)
		c.queue = c.queue[:0]
		c.queued.Store(false)
		c.lock.Unlock()
		if len(out) > 0 {
			sent, err := c.fabric.Send(out)
			if err != nil {
				sent++ // that one can't be sent
			}
			out = out[:copy(out, out[sent:])]
		}
		if n > 0 || len(out) > 0 || c.queued.Load() {
			continue
		}
		c.asleep.Store(true)
		if !c.queued.Load() && !c.closing.Load() {
			c.fabric.Wait(wait)
		}
		c.asleep.Store(false)
	}
}
