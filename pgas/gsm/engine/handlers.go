package engine

import (
	"sync"
	"sync/atomic"

	"github.com/pkg/errors"

	"evenkeel/pgas/gsm/wire"
	"evenkeel/runtime/fabric"
)

// MessageHandler is what an active message runs at its target. It may append a
// reply to reply, of at most Config.Reply bytes; data and reply are valid until
// it returns. What it returns as an error reaches the sender as a wire.Reason.
type MessageHandler func(source fabric.Task, data, reply []byte) ([]byte, error)

// KeyedHandler is a MessageHandler that is told under which key a message came.
type KeyedHandler func(source fabric.Task, key wire.Key, data, reply []byte) ([]byte, error)

// ArrivalHandler is what runs at the target of a PUT that names it, when all of
// its data is in memory.
type ArrivalHandler func(source fabric.Task, w wire.Window, offset, length uint64)

// Handlers are those of a task, by number: the same at all tasks that send to
// it. They run one at a time, in whichever goroutine drives the engine, must
// return soon, and may start operations but not wait for any. The zero Handlers
// is empty, and safe for concurrent use.
type Handlers struct {
	lock sync.Mutex // over changes
	all  atomic.Pointer[[]handler]
	ran  uint64 // messages; the engine's
}

type handler struct {
	message KeyedHandler
	arrival ArrivalHandler
}

// MostHandlers is how many handlers a task can have: numbers are below it.
const MostHandlers = 1 << 16

// Messages has active messages to a number run f.
func (h *Handlers) Messages(number wire.Handler, f MessageHandler) error {
	if f == nil {
		return errors.Errorf("handler %d is nil", number)
	}
	return h.KeyedMessages(number, func(source fabric.Task, _ wire.Key, data, reply []byte) ([]byte, error) {
		return f(source, data, reply)
	})
}

// KeyedMessages is Messages for a handler that has to know the key.
func (h *Handlers) KeyedMessages(number wire.Handler, f KeyedHandler) error {
	if f == nil {
		return errors.Errorf("handler %d is nil", number)
	}
	return h.set(number, func(at *handler) { at.message = f })
}

// Arrivals has PUTs that name a number run f.
func (h *Handlers) Arrivals(number wire.Handler, f ArrivalHandler) error {
	if f == nil {
		return errors.Errorf("handler %d is nil", number)
	}
	return h.set(number, func(at *handler) { at.arrival = f })
}

// Remove takes a handler away: what is sent to it from now on is refused.
func (h *Handlers) Remove(number wire.Handler) {
	h.set(number, func(at *handler) { *at = handler{} })
}

func (h *Handlers) set(number wire.Handler, change func(*handler)) error {
	if number == wire.None || number >= MostHandlers {
		return errors.Errorf("handlers have numbers from 1 to %d, not %d", MostHandlers-1, number)
	}
	h.lock.Lock()
	defer h.lock.Unlock()
	var all []handler
	if old := h.all.Load(); old != nil {
		all = append(all, *old...)
	}
	for len(all) <= int(number) {
		all = append(all, handler{})
	}
	change(&all[number])
	h.all.Store(&all)
	return nil
}

func (h *Handlers) of(number wire.Handler) handler {
	if all := h.all.Load(); all != nil && int64(number) < int64(len(*all)) {
		return (*all)[number]
	}
	return handler{}
}

// Has is epoch.Handlers.Has.
func (h *Handlers) Has(number wire.Handler) bool {
	at := h.of(number)
	return at.message != nil || at.arrival != nil
}

// Message is epoch.Handlers.Message.
func (h *Handlers) Message(source fabric.Task, key wire.Key, number wire.Handler, data, reply []byte) ([]byte, error) {
	if f := h.of(number).message; f != nil {
		h.ran++
		return f(source, key, data, reply)
	}
	return reply, wire.NoHandler
}

// Arrived is epoch.Handlers.Arrived.
func (h *Handlers) Arrived(source fabric.Task, number wire.Handler, w wire.Window, offset, length uint64) {
	if f := h.of(number).arrival; f != nil {
		f(source, w, offset, length)
	}
}
