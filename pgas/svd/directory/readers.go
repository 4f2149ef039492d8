package directory

import (
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// readers are those who use memory at addresses that they have looked up. A reader
// says when it begins, by the number of the present age, and when it ends; who wants
// to know that nobody uses what was visible before begins a new age, and waits until
// no reader is of an earlier one (epoch-based reclamation; Fraser 2004).
//
// Readers are many, and those who wait few. So what must not be mixed up, the store by
// which a reader begins and its lookups after that, is kept in order by those who wait:
// they have the kernel interrupt all processors that run this process (membarrier), and
// a reader begins and ends with a plain store.
type readers struct {
	_        [64]byte // what readers look at lies on a cache line that is seldom written
	age      atomic.Uint64
	draining atomic.Uint32 // twice the changes that wait for readers to end, and ordering
	_        [64]byte

	lock sync.Mutex
	all  []*Reader
}

// ordering is added where readers must order their stores although the processor has them in order otherwise: the kernel
// does not interrupt for us.
const ordering = 1

// wait has readers that end look for so many changes that wait for them.
func (r *readers) wait(changes int) {
	draining := 2 * uint32(changes)
	if ordered && !interrupts() {
		draining += ordering
	}
	r.draining.Store(draining)
}

// Reader is one goroutine's right to use shared memory at its address. Between Enter
// and Exit, what it looks up stays where it is.
type Reader struct {
	_         [64]byte // a cache line of its own
	entered   uint64   // the age in which it began; 0: it has ended
	plain     bool     // it is stored plainly
	readers   *readers
	directory *Directory
	_         [32]byte
}

// interrupts says whether the kernel interrupts our processors when it is asked.
var interrupts = sync.OnceValue(func() bool {
	const register = 16 // MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED
	_, _, failed := unix.Syscall(unix.SYS_MEMBARRIER, register, 0, 0)
	return failed == 0
})

// order has every store that a reader has begun or ended with visible to us, and every
// load that it begins after that see what we have stored.
func (r *readers) order() {
	if ordered && interrupts() {
		const interrupt = 8 // MEMBARRIER_CMD_PRIVATE_EXPEDITED
		_, _, _ = unix.Syscall(unix.SYS_MEMBARRIER, interrupt, 0, 0)
	}
}

// NewReader makes a reader, to be used by one goroutine at a time, until its Close.
func (d *Directory) NewReader() *Reader {
	r := &Reader{directory: d, readers: &d.readers, plain: ordered && interrupts()}
	d.readers.lock.Lock()
	d.readers.all = append(d.readers.all, r)
	d.readers.lock.Unlock()
	return r
}

// Enter begins a use of shared memory. It must end soon: meanwhile nothing that
// anyone frees, moves or shrinks is done with. It does not block, and can't be nested.
func (r *Reader) Enter() {
	age := r.readers.age.Load()
	if ordered && r.plain {
		r.entered = age
		return
	}
	atomic.StoreUint64(&r.entered, age)
}

// Exit ends it: addresses that were looked up since Enter may not be used any more.
func (r *Reader) Exit() {
	if ordered {
		r.entered = 0
	} else {
		atomic.StoreUint64(&r.entered, 0)
	}
	if r.readers.draining.Load() != 0 {
		r.exit()
	}
}

// exit is the part of Exit that is seldom needed, so that the rest is short enough to become part of who calls it.
//
//go:noinline
func (r *Reader) exit() {
	atomic.StoreUint64(&r.entered, 0) // in order with what follows, also where it isn't plain
	if r.readers.draining.Load() > ordering {
		r.directory.drain()
	}
}

// Close gives the reader back.
func (r *Reader) Close() {
	r.Exit()
	all := r.readers
	all.lock.Lock()
	defer all.lock.Unlock()
	for i := range all.all {
		if all.all[i] == r {
			all.all[i] = all.all[len(all.all)-1]
			all.all = all.all[:len(all.all)-1]
			return
		}
	}
}

// next begins an age, and returns its number.
func (r *readers) next() uint64 { return r.age.Add(1) }

// oldest is the earliest age of a reader; that of now, if there is none.
func (r *readers) oldest() uint64 {
	oldest := r.age.Load()
	r.lock.Lock()
	defer r.lock.Unlock()
	for _, reader := range r.all {
		if entered := atomic.LoadUint64(&reader.entered); entered != 0 {
			oldest = min(oldest, entered)
		}
	}
	return oldest
}
