package svd

import (
	"encoding/binary"

	"github.com/pkg/errors"

	"evenkeel/collectives/varint"
)

// Messages between two tasks, besides those of the relay, whose kinds come before
// these. Every one begins with its kind; numbers are varints.
//
//	want      handle, nonce                      a user asks an object's home for its entry
//	state     handle, nonce, reason [, entry]    and is told, and kept up to date from now on
//	forget    handle, nonce                      but not any longer
//	request   sequence, count, orders            orders to a home
//	answer    sequence, count, results
//	busy      sequence                           the request was repeated, and not all of it is done yet
//
// An order is its operation and handle (free) or spec (allocate in All); a result is
// a reason, 0 for done, and a handle.
const (
	kindWant byte = iota + 16
	kindState
	kindForget
	kindRequest
	kindAnswer
	kindBusy
	kinds
)

// What the relay broadcasts:
//
//	update   handle, ticket, entry    the entry is so now; allocated by that collective call, if any
//	release  handle, address, size, tail   everyone has let go of that: each task may use its own part again
//	refuse   ticket, reason, task, detail   no object came of a collective call, because of that task
//	copy     handle, from, to, bytes        nobody uses the object: each task copies its own part
const (
	newsUpdate byte = iota + 1
	newsRelease
	newsRefuse
	newsCopy
)

var errMessage = errors.New("no message of the shared variable directory")

func appendHandle(to []byte, h Handle) []byte { return binary.AppendUvarint(to, uint64(h)) }

func appendSpec(to []byte, s Spec) []byte {
	for _, n := range []uint64{s.Address, s.Size, s.Blocking, s.Elements, uint64(s.Element)} {
		to = binary.AppendUvarint(to, n)
	}
	return append(to, byte(s.Kind))
}

// longestEntry is what an update takes at most.
const longestEntry = 1 + 2*10 + 5*10 + 1 + 1 + 10

func appendEntry(to []byte, e Entry) []byte {
	to = append(appendSpec(to, e.Spec), byte(e.State))
	return binary.AppendUvarint(to, e.Version)
}

// reader takes a message of the directory apart.
type reader struct{ varint.Reader }

func read(message []byte) reader { return reader{varint.Reader{Rest: message}} }

// handle reads a handle of an object that can be.
func (r *reader) handle(tasks int) Handle {
	h := Handle(r.Number())
	if h.Generation() == 0 || h.Partition() != All && int(h.Partition()) >= tasks {
		r.Bad = true
	}
	return h
}

func (r *reader) spec() Spec {
	s := Spec{Address: r.Number(), Size: r.Number(), Blocking: r.Number(), Elements: r.Number()}
	element := r.Number()
	s.Element, s.Kind = uint32(element), Kind(r.Byte())
	r.Bad = r.Bad || element > 1<<32-1
	return s
}

func (r *reader) entry() Entry {
	e := Entry{Spec: r.spec(), State: State(r.Byte())}
	e.Version = r.Number()
	r.Bad = r.Bad || e.State >= states || e.check() != nil
	return e
}

func (r *reader) reason() Reason {
	reason := Reason(r.Byte())
	r.Bad = r.Bad || reason >= reasons
	return reason
}
