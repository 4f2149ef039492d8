package wire

import (
	"encoding/binary"
	"math"
)

// Order places a packet of the initiator among the others.
type Order struct {
	Number   uint64 // of the packet in its epoch; the same when it is sent again
	Sequence uint64 // of its operation in the pair, for ever
	Floor    uint64 // every operation with a lower sequence has had its notification
}

const orderLength = 24

func (o *Order) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, o.Number)
	b = binary.LittleEndian.AppendUint64(b, o.Sequence)
	return binary.LittleEndian.AppendUint64(b, o.Floor)
}

func (o *Order) decode(b []byte) bool {
	o.Number = binary.LittleEndian.Uint64(b)
	o.Sequence = binary.LittleEndian.Uint64(b[8:])
	o.Floor = binary.LittleEndian.Uint64(b[16:])
	return o.Floor <= o.Sequence
}

// Extent is the memory that a whole PUT or GET is about. Every packet of it says so, so that the target can refuse the
// operation before it writes any part.
type Extent struct {
	Window Window
	Count  uint32 // packets of data that the operation consists of, at least 1
	Offset uint64 // in the window, where the operation begins
	Length uint64 // bytes
}

const extentLength = 24

func (e *Extent) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(e.Window))
	b = binary.LittleEndian.AppendUint32(b, e.Count)
	b = binary.LittleEndian.AppendUint64(b, e.Offset)
	return binary.LittleEndian.AppendUint64(b, e.Length)
}

func (e *Extent) decode(b []byte) bool {
	e.Window = Window(binary.LittleEndian.Uint32(b))
	e.Count = binary.LittleEndian.Uint32(b[4:])
	e.Offset = binary.LittleEndian.Uint64(b[8:])
	e.Length = binary.LittleEndian.Uint64(b[16:])
	// No operation reaches around the end of all addresses, and none has packets without data, but for one that has no
	// data at all.
	return e.Offset <= math.MaxUint64-e.Length && e.Count >= 1 && (uint64(e.Count) <= e.Length || e.Count == 1)
}

// PutPart is one packet of a PUT. It tells all that is needed to execute it, in any order with the others.
type PutPart struct {
	Order
	Extent
	At      uint64  // where in the operation Data belongs
	Handler Handler // what the target runs when it has all packets; or None
	Data    []byte
}

const putLength = orderLength + extentLength + 12

// Append appends the body's bytes.
func (p *PutPart) Append(b []byte) []byte {
	b = p.Extent.append(p.Order.append(b))
	b = binary.LittleEndian.AppendUint64(b, p.At)
	b = binary.LittleEndian.AppendUint32(b, uint32(p.Handler))
	return append(b, p.Data...)
}

// Decode reads a whole body, without tag.
func (p *PutPart) Decode(b []byte) bool {
	if len(b) < putLength || !p.Order.decode(b) || !p.Extent.decode(b[orderLength:]) {
		return false
	}
	p.At = binary.LittleEndian.Uint64(b[orderLength+extentLength:])
	p.Handler = Handler(binary.LittleEndian.Uint32(b[orderLength+extentLength+8:]))
	p.Data = b[putLength:]
	return p.At <= p.Length && uint64(len(p.Data)) <= p.Length-p.At && (len(p.Data) > 0 || p.Length == 0)
}

// MaxRun is the most packets of data that one GetPart asks for.
const MaxRun = 16

// GetPart asks for Run packets of a GET's data: Stride bytes each from At on, the last as long as the operation goes.
// They have the numbers Number, Number+1, ...
type GetPart struct {
	Order
	Extent
	At     uint64
	Stride uint32
	Run    uint32 // 1 to MaxRun
}

const getLength = orderLength + extentLength + 16

// Append appends the body's bytes.
func (g *GetPart) Append(b []byte) []byte {
	b = g.Extent.append(g.Order.append(b))
	b = binary.LittleEndian.AppendUint64(b, g.At)
	b = binary.LittleEndian.AppendUint32(b, g.Stride)
	return binary.LittleEndian.AppendUint32(b, g.Run)
}

// Decode reads a whole body, without tag.
func (g *GetPart) Decode(b []byte) bool {
	if len(b) != getLength || !g.Order.decode(b) || !g.Extent.decode(b[orderLength:]) {
		return false
	}
	b = b[orderLength+extentLength:]
	g.At = binary.LittleEndian.Uint64(b)
	g.Stride = binary.LittleEndian.Uint32(b[8:])
	g.Run = binary.LittleEndian.Uint32(b[12:])
	if g.Run < 1 || g.Run > MaxRun || g.Stride < 1 || g.Number > math.MaxUint64-MaxRun {
		return false
	}
	if g.Length == 0 {
		return g.At == 0 && g.Run == 1
	}
	// The last packet of the run has at least one byte.
	return g.At < g.Length && uint64(g.Run-1)*uint64(g.Stride) < g.Length-g.At
}

// Part is where the i-th packet of the run belongs in the operation, and how many bytes it has.
func (g *GetPart) Part(i uint32) (at, length uint64) {
	at = g.At + uint64(i)*uint64(g.Stride)
	return at, min(uint64(g.Stride), g.Length-at)
}

// DataPart is one packet of what a GET asked for.
type DataPart struct {
	Number   uint64 // the one that it was asked for by
	Sequence uint64 // of the GET
	At       uint64 // where in the operation Data belongs
	Data     []byte
}

const dataLength = 24

// AppendData appends all of the body but its data, which the caller appends.
func (d *DataPart) AppendData(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, d.Number)
	b = binary.LittleEndian.AppendUint64(b, d.Sequence)
	return binary.LittleEndian.AppendUint64(b, d.At)
}

// Decode reads a whole body, without tag.
func (d *DataPart) Decode(b []byte) bool {
	if len(b) < dataLength {
		return false
	}
	d.Number = binary.LittleEndian.Uint64(b)
	d.Sequence = binary.LittleEndian.Uint64(b[8:])
	d.At = binary.LittleEndian.Uint64(b[16:])
	d.Data = b[dataLength:]
	return true
}
