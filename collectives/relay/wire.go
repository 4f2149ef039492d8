package relay

import (
	"encoding/binary"

	"github.com/pkg/errors"

	"evenkeel/collectives"
	"evenkeel/collectives/varint"
)

// The messages. Every one begins with its kind; numbers are varints.
//
//	pass          origin, number, number-floor, number-first, parts, hops, schedule, route, data
//	done          origin, number
//	contribution  group, sequence, value
//	taken         group, sequence
//
// number counts the parts of an origin's broadcasts; those below floor are with
// everyone. first is the number of the broadcast's first part, parts how many it
// has. The schedule is four bytes, the kinds and radices of its two shapes. The
// route is the receivers below the one to whom the message goes: a count, and the
// steps from one to the next, in which a run of consecutive tasks is one step.
const (
	kindPass byte = iota + 1
	kindDone
	kindContribution
	kindTaken
	kinds
)

// pass is a part of a broadcast on its way.
type pass struct {
	origin        Task
	number, floor uint64
	first, parts  uint64
	hops          uint64
	schedule      collectives.Schedule
	route         []Task
	data          []byte
}

var errMessage = errors.New("no message of the relay")

func (p pass) append(to []byte) []byte {
	to = append(to, kindPass)
	to = binary.AppendUvarint(to, uint64(p.origin))
	for _, n := range []uint64{p.number, p.number - p.floor, p.number - p.first, p.parts, p.hops} {
		to = binary.AppendUvarint(to, n)
	}
	s := p.schedule
	to = append(to, byte(s.Outer.Kind), s.Outer.Radix, byte(s.Inner.Kind), s.Inner.Radix)
	to = appendRoute(to, p.route)
	return append(to, p.data...)
}

// parsePass reads what append wrote, after the kind. The data stays where it is. A
// route is never longer than a job has tasks.
func parsePass(message []byte, tasks int) (pass, error) {
	r := read(message)
	p := pass{origin: r.task(tasks), number: r.Number()}
	p.floor = p.number - r.Number()
	p.first = p.number - r.Number()
	p.parts, p.hops = r.Number(), r.Number()
	shapes := r.Bytes(4)
	p.route = r.route(tasks)
	if r.Bad {
		return pass{}, errMessage
	}
	p.schedule.Outer = collectives.Shape{Kind: collectives.Kind(shapes[0]), Radix: shapes[1]}
	p.schedule.Inner = collectives.Shape{Kind: collectives.Kind(shapes[2]), Radix: shapes[3]}
	p.data = r.Rest
	if err := p.schedule.Check(); err != nil {
		return pass{}, err
	}
	if p.floor > p.number || p.first > p.number || p.number-p.first >= p.parts || p.parts > maxParts ||
		p.floor > p.first || p.hops > uint64(tasks) {
		return pass{}, errMessage
	}
	return p, nil
}

// appendRoute writes the receivers of a message, in order. A step is the distance
// from the task after the last one (so 0 is the next), and one bit that says
// whether the number of further consecutive tasks follows.
func appendRoute(to []byte, route []Task) []byte {
	to = binary.AppendUvarint(to, uint64(len(route)))
	expected := int64(0)
	for i := 0; i < len(route); {
		run := 1
		for i+run < len(route) && route[i+run] == route[i+run-1]+1 {
			run++
		}
		step := int64(route[i]) - expected
		zigzag := uint64(step<<1) ^ uint64(step>>63)
		if run == 1 {
			to = binary.AppendUvarint(to, zigzag<<1)
		} else {
			to = binary.AppendUvarint(to, zigzag<<1|1)
			to = binary.AppendUvarint(to, uint64(run-1))
		}
		expected = int64(route[i+run-1]) + 1
		i += run
	}
	return to
}

// reader takes a message of the relay apart.
type reader struct{ varint.Reader }

func read(message []byte) reader { return reader{varint.Reader{Rest: message}} }

func (r *reader) task(tasks int) Task {
	n := r.Number()
	r.Bad = r.Bad || n >= uint64(tasks)
	return Task(n)
}

func (r *reader) route(tasks int) []Task {
	count := r.Number()
	if r.Bad || count >= uint64(tasks) {
		r.Bad = r.Bad || count > 0
		return nil
	}
	route := make([]Task, 0, count)
	expected := int64(0)
	for uint64(len(route)) < count {
		step, run := r.Number(), uint64(0)
		if step&1 != 0 {
			run = r.Number()
		}
		zigzag := step >> 1
		first := expected + (int64(zigzag>>1) ^ -int64(zigzag&1))
		if r.Bad || first < 0 || first >= int64(tasks) || run >= count || first+int64(run) >= int64(tasks) ||
			uint64(len(route))+run >= count {
			r.Bad = true
			return nil
		}
		for i := range run + 1 {
			route = append(route, Task(first+int64(i)))
		}
		expected = first + int64(run) + 1
	}
	return route
}

// key names a part of a broadcast in the job.
type key struct {
	origin Task
	number uint64
}

func (k key) done(to []byte) []byte {
	to = binary.AppendUvarint(append(to, kindDone), uint64(k.origin))
	return binary.AppendUvarint(to, k.number)
}

// step names a reduction: the group's, and the how many-th of the group.
type step struct {
	group    uint32
	sequence uint64
}

func (s step) append(to []byte, kind byte) []byte {
	to = binary.AppendUvarint(append(to, kind), uint64(s.group))
	return binary.AppendUvarint(to, s.sequence)
}

func (r *reader) step() step {
	group := r.Number()
	r.Bad = r.Bad || group > 1<<32-1
	return step{uint32(group), r.Number()}
}
