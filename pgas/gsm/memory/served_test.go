package memory_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/pgas/gsm/memory"
	"evenkeel/pgas/gsm/wire"
)

// What commands from other nodes may touch ends with the last byte of the window.
func TestServedMemoryEndsWithItsWindow(t *testing.T) {
	const length = 100
	s := node(t, 1, 1<<20)[0]
	place, err := s.Take(memory.Own, 2*length)
	require.NoError(t, err)
	w, err := s.Show(memory.Own, place, length, memory.All)
	require.NoError(t, err)
	served := memory.Served{Area: s.Self()}
	all := s.Self().Bytes(place, 2*length)
	for _, offset := range []uint64{0, 1, 92, 96, 99, 100, 101, 1 << 63} {
		for _, bytes := range []uint64{0, 1, 4, 8, 9, 100, 101} {
			fits := offset <= length && bytes <= length-offset
			data := make([]byte, bytes)
			for i := range data {
				data[i] = 7
			}
			for what, err := range map[string]error{
				"a check": served.Check(w, wire.Put, offset, bytes), "a write": served.Write(w, offset, data), "a read": served.Read(w, offset, data),
			} {
				assert.Equal(t, fits, err == nil, "%s of %d bytes at %d: %v", what, bytes, offset, err)
			}
		}
	}
	assert.NotContains(t, all[:length], byte(0))
	assert.Equal(t, make([]byte, length), all[length:])
}

func TestServedRightsAndAtomics(t *testing.T) {
	s := node(t, 1, 1<<20)[0]
	place, err := s.Take(memory.Own, 64)
	require.NoError(t, err)
	putting, err := s.Show(memory.Own, place, 64, memory.Put)
	require.NoError(t, err)
	getting, err := s.Show(memory.Own, place, 64, memory.Get)
	require.NoError(t, err)
	updating, err := s.Show(memory.Own, place, 64, memory.Atomic)
	require.NoError(t, err)
	served := memory.Served{Area: s.Self()}
	assert.NoError(t, served.Check(putting, wire.Put, 0, 8))
	assert.ErrorIs(t, served.Check(putting, wire.Get, 0, 8), wire.Protection)
	assert.NoError(t, served.Check(getting, wire.Get, 0, 8))
	assert.ErrorIs(t, served.Check(getting, wire.Put, 0, 8), wire.Protection)

	word := s.Self().Bytes(place, 64)[8:16]
	for _, c := range []struct {
		op                       wire.Op
		before, operand, compare uint64
		after                    uint64
	}{
		{wire.Add, 12, 3, 0, 15}, {wire.FetchAndAdd, 12, 3, 0, 15}, {wire.And, 12, 10, 0, 8}, {wire.FetchAndAnd, 12, 10, 0, 8},
		{wire.Or, 12, 10, 0, 14}, {wire.FetchAndOr, 12, 10, 0, 14}, {wire.Xor, 12, 10, 0, 6}, {wire.FetchAndXor, 12, 10, 0, 6},
		{wire.Swap, 12, 10, 0, 10}, {wire.CompareAndSwap, 12, 10, 12, 10}, {wire.CompareAndSwap, 12, 10, 11, 12},
	} {
		for _, width := range []int{4, 8} {
			binary.NativeEndian.PutUint64(word, c.before|1<<40)
			compare := c.compare
			if width == 8 {
				compare |= 1 << 40
			}
			operand, after := c.operand, c.after|1<<40
			if c.op == wire.And || c.op == wire.FetchAndAnd || width == 8 && (c.op == wire.Swap || c.op == wire.CompareAndSwap) {
				operand |= 1 << 40
			}
			old, err := served.Atomic(updating, 8, c.op, width, operand, compare)
			require.NoError(t, err)
			want := c.before
			if width == 8 {
				want |= 1 << 40
			}
			assert.Equal(t, want, old, "%v, %d bytes", c.op, width)
			assert.Equal(t, after, binary.NativeEndian.Uint64(word), "%v, %d bytes", c.op, width)
		}
	}
	for _, c := range []struct {
		w      wire.Window
		offset uint64
		op     wire.Op
		width  int
		want   wire.Reason
	}{
		{updating, 0, wire.Put, 8, wire.Operation}, {updating, 0, wire.Message, 8, wire.Operation}, {updating, 0, wire.Add, 2, wire.Length},
		{updating, 4, wire.Add, 8, wire.Alignment}, {updating, 2, wire.Add, 4, wire.Alignment}, {updating, 64, wire.Add, 4, wire.Range},
		{putting, 0, wire.Add, 8, wire.Protection}, {updating + 1, 0, wire.Add, 8, wire.NoWindow},
	} {
		_, err := served.Atomic(c.w, c.offset, c.op, c.width, 1, 0)
		assert.ErrorIs(t, err, c.want, "%+v", c)
	}
}

// A window may start anywhere; an atomic goes to aligned addresses alone, of which its offset says nothing then.
func TestAtomicsOfAWindowThatStartsAnywhere(t *testing.T) {
	s := node(t, 1, 1<<20)[0]
	place, err := s.Take(memory.Own, 256)
	require.NoError(t, err)
	served := memory.Served{Area: s.Self()}
	for start := range uint64(9) {
		w, err := s.Show(memory.Own, place+start, 64, memory.All)
		require.NoError(t, err)
		for shift, width := range map[int]uint64{2: 4, 3: 8} {
			_, err := served.Atomic(w, width, wire.Add, int(width), 1, 0)
			if start%width == 0 {
				assert.NoError(t, err)
			} else {
				assert.ErrorIs(t, err, wire.Alignment, "%d bytes, from %d on", width, start)
				assert.Nil(t, s.Self().Word(memory.Updating, w, width, shift))
			}
		}
	}
}

// A window under a narrower key opens to commands that come under it, as long as the task has it.
func TestKeysLeadToTheirWindows(t *testing.T) {
	const token, key = 5, wire.Key(9)
	s := node(t, 1, 1<<20)[0]
	place, err := s.Take(memory.Own, 64)
	require.NoError(t, err)
	w, err := s.ShowUnder(token, memory.Own, place, 64, memory.All)
	require.NoError(t, err)
	var keys memory.Keys
	reach := keys.Memory(memory.Served{Area: s.Self()})
	assert.ErrorIs(t, reach(1, wire.JobKey).Check(w, wire.Put, 0, 8), wire.Credential)
	assert.Nil(t, reach(1, key))
	keys.Set(key, &memory.Served{Area: s.Self(), Token: token})
	assert.NoError(t, reach(1, key).Check(w, wire.Put, 0, 8))
	assert.Nil(t, reach(1, key+1))
	assert.ErrorIs(t, reach(1, wire.JobKey).Check(w, wire.Put, 0, 8), wire.Credential)
	keys.Set(key, nil)
	assert.Nil(t, reach(1, key))
}
