package gsm

import (
	"fmt"

	"github.com/pkg/errors"

	"evenkeel/pgas/gsm/memory"
	"evenkeel/pgas/gsm/wire"
)

// Rights are what others may do to the memory that a window shows.
type Rights = memory.Rights

// The rights, and all of them.
const (
	AllowPut    = memory.Put
	AllowGet    = memory.Get
	AllowAtomic = memory.Atomic
	AllowAll    = memory.All
)

// Page is the number of bytes that [Block.Protect] is for.
const Page = memory.Page

// Counters are what went out through a window.
type Counters struct {
	Puts, PutBytes uint64
	Gets, GetBytes uint64
	Atomics        uint64
	Refused        uint64 // commands that were not issued
	Fences         uint64
}

// Window is a task's door to global shared memory: others reach through it what it shows, and the task's commands go out
// through it and are counted. It is used by one goroutine at a time.
type Window struct {
	areas    []*memory.Area  // of each task; none: the window is closed
	counters memory.Counters // here, and not where others read them: at a known distance they cost half as much
	job      *Job
	number   wire.Window
	bytes    uint64
	handles  handles
	row      row
	key      *Key // under which its commands go out, and which it wants of those that come; nil: the job's

	unnotified []*command // under way, without a handle
	failed     error      // the first of those that failed, which no fence has told of
}

// Block is memory of the calling task that others can reach, where a window shows it.
type Block struct {
	job   *Job
	place uint64
	bytes uint64
}

// Allocate returns zeroed memory of the calling task. A block of at least Page bytes has whole pages.
func (j *Job) Allocate(bytes uint64) (*Block, error) {
	if j.left.Load() {
		return nil, errors.WithMessagef(ErrClosed, "task %d: allocating %d bytes", j.task, bytes)
	}
	place, err := j.space.Take(memory.Own, bytes)
	if err != nil {
		return nil, errors.WithMessagef(err, "task %d: allocating", j.task)
	}
	return &Block{job: j, place: place, bytes: bytes}, nil
}

// Bytes is the memory itself. It must not be used after Free.
func (b *Block) Bytes() []byte { return b.job.space.Self().Bytes(b.place, b.bytes) }

// Free gives the memory back, which no window may show any more. It is used again after the next global fence.
func (b *Block) Free() error {
	if b.job.left.Load() {
		return b.failed("freeing", ErrClosed)
	}
	return b.failed("freeing", b.job.space.Give(b.place))
}

// Protect sets what others may do to whole pages of the block, whatever window they come by: no more than the window
// allows. The offset and the number of bytes are multiples of Page.
func (b *Block) Protect(offset, bytes uint64, rights Rights) error {
	switch {
	case b.job.left.Load():
		return b.failed("protecting", ErrClosed)
	case offset > b.bytes || bytes > (b.bytes-offset+Page-1)/Page*Page:
		return b.failed("protecting", errors.WithMessagef(ErrRange, "%d bytes at %d", bytes, offset))
	}
	return b.failed("protecting", b.job.space.Guard(b.place+offset, bytes, rights))
}

// failed is the error of a block's method.
func (b *Block) failed(what string, err error) error {
	return errors.WithMessagef(err, "task %d: %s the block of %d bytes at %#x", b.job.task, what, b.bytes, b.place)
}

// Open opens a window over a block.
func (j *Job) Open(b *Block, rights Rights) (*Window, error) {
	if b == nil {
		return nil, errors.WithMessagef(ErrNotMemory, "task %d: opening a window over no block", j.task)
	}
	return j.OpenPart(b, 0, b.bytes, rights)
}

// OpenPart opens a window over a part of a block. Over no bytes it shows nothing, and is for commands alone.
func (j *Job) OpenPart(b *Block, offset, bytes uint64, rights Rights) (*Window, error) {
	return j.open(nil, b, offset, bytes, rights)
}

// open opens a window under a narrower key; nil: for all.
func (j *Job) open(k *Key, b *Block, offset, bytes uint64, rights Rights) (*Window, error) {
	if j.left.Load() {
		return nil, errors.WithMessagef(ErrClosed, "task %d: opening a window", j.task)
	}
	place := uint64(0)
	if bytes > 0 {
		if b == nil || b.job != j {
			return nil, errors.WithMessagef(ErrNotMemory, "task %d: opening a window over a block of another job", j.task)
		}
		if offset > b.bytes || bytes > b.bytes-offset {
			return nil, b.failed("opening a window over", errors.WithMessagef(ErrRange, "%d bytes at %d", bytes, offset))
		}
		place = b.place + offset
	}
	return j.show(k, memory.Own, place, bytes, rights)
}

func (j *Job) show(k *Key, part memory.Part, place, bytes uint64, rights Rights) (*Window, error) {
	number, err := j.space.ShowUnder(k.tokenOf(), part, place, bytes, rights)
	if err != nil {
		return nil, errors.WithMessagef(err, "task %d: opening a window over %d bytes at %#x", j.task, bytes, place)
	}
	w := &Window{areas: j.areas, job: j, number: number, bytes: bytes, key: k, row: newRow(j.number, number)}
	if k != nil {
		w.areas = k.areas
	}
	j.lock.Lock()
	defer j.lock.Unlock()
	j.windows[number] = w
	return w, nil
}

// Close closes the window: from now on no command gets in or out. Its number is used again, for another window, after the
// next global fence at the earliest, and never in an address that is older: numbers hold a generation. The error of a
// command without notification is returned as by Fence; the window is closed nevertheless.
func (w *Window) Close() error {
	if w.areas == nil {
		return errors.WithMessagef(ErrClosed, "closing window %d", w.number)
	}
	failed := w.Fence()
	if err := w.hide(); err != nil {
		return err
	}
	return failed
}

func (w *Window) hide() error {
	w.job.lock.Lock()
	w.areas = nil
	delete(w.job.windows, w.number)
	w.job.lock.Unlock()
	return errors.WithMessagef(w.job.space.Hide(w.number), "task %d: closing a window", w.job.task)
}

// Number names the window among those of its task.
func (w *Window) Number() wire.Window { return w.number }

// Address is the global address of an offset into what the window shows.
func (w *Window) Address(offset uint64) Address {
	return Address{Task: w.job.task, Window: w.number, Offset: offset}
}

// Counters are what went out through the window until now.
func (w *Window) Counters() Counters {
	c := w.counters
	return Counters{Puts: c.Puts, PutBytes: c.PutBytes, Gets: c.Gets, GetBytes: c.GetBytes, Atomics: c.Atomics,
		Refused: c.Refused, Fences: c.Fences}
}

func (w *Window) String() string {
	return fmt.Sprintf("window %d of task %d", w.number, w.job.task)
}
