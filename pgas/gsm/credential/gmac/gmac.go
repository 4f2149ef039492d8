// Package gmac makes the tag of AES-128-GCM over bytes of which nothing is encrypted (NIST SP 800-38D).
//
// It is the tag of Go's crypto/cipher, bit by bit. That makes it from 16 bytes at a time; on processors that multiply
// four such blocks by one instruction (AVX-512 with VPCLMULQDQ), hash_amd64.s does so twice as fast, which a stream
// of PUTs over UDP needs: its sender is bound by one core, of which the tag took a third.
package gmac

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/subtle"
	"encoding/binary"
)

const (
	KeyLength   = 16
	NonceLength = 12
	TagLength   = 16

	block = 16
	chunk = 16 * block // what hash takes at once
)

// MAC makes tags under one key. It may be used by several goroutines at once.
type MAC struct {
	aead   cipher.AEAD // where the processor can't do better
	cipher cipher.Block
	powers [chunk]byte // of the hash key, the sixteenth first: what hash multiplies the blocks of a chunk by
}

// New makes the MAC of a key of KeyLength bytes.
func New(key []byte) (*MAC, error) {
	c, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	m := &MAC{cipher: c}
	if !fast {
		m.aead, err = cipher.NewGCM(c)
		return m, err
	}
	var zero, encrypted [block]byte
	c.Encrypt(encrypted[:], zero[:])
	h := element{binary.BigEndian.Uint64(encrypted[:]), binary.BigEndian.Uint64(encrypted[8:])}
	power := h
	for at := chunk - block; at >= 0; at -= block {
		prepared := power.overX()
		binary.LittleEndian.PutUint64(m.powers[at:], prepared.low)
		binary.LittleEndian.PutUint64(m.powers[at+8:], prepared.high)
		power = power.times(h)
	}
	return m, nil
}

// Tag is that of data under a nonce, which no other data has under this key.
func (m *MAC) Tag(nonce *[NonceLength]byte, data []byte) (tag [TagLength]byte) {
	if m.aead != nil {
		m.aead.Seal(tag[:0], nonce[:], nil, data)
		return tag
	}
	var sum [block]byte
	whole := len(data) / chunk * chunk
	if whole > 0 {
		hash(&sum, &m.powers, &data[0], whole/chunk)
	}
	// What is left, zeros up to a whole block, and a block with the number of bits: at the end of one or two chunks, since
	// zeros before the first block that is not zero change nothing.
	var last [2 * chunk]byte
	rest := data[whole:]
	begin := len(last) - block - (len(rest)+block-1)/block*block
	copy(last[begin:], rest)
	binary.BigEndian.PutUint64(last[len(last)-block:], 8*uint64(len(data)))
	subtle.XORBytes(last[begin:], last[begin:begin+block], sum[:])
	first := begin / chunk * chunk
	clear(sum[:])
	hash(&sum, &m.powers, &last[first], (len(last)-first)/chunk)

	counter := [block]byte{block - 1: 1}
	copy(counter[:], nonce[:])
	m.cipher.Encrypt(tag[:], counter[:])
	subtle.XORBytes(tag[:], tag[:], sum[:])
	return tag
}

// Verify says whether a tag is that of data under a nonce.
func (m *MAC) Verify(nonce *[NonceLength]byte, data, tag []byte) bool {
	right := m.Tag(nonce, data)
	return subtle.ConstantTimeCompare(right[:], tag) == 1
}

// element is one of GF(2^128): the highest bit stands for 1, the lowest for x^127.
type element struct{ high, low uint64 }

// times multiplies bit by bit: for the few products that a key needs.
func (a element) times(b element) (product element) {
	for i := range 128 {
		word, bit := a.high, 63-i
		if i >= 64 {
			word, bit = a.low, 127-i
		}
		mask := -(word >> bit & 1)
		product.high ^= b.high & mask
		product.low ^= b.low & mask
		carry := -(b.low & 1)
		b.low = b.low>>1 | b.high<<63
		b.high = b.high>>1 ^ 0xe1<<56&carry
	}
	return product
}

// overX divides by x: a product of numbers whose bits are in this order lies one place too low.
func (a element) overX() element {
	carry := -(a.high >> 63)
	return element{a.high<<1 | a.low>>63 ^ 0xc2<<56&carry, a.low<<1 ^ 1&carry}
}
