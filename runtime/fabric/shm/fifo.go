package shm

// #cgo CFLAGS: -I${SRCDIR}/../../../c
// #include "fifo.h"
import "C"

import (
	"sync/atomic"
	"unsafe"

	"github.com/pkg/errors"
	"golang.org/x/sys/unix"

	"evenkeel/runtime/fabric"
)

// What c/fifo.h says, for the code that does the same as its functions.
const (
	lineSize   = C.EK_FIFO_LINE
	pageSize   = C.EK_FIFO_PAGE
	inline     = C.EK_FIFO_INLINE
	maxTasks   = C.EK_FIFO_TASKS
	lengthBits = C.EK_FIFO_LENGTH_BITS
	lengthMask = 1<<lengthBits - 1
)

type (
	header C.struct_ek_fifo_header
	page   C.struct_ek_fifo_task
	slot   C.struct_ek_fifo_slot
	fifo   C.struct_ek_fifo
)

// The array has a place for each class.
var _ = [1]struct{}{}[fabric.Classes-C.EK_FIFO_CLASSES]

func makeHeader(o Options, tasks int) C.struct_ek_fifo_header {
	return C.struct_ek_fifo_header{layout: C.EK_FIFO_LAYOUT, tasks: C.uint32_t(tasks), slots: C.uint32_t(o.Slots),
		buffer: C.uint32_t(o.Buffer)}
}

// areaSize is how long an area is, and how much of it comes before the FIFOs.
func areaSize(o Options, tasks int) (all, control int64) {
	h := makeHeader(o, tasks)
	return int64(C.ek_fifo_offset(&h, h.tasks, 0, 0)), int64(pageSize * (1 + tasks))
}

func writeHeader(at unsafe.Pointer, o Options, tasks int) {
	h := (*C.struct_ek_fifo_header)(at)
	*h = makeHeader(o, tasks)
	atomic.StoreUint64((*uint64)(&h.magic), C.EK_FIFO_MAGIC)
}

// header is the area's, checked.
func (f *Fabric) header(o Options) (*C.struct_ek_fifo_header, error) {
	h := (*C.struct_ek_fifo_header)(unsafe.Pointer(&f.memory[0]))
	magic := atomic.LoadUint64((*uint64)(&h.magic))
	want := makeHeader(o, len(f.tasks))
	want.magic = C.EK_FIFO_MAGIC
	if magic != C.EK_FIFO_MAGIC || *h != want {
		return nil, errors.New("the tasks of this node run different versions of evenkeel, or with different settings")
	}
	return h, nil
}

func (f *Fabric) fifo(receiver, sender, class int) *fifo {
	h := (*C.struct_ek_fifo_header)(unsafe.Pointer(&f.memory[0]))
	offset := C.ek_fifo_offset(h, C.uint32_t(receiver), C.uint32_t(sender), C.uint32_t(class))
	return (*fifo)(unsafe.Pointer(&f.memory[offset]))
}

// offset is where a FIFO begins in the area.
func (f *Fabric) offset(at *fifo) int64 {
	return int64(uintptr(unsafe.Pointer(at)) - uintptr(unsafe.Pointer(&f.memory[0])))
}

func (f *Fabric) page(task int) *page {
	return (*page)(unsafe.Pointer(&f.memory[pageSize*(1+task)]))
}

// ring wakes the task of that page if it sleeps. What it is woken for was
// published by an atomic store of Go's, which no later load overtakes.
func (p *page) ring(bell int) {
	if atomic.LoadUint32((*uint32)(&p.asleep)) != 0 {
		unix.Write(bell, []byte{0}) // a bell that is full of rings is rung already
	}
}

// line is the memory of one FIFO as both sides see it.
type line struct {
	fifo    *fifo
	slots   unsafe.Pointer // of slot
	buffers unsafe.Pointer
	mask    uint64 // number of slots, less one
	buffer  uintptr
	page    *page // the other side's,
	bell    int   // and its doorbell
}

func (f *Fabric) line(receiver, sender, class, other int) line {
	l := line{fifo: f.fifo(receiver, sender, class), mask: uint64(f.slots - 1), buffer: uintptr(f.buffer),
		page: f.page(other), bell: f.bells[other]}
	l.slots = unsafe.Add(unsafe.Pointer(l.fifo), unsafe.Sizeof(*l.fifo))
	l.buffers = unsafe.Add(l.slots, f.slots*lineSize)
	return l
}

func (l *line) slot(at uint64) *slot {
	return (*slot)(unsafe.Add(l.slots, at*lineSize))
}

func (l *line) shadow(at uint64) *byte {
	return (*byte)(unsafe.Add(l.buffers, uintptr(at)*l.buffer))
}

// sender is a FIFO as its sender sees it: struct ek_fifo_sender.
type sender struct {
	line
	position uint64
	limit    uint64
	full     bool // it was found full, and the receiver was told so

	area    int      // the descriptor,
	shadows int64    // where in it the shadow buffers begin,
	backed  []uint32 // and how many bytes of each there is memory for
}

// send copies a packet into the next slot. False: the FIFO is full.
func (s *sender) send(path uint8, data []byte) (bool, error) {
	if s.position == s.limit && !s.room() {
		return false, nil
	}
	at := s.position & s.mask
	slot := s.slot(at)
	if len(data) <= inline {
		copy((*[inline]byte)(unsafe.Pointer(&slot.payload))[:], data)
	} else {
		if len(data) > int(s.backed[at]) {
			if err := s.back(at, len(data)); err != nil {
				return false, err
			}
		}
		copy(unsafe.Slice(s.shadow(at), s.buffer), data)
	}
	s.position++
	s.fifo.sent = C.uint64_t(s.position)
	atomic.StoreUint64((*uint64)(&slot.word), s.position<<32|uint64(path)<<lengthBits|uint64(len(data)))
	s.page.ring(s.bell)
	return true, nil
}

// back makes memory for so many bytes of a shadow buffer, up to the end of a page.
func (s *sender) back(at uint64, bytes int) error {
	begin := s.shadows + int64(at)*int64(s.buffer)
	end := (begin + int64(bytes) + pageSize - 1) / pageSize * pageSize
	if err := reserve(s.area, begin, end-begin); err != nil {
		return err
	}
	s.backed[at] = uint32(min(end-begin, int64(s.buffer)))
	return nil
}

// room looks how far the receiver has come. Where that is not far enough it is
// asked to ring when it has.
func (s *sender) room() bool {
	if s.came() {
		return true
	}
	if !s.full {
		s.full = true
		atomic.StoreUint32((*uint32)(&s.fifo.waiting), 1)
	}
	return s.came()
}

func (s *sender) came() bool {
	s.limit = atomic.LoadUint64((*uint64)(&s.fifo.taken)) + s.mask + 1
	if s.position == s.limit {
		return false
	}
	if s.full {
		s.full = false
		atomic.StoreUint32((*uint32)(&s.fifo.waiting), 0)
	}
	return true
}

// receiver is a FIFO as its receiver sees it: struct ek_fifo_receiver.
type receiver struct {
	line
	peer     fabric.Task
	position uint64 // of the packet to be shown next
	told     uint64 // what the sender knows to be done with
}

// word is that of the next packet, if there is one.
func (r *receiver) word() (uint64, bool) {
	w := atomic.LoadUint64((*uint64)(&r.slot(r.position & r.mask).word))
	return w, uint32(w>>32) == uint32(r.position+1)
}

// receive shows the next packet, which stays in its slot until release.
func (r *receiver) receive(p *fabric.Packet, class fabric.Class) bool {
	w, full := r.word()
	if !full {
		return false
	}
	at := r.position & r.mask
	length := uintptr(w & lengthMask)
	if length <= inline {
		p.Data = (*[inline]byte)(unsafe.Pointer(&r.slot(at).payload))[:length]
	} else {
		p.Data = unsafe.Slice(r.shadow(at), min(length, r.buffer)) // no length leads out of the buffer
	}
	p.Peer, p.Class, p.Path = r.peer, class, uint8(w>>lengthBits)
	r.position++
	return true
}

// release gives the slots of all packets that were shown back to the sender,
// which is told so four times a round.
func (r *receiver) release() {
	quarter := (r.mask + 1) / 4
	if r.position/quarter == r.told/quarter {
		return
	}
	r.told = r.position
	atomic.StoreUint64((*uint64)(&r.fifo.taken), r.position)
	if atomic.LoadUint32((*uint32)(&r.fifo.waiting)) != 0 {
		r.page.ring(r.bell)
	}
}
