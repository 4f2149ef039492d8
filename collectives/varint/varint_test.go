package varint

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
)

// What was written comes back, and whatever is cut off a message makes it bad.
func TestReader(t *testing.T) {
	message := append(binary.AppendUvarint([]byte{7}, 1<<40), "tail"...)
	for length := range len(message) + 1 {
		r := Reader{Rest: message[:length]}
		first, number, tail := r.Byte(), r.Number(), r.Bytes(4)
		assert.Equal(t, length < len(message), r.Bad, "%d bytes", length)
		assert.Empty(t, r.Rest)
		if !r.Bad {
			assert.Equal(t, byte(7), first)
			assert.Equal(t, uint64(1<<40), number)
			assert.Equal(t, "tail", string(tail))
		}
	}
	r := Reader{Rest: []byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1}}
	assert.Zero(t, r.Number())
	assert.True(t, r.Bad, "a number beyond 64 bits")
}
