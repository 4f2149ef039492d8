// Package varint takes messages apart that are made of varints and bytes. Nothing in a
// message is believed: what is not there reads as zero, and makes all of it bad.
package varint

import "encoding/binary"

// Reader reads one message. It is bad as soon as one thing in it was wrong; so who
// reads looks once, at the end.
type Reader struct {
	Rest []byte // what has not been read
	Bad  bool
}

// Number reads a varint.
func (r *Reader) Number() uint64 {
	n, length := binary.Uvarint(r.Rest)
	if length <= 0 {
		r.Bad, r.Rest = true, nil
		return 0
	}
	r.Rest = r.Rest[length:]
	return n
}

// Byte reads one byte.
func (r *Reader) Byte() byte {
	if len(r.Rest) == 0 {
		r.Bad = true
		return 0
	}
	b := r.Rest[0]
	r.Rest = r.Rest[1:]
	return b
}

// Bytes reads so many bytes, which stay where they are.
func (r *Reader) Bytes(n int) []byte {
	if len(r.Rest) < n {
		r.Bad, r.Rest = true, nil
		return make([]byte, n)
	}
	b := r.Rest[:n]
	r.Rest = r.Rest[n:]
	return b
}
