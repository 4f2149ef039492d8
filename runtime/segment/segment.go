// Package segment reads and writes the node segment, the file in /dev/shm in
// which the ranks of a node record and which everybody else looks into.
//
// The layout is written once, in c/segment.h; layout_gen.go is made from it.
// A segment in Go is views of that memory, whether it is the live file, a
// private copy, or an image that was saved. Words that a living rank writes
// are read with Load and written with Store.
package segment

//go:generate sh -c "./generate.sh > layout_gen.go.new && mv layout_gen.go.new layout_gen.go"

import (
	"encoding/binary"
	"io"
	"os"
	"sync/atomic"
	"unsafe"

	"github.com/pkg/errors"
	"golang.org/x/sys/unix"
)

// Segment is one node's segment.
type Segment struct {
	Header *Header
	memory []byte
	mapped bool
	layout layout
}

// Area is the part of a segment that belongs to one rank.
type Area struct {
	Rank    *Rank
	Modules []Module
	Comms   []Comm
	Members []uint32
	Regions []Region
	Windows []Window
	Bins    []Bin
	Threads []ThreadArea // those ever used
	History []Event      // all of its room; Rank.HistoryCount are in use
}

// ThreadArea is what belongs to one thread of a rank.
type ThreadArea struct {
	*Thread
	Accounts []Account
	Ring     []Event
}

// layout is where the parts of a rank area and of a thread are: offsets in
// bytes. c/layout.h says the same in C.
type layout struct {
	modules, comms, members, regions, windows, bins, threads, history uintptr
	barriers, arrivals, arrivalsEverywhere                            uintptr
	arrivalsEverywhereSize                                            uintptr // of one barrier place
	threadSize, threadAccounts, threadRing                            uintptr
	area                                                              uintptr
}

func layoutOf(h *Header) layout {
	pages := func(bytes uintptr) uintptr { return (bytes + pageSize - 1) &^ (pageSize - 1) }
	var l layout
	at := pages(unsafe.Sizeof(Rank{}))
	l.modules, at = at, at+pages(maxModules*unsafe.Sizeof(Module{}))
	l.comms, at = at, at+pages(maxComms*unsafe.Sizeof(Comm{}))
	l.members, at = at, at+pages(uintptr(h.Members)*4)
	l.regions, at = at, at+pages(maxRegions*unsafe.Sizeof(Region{}))
	l.windows, at = at, at+pages(maxWindows*unsafe.Sizeof(Window{}))
	l.bins, at = at, at+pages(Bins*unsafe.Sizeof(Bin{}))
	l.barriers, at = at, at+pages(barriers*unsafe.Sizeof(Barrier{}))
	l.arrivals, at = at, at+pages(barriers*unsafe.Sizeof(Arrivals{}))
	l.threads = at
	l.threadAccounts = pages(unsafe.Sizeof(Thread{}))
	l.threadRing = l.threadAccounts + pages(uintptr(h.Accounts)*unsafe.Sizeof(Account{}))
	l.threadSize = l.threadRing + pages(uintptr(h.RingEvents)*unsafe.Sizeof(Event{}))
	at += uintptr(h.ThreadSlots) * l.threadSize
	l.history, at = at, at+pages(uintptr(h.HistoryEvents)*unsafe.Sizeof(Event{}))
	l.arrivalsEverywhere = at
	if h.Nodes > 1 {
		l.arrivalsEverywhereSize = pages(barrierHistory * uintptr(h.WorldSize) * 8)
	}
	l.area = at + barriers*l.arrivalsEverywhereSize
	return l
}

// Bounds that a header must keep to be believed; they hold sums in a uint64.
const (
	maxRanks   = 1 << 14
	maxMembers = 1 << 27
	maxEvents  = 1 << 24
	maxThreads = 1 << 10
	maxAccount = 1 << 14
	maxWorld   = 1 << 24
)

// New returns the views of a segment in memory; the memory stays the caller's.
func New(memory []byte) (*Segment, error) {
	if len(memory) < pageSize {
		return nil, errors.Errorf("not a node segment: %d bytes are less than its header", len(memory))
	}
	h := (*Header)(unsafe.Pointer(unsafe.SliceData(memory)))
	l, err := check(h)
	if err != nil {
		return nil, err
	}
	if h.SegmentSize > uint64(len(memory)) {
		return nil, errors.Errorf("a truncated node segment: %d bytes of %d", len(memory), h.SegmentSize)
	}
	return &Segment{Header: h, memory: memory[:h.SegmentSize], layout: l}, nil
}

// IsSegment says whether a file begins as a segment does, though another build
// of evenkeel may have made it, and nothing else in it can be read.
func IsSegment(file io.ReaderAt) bool {
	var word [8]byte
	_, err := file.ReadAt(word[:], 0)
	return err == nil && binary.LittleEndian.Uint64(word[:]) == magic
}

// check says whether a header is that of a segment which this code can read.
func check(h *Header) (l layout, err error) {
	if atomic.LoadUint64(&h.Magic) != magic {
		return l, errors.New("not a node segment: it does not begin with EVENKEEL (foreign, or not complete yet)")
	}
	if h.LayoutVersion != LayoutVersion || h.HeaderSize != uint32(unsafe.Sizeof(*h)) {
		return l, errors.Errorf("a node segment of layout %d, and this evenkeel reads %d: use the evenkeel that recorded it",
			h.LayoutVersion, LayoutVersion)
	}
	if h.LocalRanks == 0 || h.LocalRanks > maxRanks || h.Members > maxMembers || h.HistoryEvents > maxEvents ||
		h.ThreadSlots > maxThreads || !power(h.RingEvents) || h.RingEvents > maxEvents ||
		!power(h.Accounts) || h.Accounts > maxAccount || h.WorldSize > maxWorld {
		return l, errors.New("a damaged node segment: its header names impossible lengths")
	}
	l = layoutOf(h)
	if h.RankAreaSize != uint64(l.area) || h.SegmentSize != pageSize+uint64(h.LocalRanks)*h.RankAreaSize {
		return l, errors.New("a damaged node segment: its lengths do not add up")
	}
	return l, nil
}

// Blank makes an empty segment in memory of its own: h with the identity and
// the lengths that it names, completed as a job's leader completes it, and no
// rank that has started. For tests, and recordings that no job made; the
// caller closes it.
func Blank(h Header) (*Segment, error) {
	h.Magic, h.LayoutVersion, h.HeaderSize = magic, LayoutVersion, uint32(unsafe.Sizeof(h))
	h.RankAreaSize = uint64(layoutOf(&h).area)
	h.SegmentSize = pageSize + uint64(h.LocalRanks)*h.RankAreaSize
	memory, err := reserve(h.SegmentSize)
	if err != nil {
		return nil, err
	}
	*(*Header)(unsafe.Pointer(unsafe.SliceData(memory))) = h
	s, err := New(memory)
	if err != nil {
		unix.Munmap(memory)
		return nil, err
	}
	s.mapped = true
	return s, nil
}

// reserve is memory of zeros that takes none until it is written.
func reserve(size uint64) ([]byte, error) {
	memory, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	return memory, errors.Wrap(err, "no memory for a node segment")
}

func power(n uint32) bool { return n != 0 && n&(n-1) == 0 }

// Open maps the segment file; with write false the views must not be written.
// The caller closes it.
func Open(path string, write bool) (*Segment, error) {
	flags, protection := os.O_RDONLY, unix.PROT_READ
	if write {
		flags, protection = os.O_RDWR, unix.PROT_READ|unix.PROT_WRITE
	}
	file, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return nil, errors.Wrap(err, "cannot open the node segment")
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Wrap(err, "cannot look at the node segment")
	}
	if info.Size() < pageSize {
		return nil, errors.Errorf("%s is not a node segment: %d bytes are less than its header", path, info.Size())
	}
	memory, err := unix.Mmap(int(file.Fd()), 0, int(info.Size()), protection, unix.MAP_SHARED)
	if err != nil {
		return nil, errors.Wrapf(err, "cannot map %s", path)
	}
	s, err := New(memory)
	if err != nil {
		unix.Munmap(memory)
		return nil, errors.Wrap(err, path)
	}
	s.mapped = true
	return s, nil
}

// Close unmaps what Open, Blank, Copy or Decode mapped; all views are invalid then.
func (s *Segment) Close() error {
	if !s.mapped {
		return nil
	}
	s.mapped = false
	return errors.Wrap(unix.Munmap(s.memory[:cap(s.memory)]), "cannot unmap a node segment")
}

// Area returns the views of the i-th rank on the node, 0 ≤ i < LocalRanks.
// Counts that the rank wrote are clipped to the room that there is.
func (s *Segment) Area(i int) Area {
	l, h := s.layout, s.Header
	base := pageSize + uintptr(i)*l.area
	a := Area{
		Rank:    &view[Rank](s.memory, base, 1)[0],
		Modules: view[Module](s.memory, base+l.modules, maxModules),
		Comms:   view[Comm](s.memory, base+l.comms, maxComms),
		Members: view[uint32](s.memory, base+l.members, uintptr(h.Members)),
		Regions: view[Region](s.memory, base+l.regions, maxRegions),
		Windows: view[Window](s.memory, base+l.windows, maxWindows),
		Bins:    view[Bin](s.memory, base+l.bins, Bins),
		History: view[Event](s.memory, base+l.history, uintptr(h.HistoryEvents)),
	}
	a.Modules = a.Modules[:min(int(Load(&a.Rank.Modules)), len(a.Modules))]
	a.Comms = a.Comms[:min(int(Load(&a.Rank.Comms)), len(a.Comms))]
	a.Members = a.Members[:min(int(Load(&a.Rank.Members)), len(a.Members))]
	a.Regions = a.Regions[:min(int(Load(&a.Rank.Regions)), len(a.Regions))]
	a.Windows = a.Windows[:min(int(Load(&a.Rank.Windows)), len(a.Windows))]
	for t := uintptr(0); t < uintptr(min(Load(&a.Rank.Threads), h.ThreadSlots)); t++ {
		at := base + l.threads + t*l.threadSize
		a.Threads = append(a.Threads, ThreadArea{
			Thread:   &view[Thread](s.memory, at, 1)[0],
			Accounts: view[Account](s.memory, at+l.threadAccounts, uintptr(h.Accounts)),
			Ring:     view[Event](s.memory, at+l.threadRing, uintptr(h.RingEvents)),
		})
	}
	return a
}

// view is n values of T at an offset; New has checked that they are there.
func view[T any](memory []byte, offset, n uintptr) []T {
	var zero T
	_ = memory[offset : offset+n*unsafe.Sizeof(zero)]
	return unsafe.Slice((*T)(unsafe.Pointer(&memory[offset])), n)
}

// Text is a C string of the segment: up to its end or the end of its room.
func Text(c []int8) string {
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(c))), len(c))
	for i, b := range bytes {
		if b == 0 {
			return string(bytes[:i])
		}
	}
	return string(bytes)
}
