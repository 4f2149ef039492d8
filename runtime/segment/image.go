package segment

import (
	"bytes"
	"encoding/binary"
	"io"
	"unsafe"

	"github.com/klauspost/compress/gzip"
	"github.com/pkg/errors"
	"golang.org/x/sys/unix"
)

// An image is a segment without its empty pages and its rings (whose events
// are to be drained before), compressed: how a node's recording travels to
// rank 0, and how a profile keeps it. After the line imageMagic, a gzip stream
// of runs: offset and length in bytes as little-endian uint64, then the bytes;
// a run of length 0 at offset = segment size ends it. gzip's checksum guards
// the whole.
const imageMagic = "evenkeel node image 1\n"

// maxImage bounds the memory that a damaged image can claim.
const maxImage = 1 << 40

// Encode writes the image of the segment.
func (s *Segment) Encode(w io.Writer) error {
	if _, err := io.WriteString(w, imageMagic); err != nil {
		return errors.Wrap(err, "cannot write a node image")
	}
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return errors.Wrap(err, "cannot compress a node image")
	}
	err = s.eachRun(func(from, to uintptr) error {
		return writeRun(z, uint64(from), s.memory[from:to])
	})
	if err == nil {
		err = writeRun(z, s.Header.SegmentSize, nil)
	}
	if err == nil {
		err = z.Close()
	}
	return errors.Wrap(err, "cannot write a node image")
}

func writeRun(w io.Writer, offset uint64, run []byte) error {
	var head [16]byte
	binary.LittleEndian.PutUint64(head[:8], offset)
	binary.LittleEndian.PutUint64(head[8:], uint64(len(run)))
	if _, err := w.Write(head[:]); err != nil {
		return err
	}
	_, err := w.Write(run)
	return err
}

// eachRun calls f for the parts of the segment that an image holds: pages in
// use, but no rings and no room that was never used.
func (s *Segment) eachRun(f func(from, to uintptr) error) error {
	if err := f(0, pageSize); err != nil {
		return err
	}
	for i := 0; i < int(s.Header.LocalRanks); i++ {
		base := pageSize + uintptr(i)*s.layout.area
		rank := &view[Rank](s.memory, base, 1)[0]
		parts := [][2]uintptr{{base, base + s.layout.threads}}
		for t := uintptr(0); t < uintptr(min(Load(&rank.Threads), s.Header.ThreadSlots)); t++ {
			at := base + s.layout.threads + t*s.layout.threadSize
			parts = append(parts, [2]uintptr{at, at + s.layout.threadRing})
		}
		kept := uintptr(min(Load(&rank.HistoryCount), uint64(s.Header.HistoryEvents)))
		parts = append(parts, [2]uintptr{base + s.layout.history, base + s.layout.history + kept*64})
		for _, part := range parts {
			if err := s.eachUsed(part[0], part[1], f); err != nil {
				return err
			}
		}
	}
	return nil
}

var emptyPage [pageSize]byte

// eachUsed cuts a range into runs of pages that are not all zero.
func (s *Segment) eachUsed(from, to uintptr, f func(from, to uintptr) error) error {
	start := to
	for at := from; at < to; at += pageSize {
		end := min(at+pageSize, to)
		used := !bytes.Equal(s.memory[at:end], emptyPage[:end-at])
		if used && start == to {
			start = at
		}
		if !used && start != to {
			if err := f(start, at); err != nil {
				return err
			}
			start = to
		}
	}
	if start != to {
		return f(start, to)
	}
	return nil
}

// Decode reads an image back into memory of its own; the caller closes it.
// Errors say whether the image is foreign, truncated or damaged.
func Decode(r io.Reader) (*Segment, error) {
	runs, err := open(r)
	if err != nil {
		return nil, err
	}
	s, err := decodeRuns(runs)
	return s, ended(err)
}

func decodeRuns(runs io.Reader) (*Segment, error) {
	page, err := firstRun(runs)
	if err != nil {
		return nil, err
	}
	memory, err := reserve(header(page).SegmentSize)
	if err != nil {
		return nil, err
	}
	copy(memory, page)
	if err := readRuns(runs, memory); err != nil {
		unix.Munmap(memory)
		return nil, err
	}
	s, err := New(memory)
	if err != nil {
		unix.Munmap(memory)
		return nil, err
	}
	s.mapped = true
	s.emptyRings()
	return s, nil
}

// DecodeHeader reads no more of an image than its segment's header.
func DecodeHeader(r io.Reader) (*Header, error) {
	runs, err := open(r)
	if err != nil {
		return nil, err
	}
	page, err := firstRun(runs)
	if err != nil {
		return nil, ended(err)
	}
	_, err = check(header(page))
	return header(page), err
}

func header(page []byte) *Header {
	return (*Header)(unsafe.Pointer(unsafe.SliceData(page)))
}

// ended turns the end of the input, which comes only after the last run, into
// words.
func ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("a truncated node image: it was cut short, as by a full disk or a copy that was interrupted; " +
			"copy it again, or run the job again")
	}
	return err
}

// open returns the runs of an image.
func open(r io.Reader) (io.Reader, error) {
	head := make([]byte, len(imageMagic))
	if _, err := io.ReadFull(r, head); err != nil || string(head) != imageMagic {
		return nil, errors.New("not a node image of evenkeel, or one of another version")
	}
	z, err := gzip.NewReader(r)
	return z, errors.Wrap(err, "a damaged node image")
}

// firstRun reads the first run, the page of the header, which tells the
// segment's size.
func firstRun(r io.Reader) (page []byte, err error) {
	offset, length, err := readHead(r)
	if err != nil {
		return nil, err
	}
	if offset != 0 || length != pageSize {
		return nil, errors.New("a damaged node image: it does not begin with a header")
	}
	page = make([]byte, pageSize)
	if _, err := io.ReadFull(r, page); err != nil {
		return nil, err
	}
	if size := header(page).SegmentSize; size < pageSize || size > maxImage {
		return nil, errors.New("a damaged node image: an impossible size")
	}
	return page, nil
}

// readHead reads where a run belongs, and its length.
func readHead(r io.Reader) (offset, length uint64, err error) {
	var head [16]byte
	_, err = io.ReadFull(r, head[:])
	return binary.LittleEndian.Uint64(head[:8]), binary.LittleEndian.Uint64(head[8:]), err
}

// readRuns reads all runs to their places, up to the last one, which is empty.
func readRuns(r io.Reader, memory []byte) error {
	for {
		offset, length, err := readHead(r)
		switch {
		case err != nil:
			return err
		case offset > uint64(len(memory)) || length > uint64(len(memory))-offset:
			return errors.New("a damaged node image: a run beyond its end")
		case length == 0 && offset == uint64(len(memory)):
			_, err := io.Copy(io.Discard, r) // makes gzip compare its checksum
			return errors.Wrap(err, "a damaged node image")
		}
		if _, err := io.ReadFull(r, memory[offset:offset+length]); err != nil {
			return err
		}
	}
}

// emptyRings counts as lost what the rings held when the image was taken, since
// an image has no rings.
func (s *Segment) emptyRings() {
	for i := range int(s.Header.LocalRanks) {
		for _, t := range s.Area(i).Threads {
			if t.RingHead != t.RingTail {
				t.RingLost += t.RingHead - t.RingTail
				t.RingTail = t.RingHead
			}
		}
	}
}

// Copy returns a private copy of the segment as it is at this moment, to be
// drained and read while its ranks go on. Empty pages take no memory.
func (s *Segment) Copy() (*Segment, error) {
	memory, err := reserve(uint64(len(s.memory)))
	if err != nil {
		return nil, err
	}
	take := func(from, to uintptr) error {
		copy(memory[from:to], s.memory[from:to])
		return nil
	}
	s.eachRun(take)
	for i := 0; i < int(s.Header.LocalRanks); i++ { // and the rings
		for t, thread := range s.Area(i).Threads {
			at := pageSize + uintptr(i)*s.layout.area + s.layout.threads + uintptr(t)*s.layout.threadSize
			ring := at + s.layout.threadRing
			s.eachUsed(ring, ring+uintptr(len(thread.Ring))*64, take)
		}
	}
	c, err := New(memory)
	if err != nil {
		unix.Munmap(memory)
		return nil, err
	}
	c.mapped = true
	c.Header.Anchor[1] = s.Header.Newest()
	return c, nil
}
