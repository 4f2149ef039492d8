package wire

import "encoding/binary"

// MaxWords is the most words of a bitmap that a packet carries: the windows of packets and of sequences have at most 64
// times as many places.
const MaxWords = 64

// Raise asks the target to end the pair's epoch and begin the one in the header. Until it is confirmed the initiator
// sends nothing else.
type Raise struct {
	Floor uint64 // every operation below it has had its notification
}

const raiseLength = 8

// Append appends the body's bytes.
func (r *Raise) Append(b []byte) []byte { return binary.LittleEndian.AppendUint64(b, r.Floor) }

// Decode reads a whole body, without tag.
func (r *Raise) Decode(b []byte) bool {
	if len(b) != raiseLength {
		return false
	}
	r.Floor = binary.LittleEndian.Uint64(b)
	return true
}

// Bitmap is a list of marks that is decoded where it lies: mark i is bit i%64 of word i/64.
type Bitmap struct{ bytes []byte }

// BitmapOf is the bitmap of encoded words, as decoding makes it.
func BitmapOf(words []uint64) Bitmap { return Bitmap{appendWords(nil, words)} }

// Len is how many marks there is room for, a multiple of 64.
func (m Bitmap) Len() int { return len(m.bytes) * 8 }

// Word is the i-th word.
func (m Bitmap) Word(i int) uint64 { return binary.LittleEndian.Uint64(m.bytes[8*i:]) }

// Get says whether mark i is set. Beyond Len none is.
func (m Bitmap) Get(i uint64) bool {
	return i < uint64(m.Len()) && m.Word(int(i/64))>>(i%64)&1 != 0
}

func decodeWords(b []byte) (Bitmap, bool) {
	return Bitmap{b}, len(b)%8 == 0 && len(b)/8 <= MaxWords
}

func appendWords(b []byte, words []uint64) []byte {
	for _, w := range words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}

// Confirm answers a Raise: nothing of an earlier epoch will be executed any more.
type Confirm struct {
	Floor uint64 // that of the last Raise, or a later one
	// Done has mark i set if all of the PUT with sequence Floor+i was executed: it must not be sent again.
	Done Bitmap
}

// AppendConfirm appends the body's bytes; done are the words of the bitmap.
func AppendConfirm(b []byte, floor uint64, done []uint64) []byte {
	return appendWords(binary.LittleEndian.AppendUint64(b, floor), done)
}

// Decode reads a whole body, without tag.
func (c *Confirm) Decode(b []byte) (ok bool) {
	if len(b) < 8 {
		return false
	}
	c.Floor = binary.LittleEndian.Uint64(b)
	c.Done, ok = decodeWords(b[8:])
	return ok
}

// Ack says which packets of the epoch the target has.
type Ack struct {
	Base     uint64 // all packets with a lower number
	Received Bitmap // and those with number Base+i for every mark i
}

// AppendAck appends the body's bytes; received are the words of the bitmap.
func AppendAck(b []byte, base uint64, received []uint64) []byte {
	return appendWords(binary.LittleEndian.AppendUint64(b, base), received)
}

// Decode reads a whole body, without tag.
func (a *Ack) Decode(b []byte) (ok bool) {
	if len(b) < 8 {
		return false
	}
	a.Base = binary.LittleEndian.Uint64(b)
	a.Received, ok = decodeWords(b[8:])
	return ok
}
