package epoch

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"evenkeel/pgas/gsm/wire"
	"evenkeel/runtime/fabric"
)

// Scenarios in testdata/scenarios, beside which rapid leaves what failed: each command is followed by what it
// leads to. `go test ./pgas/gsm/epoch -run Scenarios -rewrite` writes down what happens now.
//
//	tasks [setting=value...]                         two tasks, and memory of zeros
//	command OP [at=] [length=] [width=] [operand=] [compare=] [window=] [handler=]   by task 0 on task 1
//	send                                             everything that is to go out, into the network
//	deliver N...|all                                 packets by their number; they stay in the network
//	lose N...                                        packets that will never arrive
//	time AT                                          what is due until then
//	write AT LENGTH VALUE, read AT LENGTH            the memory of task 1, by itself
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/scenarios", func(t *testing.T, path string) {
		s := &scenario{t: t}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.out.Reset()
			s.run(d)
			if s.out.Len() == 0 {
				return "nothing"
			}
			return s.out.String()
		})
	})
}

// scenario is two tasks and a network that moves packets by hand.
type scenario struct {
	t       *testing.T
	out     strings.Builder
	now     time.Duration
	tasks   [2]*Endpoint
	memory  *byHand
	packets []transit
	dropped [2]Counters
	token   uint64
	data    map[uint64][]byte
}

type transit struct {
	bytes []byte
	to    fabric.Task
	gone  bool
}

// byHand is the memory of task 1: it says what is done to it.
type byHand struct {
	s     *scenario
	bytes [1024]byte
}

func (m *byHand) Check(w wire.Window, _ wire.Op, offset, length uint64) error {
	if w != 0 {
		return wire.NoWindow
	}
	if offset > uint64(len(m.bytes)) || length > uint64(len(m.bytes))-offset {
		return wire.Range
	}
	return nil
}

func (m *byHand) Write(_ wire.Window, offset uint64, data []byte) error {
	m.s.printf("  memory [%d,%d) = %#x", offset, int(offset)+len(data), data[0])
	copy(m.bytes[offset:], data)
	return nil
}

func (m *byHand) Read(_ wire.Window, offset uint64, into []byte) error {
	copy(into, m.bytes[offset:])
	return nil
}

func (m *byHand) Atomic(w wire.Window, offset uint64, op wire.Op, width int, operand, compare uint64) (uint64, error) {
	if err := m.Check(w, op, offset, uint64(width)); err != nil {
		return 0, err
	}
	old := getWord(m.bytes[:], offset)
	now := op.Apply(width, old, operand, compare)
	for i := range uint64(8) {
		m.bytes[offset+i] = byte(now >> (8 * i))
	}
	m.s.printf("  memory %v at %d: %d -> %d", op, offset, old, now)
	return old, nil
}

func (m *byHand) Has(h wire.Handler) bool { return h == 1 }

func (m *byHand) Message(_ fabric.Task, _ wire.Key, h wire.Handler, data, reply []byte) ([]byte, error) {
	m.s.printf("  handler %d gets %d bytes", h, len(data))
	return append(reply, "thanks"...), nil
}

func (m *byHand) Arrived(_ fabric.Task, h wire.Handler, _ wire.Window, offset, length uint64) {
	m.s.printf("  handler %d: [%d,%d) has arrived", h, offset, offset+length)
}

func (s *scenario) printf(format string, a ...any) { fmt.Fprintf(&s.out, format+"\n", a...) }

func (s *scenario) run(d *datadriven.TestData) {
	switch d.Cmd {
	case "tasks":
		s.make(d)
	case "command":
		s.command(d)
	case "send":
		s.send()
	case "deliver":
		s.deliver(d)
	case "lose":
		for _, a := range d.CmdArgs {
			s.packets[s.number(a.Key)].gone = true
		}
	case "time":
		s.now, _ = time.ParseDuration(d.CmdArgs[0].Key)
		for self, e := range s.tasks {
			e.Advance(s.now)
			s.notifications(self)
		}
	case "write":
		at, length, value := s.number(d.CmdArgs[0].Key), s.number(d.CmdArgs[1].Key), s.number(d.CmdArgs[2].Key)
		for i := range length {
			s.memory.bytes[at+i] = byte(value)
		}
	case "read":
		at, length := s.number(d.CmdArgs[0].Key), s.number(d.CmdArgs[1].Key)
		s.printf("%x", s.memory.bytes[at:at+length])
	default:
		d.Fatalf(s.t, "no such command: %s", d.Cmd)
	}
}

func (s *scenario) number(text string) int {
	n, err := strconv.ParseInt(text, 0, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return int(n)
}

func argument(d *datadriven.TestData, name string, otherwise uint64) uint64 {
	for _, a := range d.CmdArgs {
		if a.Key == name {
			n, err := strconv.ParseUint(a.Vals[0], 0, 64)
			if err == nil {
				return n
			}
		}
	}
	return otherwise
}

func (s *scenario) make(d *datadriven.TestData) {
	*s = scenario{t: s.t, data: map[uint64][]byte{}}
	s.memory = &byHand{s: s}
	for self := range s.tasks {
		c := Default()
		c.Self, c.Job, c.Life = fabric.Task(self), 7, wire.Life(self+1)
		c.MTU = func(fabric.Task) int { return wire.Overhead + 100 }
		c.Memory = func(fabric.Task, wire.Key) Memory { return s.memory }
		c.Handlers = s.memory
		c.Operations, c.Packets = int(argument(d, "operations", 8)), 32
		c.Repairs = int(argument(d, "repairs", 2))
		c.Queue = int(argument(d, "queue", 8))
		c.First = argument(d, "first", 1)
		c.FirstTimeout, c.LeastTimeout, c.MostTimeout, c.Silence = 10*time.Millisecond, time.Millisecond, 40*time.Millisecond, time.Second
		e, err := New(c)
		if err != nil {
			s.t.Fatal(err)
		}
		s.tasks[self] = e
	}
}

func (s *scenario) command(d *datadriven.TestData) {
	s.token++
	c := Command{
		Peer: 1, Token: s.token, Window: wire.Window(argument(d, "window", 0)), Offset: argument(d, "at", 0),
		Handler: wire.Handler(argument(d, "handler", 0)), Operand: argument(d, "operand", 0), Compare: argument(d, "compare", 0),
	}
	for op := wire.Put; op.Valid(); op++ {
		if strings.EqualFold(op.String(), d.CmdArgs[0].Key) || op == wire.Message && d.CmdArgs[0].Key == "message" {
			c.Op = op
		}
	}
	if c.Op.Atomic() {
		c.Width = int(argument(d, "width", 8))
	} else {
		c.Data = make([]byte, argument(d, "length", 0))
		for i := range c.Data {
			c.Data[i] = byte(s.token)
		}
	}
	s.data[s.token] = c.Data
	if err := s.tasks[0].Submit(s.now, c); err != nil {
		s.printf("refused: %v", err)
		return
	}
	s.printf("operation %d", s.token)
}

func (s *scenario) send() {
	for self, e := range s.tasks {
		for {
			packet, to, _, ok := e.Next(s.now, make([]byte, 0, wire.Overhead+100))
			if !ok {
				break
			}
			s.printf("%2d: %d -> %d %s", len(s.packets), self, to, describe(packet))
			s.packets = append(s.packets, transit{bytes: packet, to: to})
		}
	}
}

func (s *scenario) deliver(d *datadriven.TestData) {
	var which []int
	for _, a := range d.CmdArgs {
		if a.Key != "all" {
			which = append(which, s.number(a.Key))
			continue
		}
		for n := range s.packets {
			if !s.packets[n].gone {
				which = append(which, n)
			}
		}
	}
	for _, n := range which {
		p := &s.packets[n]
		p.gone = true
		var h wire.Header
		body, _ := h.Decode(append(p.bytes, make([]byte, wire.TagLength)...))
		before := s.tasks[p.to].Counters()
		s.printf("%2d:", n)
		s.tasks[p.to].Receive(s.now, &h, body[:len(body)-wire.TagLength])
		for r, count := range s.tasks[p.to].Counters().Dropped {
			if count > before.Dropped[r] {
				s.printf("  not executed: %v", wire.Reason(r))
			}
		}
		s.notifications(int(p.to))
	}
}

func (s *scenario) notifications(self int) {
	for _, n := range s.tasks[self].Notifications(nil) {
		text := fmt.Sprintf("  NOTIFICATION of operation %d: %v", n.Token, n.Reason)
		switch {
		case n.Reason != wire.OK:
		case n.Op.Atomic():
			text += fmt.Sprintf(", the word was %d", n.Value)
		case n.Op == wire.Message:
			text += fmt.Sprintf(", reply %q", n.Reply)
		case n.Op == wire.Get:
			text += fmt.Sprintf(", data %x...", s.data[n.Token][:4])
		}
		s.printf("%s", text)
	}
}

// describe is a packet in words.
func describe(packet []byte) string {
	var h wire.Header
	body, _ := h.Decode(append(append([]byte(nil), packet...), make([]byte, wire.TagLength)...))
	body = body[:len(body)-wire.TagLength]
	text := fmt.Sprintf("epoch %d %v", h.Epoch, h.Type)
	order := func(o wire.Order) string {
		return fmt.Sprintf(" number %d, sequence %d, floor %d", o.Number, o.Sequence, o.Floor)
	}
	switch h.Type {
	case wire.TypeRaise:
		var p wire.Raise
		p.Decode(body)
		return text + fmt.Sprintf(" floor %d", p.Floor)
	case wire.TypeConfirm:
		var p wire.Confirm
		p.Decode(body)
		return text + " done" + marked(p.Floor, p.Done)
	case wire.TypeAck:
		var p wire.Ack
		p.Decode(body)
		text += fmt.Sprintf(" all below %d and", p.Base) + marked(p.Base, p.Received)
		if p.Refused.Len() > 0 {
			text += ", refused sequence" + marked(p.Floor, p.Refused)
		}
		return text
	case wire.TypePut:
		var p wire.PutPart
		p.Decode(body)
		return text + order(p.Order) + fmt.Sprintf(": one of %d packets, [%d,%d)", p.Count, p.Offset+p.At, p.Offset+p.At+uint64(len(p.Data)))
	case wire.TypeGet:
		var p wire.GetPart
		p.Decode(body)
		return text + order(p.Order) + fmt.Sprintf(": %d of %d packets from %d", p.Run, p.Count, p.Offset+p.At)
	case wire.TypeData:
		var p wire.DataPart
		p.Decode(body)
		return text + fmt.Sprintf(" number %d, sequence %d: %d bytes at %d", p.Number, p.Sequence, len(p.Data), p.At)
	case wire.TypeAtomic:
		var p wire.Atomic
		p.Decode(body)
		return text + order(p.Order) + fmt.Sprintf(": %v %d", p.Op, p.Operand)
	case wire.TypeMessage:
		var p wire.ActiveMessage
		p.Decode(body)
		return text + order(p.Order) + fmt.Sprintf(": %d bytes", len(p.Data))
	}
	var p wire.Answer
	p.Decode(body)
	if p.Reason != wire.OK {
		return text + fmt.Sprintf(" number %d, sequence %d: refused, %v", p.Number, p.Sequence, p.Reason)
	}
	return text + fmt.Sprintf(" number %d, sequence %d: %d", p.Number, p.Sequence, p.Value)
}

func marked(from uint64, m wire.Bitmap) string {
	text := ""
	for i := range uint64(m.Len()) {
		if m.Get(i) {
			text += fmt.Sprintf(" %d", from+i)
		}
	}
	if text == "" {
		return " nothing"
	}
	return text
}
