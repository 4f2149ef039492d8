// Package wire is the form of the packets by which tasks reach each other's memory: one header, nine bodies, one tag.
//
// Every packet is a Header, a body as its Type says, and the tag of its credential (pgas/gsm/credential), which covers
// all before it. Numbers are little-endian. Encoding appends to a slice; decoding reads from one, allocates nothing, and
// checks everything that can be checked without knowing the receiver. The bytes of a body that is decoded are those of
// the packet: valid as long as the packet is.
//
// docs/gsm-protocol.md shows every field and says what the protocol makes of it.
package wire

import (
	"encoding/binary"
	"strconv"

	"evenkeel/runtime/fabric"
)

// ProtocolVersion is that of these packets. Other versions are dropped: all tasks of a job run the same evenkeel.
const ProtocolVersion = 1

// Lengths in bytes of what every packet has.
const (
	HeaderLength = 40
	TagLength    = 16
	// Overhead is what a PUT packet carries besides data: more than any other.
	Overhead = HeaderLength + putLength + TagLength
)

// Type says which body follows the header.
type Type uint8

// The packets of a directed pair of tasks. The initiator sends Raise, Put, Get, Atomic and Message; the target sends the
// others.
const (
	TypeRaise   Type = iota + 1 // asks for a new epoch
	TypeConfirm                 // the target has cleared the old epoch
	TypePut                     // a part of a PUT
	TypeGet                     // asks for a part of a GET
	TypeData                    // a part of what a GET asked for
	TypeAtomic                  // an atomic update
	TypeMessage                 // an active message
	TypeAnswer                  // what became of an atomic, a message, or a command that was refused
	TypeAck                     // which packets of the epoch have arrived
	types
)

var typeNames = [types]string{
	TypeRaise: "raise", TypeConfirm: "confirm", TypePut: "put", TypeGet: "get", TypeData: "data",
	TypeAtomic: "atomic", TypeMessage: "message", TypeAnswer: "answer", TypeAck: "ack",
}

func (t Type) String() string {
	if t > 0 && t < types {
		return typeNames[t]
	}
	return "type " + strconv.Itoa(int(t))
}

// FromInitiator says whether the initiator of the directed pair sends t; else its target does.
func (t Type) FromInitiator() bool {
	return t == TypeRaise || t == TypePut || t == TypeGet || t == TypeAtomic || t == TypeMessage
}

// Life is a random number that a task takes when it starts. Another one means that the task ended and started again, and
// remembers nothing of what it agreed on. Zero means that the life of the peer is not known yet.
type Life uint32

// Key names the key that a packet's tag is made with. JobKey is that of all tasks of the job; others belong to subsets.
type Key uint16

// JobKey is the key that every task of the job has.
const JobKey Key = 0

// Header begins every packet.
type Header struct {
	Type       Type
	Key        Key
	Job        uint32
	Source     fabric.Task // who sent the packet
	Target     fabric.Task // whom it is for
	SourceLife Life
	TargetLife Life   // 0 only in the first Raise of a pair
	Counter    uint64 // the packets that Source has sealed in this life: the nonce of the tag
	Epoch      uint64 // of the directed pair, from 1
}

// Where the sealer of a packet finds what it writes last.
const counterAt = 24

// Append appends the header's bytes.
func (h *Header) Append(b []byte) []byte {
	b = append(b, ProtocolVersion, byte(h.Type))
	b = binary.LittleEndian.AppendUint16(b, uint16(h.Key))
	b = binary.LittleEndian.AppendUint32(b, h.Job)
	b = binary.LittleEndian.AppendUint32(b, uint32(h.Source))
	b = binary.LittleEndian.AppendUint32(b, uint32(h.Target))
	b = binary.LittleEndian.AppendUint32(b, uint32(h.SourceLife))
	b = binary.LittleEndian.AppendUint32(b, uint32(h.TargetLife))
	b = binary.LittleEndian.AppendUint64(b, h.Counter)
	return binary.LittleEndian.AppendUint64(b, h.Epoch)
}

// Decode reads the header of a packet and returns the rest, body and tag. The reason is Short, Version, UnknownType or
// Malformed.
func (h *Header) Decode(packet []byte) (rest []byte, reason Reason) {
	if len(packet) < HeaderLength+TagLength {
		return nil, Short
	}
	if packet[0] != ProtocolVersion {
		return nil, Version
	}
	h.Type = Type(packet[1])
	if h.Type == 0 || h.Type >= types {
		return nil, UnknownType
	}
	h.Key = Key(binary.LittleEndian.Uint16(packet[2:]))
	h.Job = binary.LittleEndian.Uint32(packet[4:])
	h.Source = fabric.Task(binary.LittleEndian.Uint32(packet[8:]))
	h.Target = fabric.Task(binary.LittleEndian.Uint32(packet[12:]))
	h.SourceLife = Life(binary.LittleEndian.Uint32(packet[16:]))
	h.TargetLife = Life(binary.LittleEndian.Uint32(packet[20:]))
	h.Counter = binary.LittleEndian.Uint64(packet[counterAt:])
	h.Epoch = binary.LittleEndian.Uint64(packet[32:])
	if h.SourceLife == 0 || h.Epoch == 0 || h.TargetLife == 0 && h.Type != TypeRaise {
		return nil, Malformed
	}
	return packet[HeaderLength:], OK
}

// SetCounter writes the counter into the bytes of a packet that was encoded without.
func SetCounter(packet []byte, counter uint64) {
	binary.LittleEndian.PutUint64(packet[counterAt:], counter)
}

// KeyOf is the key that the bytes of an encoded packet name.
func KeyOf(packet []byte) Key { return Key(binary.LittleEndian.Uint16(packet[2:])) }

// TypeOf is the type of an encoded packet.
func TypeOf(packet []byte) Type { return Type(packet[1]) }
