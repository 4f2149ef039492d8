package dgsp

// The packets of a message. Each says all that is needed to take it alone, so that they may arrive
// in any order. Numbers are little-endian; docs/dgsp.md has the layout as a table.

import (
	"encoding/binary"

	"github.com/pkg/errors"
)

// ErrPacket is the cause of what is said of bytes that are no packet, or one that contradicts
// another of its message.
var ErrPacket = errors.New("not a packet of a data gather/scatter message")

type packetKind uint8

const (
	describes packetKind = iota + 1 // a part of the description
	carries                         // a part of the data
	reports                         // what the receiver has
)

// Lengths in bytes, without what is variable.
const (
	headLength     = 16
	describeLength = headLength + 64
	carryLength    = headLength + 16
	reportLength   = headLength + 24 + 8 + windowWords*8
	// MaxHeader is the most bytes that a handler is given along with a message. All description
	// packets carry them.
	MaxHeader = 256
	// MinMTU is the least length of packets with which messages can be sent.
	MinMTU = describeLength + MaxHeader + 16
)

// So many packets of a message may be under way beyond the first that is missing: what a report has
// marks for.
const (
	windowWords       = 8
	window            = windowWords * 64
	descriptionWindow = 64
)

// head begins every packet.
type head struct {
	kind   packetKind
	state  state  // of a report
	reason Reason // of a report that refuses
	// sent is when the packet was sent, in µs of its sender's time modulo 2^32. A report repeats
	// that of the packet which it answers, by which its round trip is known.
	sent   uint32
	number Number
}

// Number is that of a message of one task to another: 0, 1, 2... never used twice.
type Number uint64

// state is how far the receiver is with a message.
type state uint8

const (
	incomplete state = iota // parts of the description are missing
	unknown                 // the layout was only named, and is not held here
	described               // the description is complete
	done                    // all data is in its place
	refused                 // it will not be placed: the reason says why
	states
)

// Reason says why a receiver refuses a message.
type Reason uint8

// Reasons that the shell gives with Refuse, or the receiver itself.
const (
	NoReason      Reason = iota
	BadProgram           // the description is no program, or the program takes too much memory
	TooLarge             // the description is longer than what a receiver puts together
	SizeDiffers          // the program places another number of bytes than the message has
	NoWindow             // there is no such window
	OutOfRange           // the layout reaches out of the window
	Protected            // the window, or a page of it, can't be written
	NoHandler            // there is no such handler
	HandlerChoice        // the handler did not want it
	Busy                 // the target has as many messages under way as may be: ask again
	WrongKey             // the window wants another key than that under which the message came
	reasons
)

var reasonTexts = [reasons]string{
	"no reason", "the description is not a program, or one too large for the target", "the layout is too large for the target",
	"the layout has another number of bytes than the message", "there is no such window",
	"the layout reaches out of the window", "the memory is protected", "there is no such handler", "the handler refused it", "it has too many messages under way",
	"the window wants another key",
}

func (r Reason) String() string { return reasonTexts[min(r, reasons-1)] }

// Error makes a reason the cause of the error that a refused message ends with.
func (r Reason) Error() string { return "the target refused: " + r.String() }

func (h *head) append(b []byte) []byte {
	b = append(b, byte(h.kind), byte(h.state), byte(h.reason), 0)
	b = binary.LittleEndian.AppendUint32(b, h.sent)
	return binary.LittleEndian.AppendUint64(b, uint64(h.number))
}

func (h *head) decode(b []byte) ([]byte, error) {
	if len(b) < headLength {
		return nil, errors.WithMessagef(ErrPacket, "%d bytes", len(b))
	}
	h.kind, h.state, h.reason = packetKind(b[0]), state(b[1]), Reason(b[2])
	h.sent = binary.LittleEndian.Uint32(b[4:])
	h.number = Number(binary.LittleEndian.Uint64(b[8:]))
	isReport := h.kind == reports
	if h.kind < describes || h.kind > reports || b[3] != 0 || h.state >= states || h.reason >= reasons ||
		!isReport && h.state != 0 || (h.reason != NoReason) != (h.state == refused) || h.number == ^Number(0) {
		return nil, errors.WithMessage(ErrPacket, "its head has impossible values")
	}
	return b[headLength:], nil
}

// sizes say how the data of a message is divided; every description and data packet has them.
type sizes struct {
	size  int // of the packed data
	chunk int // of each data packet but the last
}

// packets is the number of data packets.
func (s sizes) packets() int { return parts(s.size, s.chunk) }

func parts(size, each int) int { return (size + each - 1) / each }

func (s sizes) valid() bool {
	return s.chunk > 0 && s.size >= 0 && s.size <= 1<<60 && s.packets() <= 1<<31
}

// description is what description packets say, each with a part of the wire form of the program.
type description struct {
	sizes
	hash      Hash
	base      int
	window    uint32
	handler   uint32 // 0: the passive form
	wire      int    // bytes of the wire form; 0: the receiver is thought to hold it
	pieceSize int    // of each part of the wire form but the last
	index     int    // which part this is
	asks      bool   // no data comes: what the layout names is wanted
	header    []byte // for the handler
	piece     []byte
}

// pieces is the number of description packets.
func (d *description) pieces() int { return max(1, parts(d.wire, d.pieceSize)) }

func (d *description) append(b []byte) []byte {
	b = append(b, d.hash[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(d.size))
	b = binary.LittleEndian.AppendUint64(b, uint64(d.base))
	asks := uint32(0)
	if d.asks {
		asks = 1
	}
	for _, n := range [...]uint32{d.window, d.handler, uint32(d.chunk), uint32(d.wire), uint32(d.pieceSize), uint32(d.index),
		uint32(len(d.header)), asks} {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	return append(append(b, d.header...), d.piece...)
}

func (d *description) decode(b []byte) error {
	if len(b) < describeLength-headLength {
		return errors.WithMessagef(ErrPacket, "a description of %d bytes", len(b))
	}
	copy(d.hash[:], b)
	d.size = int(binary.LittleEndian.Uint64(b[16:]))
	d.base = int(binary.LittleEndian.Uint64(b[24:]))
	number := func(i int) int { return int(binary.LittleEndian.Uint32(b[32+4*i:])) }
	d.window, d.handler, d.chunk, d.wire = uint32(number(0)), uint32(number(1)), number(2), number(3)
	d.pieceSize, d.index = number(4), number(5)
	header := number(6)
	rest := b[describeLength-headLength:]
	if !d.valid() || d.pieceSize == 0 || header > MaxHeader || header > len(rest) || number(7) > 1 || d.index >= d.pieces() {
		return errors.WithMessage(ErrPacket, "a description with impossible values")
	}
	if d.asks = number(7) == 1; d.asks && (d.size != 0 || d.handler != 0) {
		return errors.WithMessage(ErrPacket, "a description that asks for data and has some, or a handler")
	}
	d.header, d.piece = rest[:header], rest[header:]
	if len(d.piece) != min(d.pieceSize, d.wire-d.index*d.pieceSize) {
		return errors.WithMessage(ErrPacket, "a part of a description of the wrong length")
	}
	return nil
}

// carried is what a data packet has.
type carried struct {
	sizes
	index int
	data  []byte
}

// from is where the data begins in the packed form.
func (c *carried) from() int { return c.index * c.chunk }

// append leaves the data to be put behind it.
func (c *carried) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(c.size))
	b = binary.LittleEndian.AppendUint32(b, uint32(c.chunk))
	return binary.LittleEndian.AppendUint32(b, uint32(c.index))
}

// length is that of the data, if the index is in range.
func (c *carried) length() int { return min(c.chunk, c.size-c.from()) }

func (c *carried) decode(b []byte) error {
	if len(b) < carryLength-headLength {
		return errors.WithMessagef(ErrPacket, "data of %d bytes", len(b))
	}
	c.size = int(binary.LittleEndian.Uint64(b))
	c.chunk = int(binary.LittleEndian.Uint32(b[8:]))
	c.index = int(binary.LittleEndian.Uint32(b[12:]))
	c.data = b[16:]
	if !c.valid() || c.index >= c.packets() || len(c.data) != c.length() {
		return errors.WithMessage(ErrPacket, "data with impossible values")
	}
	return nil
}

// received are the parts that have arrived: all before first, and first+i for each mark i.
type received[W any] struct {
	first int
	marks W
}

// report says what the receiver has of a message.
type report struct {
	pendingDescription, pendingData int // packets that have not come; -1: their number is not known yet
	description                     received[uint64]
	data                            received[[windowWords]uint64]
}

func (r *report) append(b []byte) []byte {
	for _, n := range [...]int{r.pendingDescription, r.pendingData, r.description.first, r.data.first, 0, 0} {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	b = binary.LittleEndian.AppendUint64(b, r.description.marks)
	for _, w := range r.data.marks {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}

func (r *report) decode(b []byte) error {
	if len(b) != reportLength-headLength {
		return errors.WithMessagef(ErrPacket, "a report of %d bytes", len(b))
	}
	number := func(i int) int { return int(int32(binary.LittleEndian.Uint32(b[4*i:]))) }
	r.pendingDescription, r.pendingData, r.description.first, r.data.first = number(0), number(1), number(2), number(3)
	if r.pendingDescription < -1 || r.pendingData < -1 || r.description.first < 0 || r.data.first < 0 || number(4) != 0 || number(5) != 0 {
		return errors.WithMessage(ErrPacket, "a report with impossible values")
	}
	r.description.marks = binary.LittleEndian.Uint64(b[24:])
	for i := range r.data.marks {
		r.data.marks[i] = binary.LittleEndian.Uint64(b[32+8*i:])
	}
	return nil
}

// IsReport says whether a packet is for the Sender of a pair; others are for the Receiver.
func IsReport(packet []byte) bool { return len(packet) > 0 && packetKind(packet[0]) == reports }
