package gmac

import (
	"crypto/aes"
	"crypto/cipher"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Tags are those of crypto/cipher: for each length up to some chunks, and longer
// ones, from any address on.
func TestTagsAreThoseOfGCM(t *testing.T) {
	t.Logf("the processor's own way: %v", fast)
	random := rand.New(rand.NewPCG(1, 2))
	bytes := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		return b
	}
	lengths := []int{4096, 65375, 1 << 20}
	for n := range 4*chunk + 2 {
		lengths = append(lengths, n)
	}
	for _, length := range lengths {
		key, nonce := bytes(KeyLength), [NonceLength]byte(bytes(NonceLength))
		data := bytes(length + 64)[random.IntN(64):][:length]
		cipherBlock, err := aes.NewCipher(key)
		require.NoError(t, err)
		gcm, err := cipher.NewGCM(cipherBlock)
		require.NoError(t, err)
		want := gcm.Seal(nil, nonce[:], nil, data)

		m, err := New(key)
		require.NoError(t, err)
		tag := m.Tag(&nonce, data)
		require.Equal(t, want, tag[:], "%d bytes", length)
		assert.True(t, m.Verify(&nonce, data, want))
		want[random.IntN(TagLength)] ^= 1 << random.IntN(8)
		assert.False(t, m.Verify(&nonce, data, want))
	}
}

func TestKeysHaveTheirLength(t *testing.T) {
	_, err := New(make([]byte, KeyLength-1))
	assert.Error(t, err)
}

func BenchmarkTag(b *testing.B) {
	for name, length := range map[string]int{"112": 112, "65344": 65344} {
		b.Run(name, func(b *testing.B) {
			m, err := New(make([]byte, KeyLength))
			require.NoError(b, err)
			data := make([]byte, length)
			var nonce [NonceLength]byte
			b.SetBytes(int64(length))
			for b.Loop() {
				m.Tag(&nonce, data)
			}
		})
	}
}
