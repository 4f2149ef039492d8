// Package carrier carries the messages of a protocol core between tasks: a goroutine
// that receives, lets the core repeat, sends, and sleeps when there is nothing to do.
// Over carries them over a fabric; package pgas/courier as active messages.
package carrier

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/pkg/errors"

	"evenkeel/runtime/fabric"
)

// Core is what messages are carried for. Its functions may be called by several
// goroutines.
type Core interface {
	// Receive takes a packet, whose bytes are valid until it returns. With an error
	// it is as good as lost.
	Receive(from fabric.Task, packet []byte) error
	// Tick says in what time it is to be called again, at the latest; false: not
	// before something has arrived or Due was called.
	Tick() (time.Duration, bool)
}

// Carrier is a task's way to the others, for one core. Any goroutine may call its
// methods, but for Start and Close, which are called once.
type Carrier interface {
	// Self is the task whose end this is.
	Self() fabric.Task
	// Limit is the length in bytes of the longest message to each of so many tasks.
	Limit(tasks int) int
	// Start begins to carry.
	Start(Core) error
	// Send sends a message, or loses it. It does not block; the message is the
	// carrier's from then on.
	Send(to fabric.Task, message []byte)
	// Due has Tick called in this time, at the latest.
	Due(in time.Duration)
	// Close ends it. What is still to be sent is lost.
	Close() error
}

// LongWait is how long a carrier sleeps where nothing is to be done.
const LongWait = time.Second

// Alarm says whether the goroutine that calls Tick must be woken for a Due: mostly it
// looks soon enough by itself, and waking it costs more than what it would find.
type Alarm struct {
	begin time.Time
	at    atomic.Int64 // when it looks, after begin; 0: it is awake
}

// NewAlarm is the alarm of a goroutine that is awake.
func NewAlarm() *Alarm { return &Alarm{begin: time.Now()} }

// Asleep says that the goroutine is about to sleep for so long: what Tick said. It
// returns how long it shall be.
func (a *Alarm) Asleep(wait time.Duration, waits bool) time.Duration {
	if !waits || wait > LongWait {
		wait = LongWait
	}
	a.at.Store(int64(time.Since(a.begin) + wait + 1))
	return wait
}

// Awake says that it is about to call Tick.
func (a *Alarm) Awake() { a.at.Store(0) }

// Late says whether it sleeps for longer than that, or may have called Tick already.
func (a *Alarm) Late(in time.Duration) bool {
	at := a.at.Load()
	return at == 0 || at > int64(time.Since(a.begin)+in)
}

// overFabric has a fabric to itself.
type overFabric struct {
	core   Core
	fabric fabric.Fabric
	alarm  *Alarm

	lock    sync.Mutex // over queue
	queue   []fabric.Packet
	queued  atomic.Bool
	asleep  atomic.Bool
	closing atomic.Bool
	ended   chan struct{}
}

// batch is how many packets are received at once.
const batch = 64

// Over is a carrier that has a fabric to itself, and closes it.
func Over(f fabric.Fabric) Carrier {
	return &overFabric{fabric: f, alarm: NewAlarm(), ended: make(chan struct{})}
}

func (c *overFabric) Start(core Core) error {
	c.core = core
	go c.carry()
	return nil
}

func (c *overFabric) Self() fabric.Task { return c.fabric.Self() }

func (c *overFabric) Limit(tasks int) int {
	limit := 1 << 30
	for t := range fabric.Task(tasks) {
		if t != c.fabric.Self() {
			limit = min(limit, c.fabric.MTU(t))
		}
	}
	return limit
}

func (c *overFabric) Send(to fabric.Task, message []byte) {
	c.lock.Lock()
	c.queue = append(c.queue, fabric.Packet{Peer: to, Class: fabric.Control, Data: message})
	c.queued.Store(true)
	c.lock.Unlock()
	if c.asleep.Load() {
		c.fabric.Wake()
	}
}

func (c *overFabric) Due(in time.Duration) {
	if c.alarm.Late(in) {
		c.fabric.Wake()
	}
}

func (c *overFabric) Close() error {
	if c.closing.Swap(true) {
		return errors.New("it is closed")
	}
	c.fabric.Wake()
	<-c.ended
	return c.fabric.Close()
}

// rareTurn is how many busy turns there are for each that calls Tick.
const rareTurn = 16

func (c *overFabric) carry() {
	defer close(c.ended)
	var in [batch]fabric.Packet
	var out []fabric.Packet
	for turn := 1; !c.closing.Load(); turn++ {
		n, err := c.fabric.Receive(in[:])
		if err != nil {
			return
		}
		for _, p := range in[:n] {
			_ = c.core.Receive(p.Peer, p.Data) // what is no message is as good as lost
		}
		if c.queued.Load() || len(out) > 0 {
			out = c.flush(out)
		}
		busy := n > 0 || len(out) > 0
		if busy && turn%rareTurn != 0 {
			continue
		}
		c.alarm.Awake()
		wait := c.alarm.Asleep(c.core.Tick())
		if busy || c.queued.Load() {
			continue
		}
		c.asleep.Store(true)
		if !c.queued.Load() && !c.closing.Load() {
			c.fabric.Wait(wait)
		}
		c.asleep.Store(false)
	}
}

// flush sends what is left and what has queued up, and returns what had no room.
func (c *overFabric) flush(out []fabric.Packet) []fabric.Packet {
	c.lock.Lock()
	out = append(out, c.queue...)
	clear(c.queue)
	c.queue = c.queue[:0]
	c.queued.Store(false)
	c.lock.Unlock()
	sent, err := c.fabric.Send(out)
	if err != nil {
		sent++ // that one can't be sent
	}
	rest := copy(out, out[sent:])
	clear(out[rest:])
	return out[:rest]
}
