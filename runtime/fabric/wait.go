package fabric

import (
	"encoding/binary"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pkg/errors"
	"golang.org/x/sys/unix"
)

// Sleeper is what a Waiter waits for: a fabric whose arrivals can be seen by
// looking, and slept for. All calls come from the goroutine that waits.
type Sleeper interface {
	// Arrived looks once, and says whether there is something to receive.
	Arrived() bool
	// Arm says that the caller is about to sleep: from now on whatever arrives
	// makes a descriptor readable. False: something has arrived already.
	Arm() bool
	// Disarm ends what Arm began, also when that returned false.
	Disarm()
	// Descriptors are the files that become readable.
	Descriptors() []int
}

// looks is how often a Waiter looks between two readings of the clock, after
// which it also lets another goroutine have the processor.
const looks = 16

// Nap is how long a task sleeps at a time where nothing wakes it for what arrives.
const Nap = 200 * time.Microsecond

// Waiter is what fabrics have in common: it waits for any of several sleepers, is
// woken, and knows whether it was closed. It looks at all of them for a short time,
// because what comes within it is seen ten times sooner than by who has to be woken,
// and then sleeps in ppoll. The zero Waiter has still to be opened.
type Waiter struct {
	spin     time.Duration // how long Wait looks before it sleeps
	napping  bool          // some sleeper has no descriptors
	sleepers []Sleeper
	polled   []unix.PollFd // the event first, then the sleepers' descriptors
	woken    atomic.Bool   // by a Wake that no Wait has answered
	asleep   atomic.Bool

	lock   sync.Mutex // over event and closed: Close takes the event away from Wake
	event  int
	closed bool // written by who alone may Wait
}

// Open has the Waiter wait for sleepers, which must have their descriptors.
func (w *Waiter) Open(spin time.Duration, sleepers ...Sleeper) error {
	event, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return errors.Wrap(err, "making the event by which a waiting task is woken")
	}
	w.spin, w.sleepers, w.event = spin, sleepers, event
	w.polled = append(w.polled, unix.PollFd{Fd: int32(event), Events: unix.POLLIN})
	for _, s := range sleepers {
		descriptors := s.Descriptors()
		w.napping = w.napping || len(descriptors) == 0
		for _, d := range descriptors {
			w.polled = append(w.polled, unix.PollFd{Fd: int32(d), Events: unix.POLLIN})
		}
	}
	return nil
}

// Wait is Fabric.Wait.
func (w *Waiter) Wait(timeout time.Duration) {
	if w.closed || w.arrived() || timeout <= 0 {
		return
	}
	if spin := min(w.spin, timeout); spin > 0 {
		begin := time.Now()
		for time.Since(begin) < spin {
			for range looks {
				if w.arrived() {
					return
				}
			}
			runtime.Gosched()
		}
		timeout -= spin
	}
	w.sleep(timeout)
}

// arrived looks at the sleepers once, and answers a Wake.
func (w *Waiter) arrived() bool {
	if w.woken.Load() && w.woken.Swap(false) {
		return true
	}
	for _, s := range w.sleepers {
		if s.Arrived() {
			return true
		}
	}
	return false
}

func (w *Waiter) sleep(timeout time.Duration) {
	if w.napping {
		timeout = min(timeout, Nap)
	}
	w.asleep.Store(true) // before the look at woken, as Wake does it the other way round
	defer w.asleep.Store(false)
	ready := !w.woken.Swap(false)
	armed := 0
	for ready && armed < len(w.sleepers) {
		ready = w.sleepers[armed].Arm()
		armed++
	}
	if ready && timeout > 0 {
		t := unix.NsecToTimespec(int64(timeout))
		// An interrupted sleep is an early return.
		unix.Ppoll(w.polled, &t, nil)
		if w.polled[0].Revents != 0 {
			var count [8]byte
			unix.Read(w.event, count[:])
			w.woken.Store(false)
		}
	}
	for _, s := range w.sleepers[:armed] {
		s.Disarm()
	}
}

// Wake is Fabric.Wake.
func (w *Waiter) Wake() {
	if w.woken.Swap(true) || !w.asleep.Load() {
		return // it looks before it sleeps
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	if !w.closed {
		var one [8]byte
		binary.NativeEndian.PutUint64(one[:], 1)
		unix.Write(w.event, one[:]) // an event that can't count further is set already
	}
}

// Closed says whether Close was called; for who may Wait.
func (w *Waiter) Closed() bool { return w.closed }

// Close gives the event back, if there is one. No Wait may be under way.
func (w *Waiter) Close() error {
	w.lock.Lock()
	defer w.lock.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	if w.polled == nil {
		return nil // it was never opened
	}
	return errors.Wrap(unix.Close(w.event), "closing the event by which a waiting task is woken")
}
