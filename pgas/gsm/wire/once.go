package wire

import "encoding/binary"

// Atomic is an update of one word: a guaranteed-once delivery.
type Atomic struct {
	Order
	Window  Window
	Op      Op
	Width   uint8 // bytes: 4 or 8
	Offset  uint64
	Operand uint64
	Compare uint64 // of COMPARE-AND-SWAP; else 0
}

const atomicLength = orderLength + 32

// Append appends the body's bytes.
func (a *Atomic) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(a.Order.append(b), uint32(a.Window))
	b = append(b, byte(a.Op), a.Width, 0, 0)
	b = binary.LittleEndian.AppendUint64(b, a.Offset)
	b = binary.LittleEndian.AppendUint64(b, a.Operand)
	return binary.LittleEndian.AppendUint64(b, a.Compare)
}

// Decode reads a whole body, without tag.
func (a *Atomic) Decode(b []byte) bool {
	if len(b) != atomicLength || !a.Order.decode(b) {
		return false
	}
	b = b[orderLength:]
	a.Window = Window(binary.LittleEndian.Uint32(b))
	a.Op, a.Width = Op(b[4]), b[5]
	a.Offset = binary.LittleEndian.Uint64(b[8:])
	a.Operand = binary.LittleEndian.Uint64(b[16:])
	a.Compare = binary.LittleEndian.Uint64(b[24:])
	return a.Op.Atomic() && (a.Width == 4 || a.Width == 8) && b[6] == 0 && b[7] == 0
}

// ActiveMessage runs a handler of the target with some data: a guaranteed-once delivery.
type ActiveMessage struct {
	Order
	Handler Handler
	Data    []byte
}

const messageLength = orderLength + 4

// Append appends the body's bytes.
func (m *ActiveMessage) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(m.Order.append(b), uint32(m.Handler))
	return append(b, m.Data...)
}

// Decode reads a whole body, without tag.
func (m *ActiveMessage) Decode(b []byte) bool {
	if len(b) < messageLength || !m.Order.decode(b) {
		return false
	}
	m.Handler = Handler(binary.LittleEndian.Uint32(b[orderLength:]))
	m.Data = b[messageLength:]
	return m.Handler != None
}

// Answer says what became of an operation: the value of an atomic, the reply to a message, or why the target refuses.
type Answer struct {
	Number   uint64 // of the packet that it answers
	Sequence uint64
	Value    uint64 // of an atomic: the word before the update
	Reason   Reason // OK, or why it was refused
	Data     []byte // the reply to a message
}

const answerLength = 25

// Append appends the body's bytes.
func (a *Answer) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, a.Number)
	b = binary.LittleEndian.AppendUint64(b, a.Sequence)
	b = binary.LittleEndian.AppendUint64(b, a.Value)
	b = append(b, byte(a.Reason))
	return append(b, a.Data...)
}

// Decode reads a whole body, without tag.
func (a *Answer) Decode(b []byte) bool {
	if len(b) < answerLength {
		return false
	}
	a.Number = binary.LittleEndian.Uint64(b)
	a.Sequence = binary.LittleEndian.Uint64(b[8:])
	a.Value = binary.LittleEndian.Uint64(b[16:])
	a.Reason = Reason(b[24])
	a.Data = b[answerLength:]
	return a.Reason == OK || a.Reason.Refusal() && len(a.Data) == 0
}
