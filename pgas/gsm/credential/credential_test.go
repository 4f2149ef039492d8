package credential

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"evenkeel/pgas/gsm/wire"
	"evenkeel/runtime/fabric"
)

const job = 77

func task(t require.TestingT, self fabric.Task, life wire.Life, secret Secret) *Credential {
	c, err := New(job, self, life, secret)
	require.NoError(t, err)
	return c
}

func packet(change func(h *wire.Header)) []byte {
	h := wire.Header{Type: wire.TypeRaise, Job: job, Source: 1, Target: 2, SourceLife: 11, TargetLife: 22, Epoch: 3}
	if change != nil {
		change(&h)
	}
	return (&wire.Raise{Floor: 9}).Append(h.Append(nil))
}

func sealed(t require.TestingT, c *Credential, p []byte) []byte {
	s, err := c.Seal(p)
	require.NoError(t, err)
	return s
}

func TestAPacketOpensAsItWasSealed(t *testing.T) {
	secret, err := Generate()
	require.NoError(t, err)
	from, to := task(t, 1, 11, secret), task(t, 2, 22, secret)
	for n := uint64(1); n < 4; n++ {
		h, body, reason := to.Open(sealed(t, from, packet(nil)))
		require.Equal(t, wire.OK, reason)
		assert.Equal(t, n, h.Counter, "no counter is used twice")
		assert.Equal(t, fabric.Task(1), h.Source)
		var r wire.Raise
		require.True(t, r.Decode(body))
		assert.EqualValues(t, 9, r.Floor)
	}
}

func TestWhatIsNotTheJobsIsNotOpened(t *testing.T) {
	secret, other := Secret{1}, Secret{2}
	to := task(t, 2, 22, secret)
	open := func(c *Credential, change func(h *wire.Header)) wire.Reason {
		_, body, reason := to.Open(sealed(t, c, packet(change)))
		if reason != wire.OK {
			assert.Nil(t, body)
		}
		return reason
	}
	assert.Equal(t, wire.OK, open(task(t, 1, 11, secret), nil))
	assert.Equal(t, wire.Forged, open(task(t, 1, 11, other), nil), "another secret")
	assert.Equal(t, wire.Forged, open(task(t, 3, 11, secret), nil), "another task in its name")
	assert.Equal(t, wire.Forged, open(task(t, 1, 12, secret), nil), "another life in its name")
	assert.Equal(t, wire.OK, open(task(t, 1, 12, secret), func(h *wire.Header) { h.SourceLife = 12 }), "epochs drop it")
	assert.Equal(t, wire.Job, open(task(t, 1, 11, secret), func(h *wire.Header) { h.Job++ }))
	assert.Equal(t, wire.Misrouted, open(task(t, 1, 11, secret), func(h *wire.Header) { h.Target++ }))
	_, _, reason := to.Open(nil)
	assert.Equal(t, wire.Short, reason)
}

func TestNoBitOfAPacketCanBeChangedNorCutOff(t *testing.T) {
	from, to := task(t, 1, 11, Secret{}), task(t, 2, 22, Secret{})
	good := sealed(t, from, packet(nil))
	for bit := range len(good) * 8 {
		bad := append([]byte(nil), good...)
		bad[bit/8] ^= 1 << (bit % 8)
		_, _, reason := to.Open(bad)
		require.NotEqual(t, wire.OK, reason, "bit %d", bit)
	}
	for n := range good {
		_, _, reason := to.Open(good[:n])
		require.NotEqual(t, wire.OK, reason, "%d bytes", n)
	}
	_, _, reason := to.Open(append(good, 0))
	assert.Equal(t, wire.Forged, reason)
}

func TestANarrowerKeyIsItsSubsetsOwn(t *testing.T) {
	job, subset := Secret{1}, Secret{2}
	a, b, outsider := task(t, 1, 11, job), task(t, 2, 22, job), task(t, 2, 22, job)
	require.NoError(t, a.Add(5, subset))
	require.NoError(t, b.Add(5, subset))
	require.Error(t, b.Add(5, subset), "twice")
	narrow := func(h *wire.Header) { h.Key = 5 }
	p := sealed(t, a, packet(narrow))
	h, _, reason := b.Open(p)
	require.Equal(t, wire.OK, reason)
	assert.EqualValues(t, 5, h.Key)
	_, _, reason = outsider.Open(p)
	assert.Equal(t, wire.UnknownKey, reason)
	require.NoError(t, outsider.Add(5, job))
	_, _, reason = outsider.Open(p)
	assert.Equal(t, wire.Forged, reason, "the job's secret does not open what the subset's sealed")
	_, err := task(t, 1, 11, job).Seal(packet(narrow))
	require.Error(t, err)

	b.Remove(5)
	_, _, reason = b.Open(p)
	assert.Equal(t, wire.UnknownKey, reason)
	assert.False(t, b.Has(5))
	assert.True(t, b.Has(wire.JobKey))
}

// Random bytes, and random changes to a right packet, are never opened.
func FuzzOpen(f *testing.F) {
	from, to := task(f, 1, 11, Secret{}), task(f, 2, 22, Secret{})
	good := sealed(f, from, packet(nil))
	f.Add(good)
	f.Fuzz(func(t *testing.T, p []byte) {
		_, _, reason := to.Open(p)
		require.Equal(t, string(p) == string(good), reason == wire.OK)
	})
}

func TestLivesDiffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, err := NewLife()
		require.NoError(t, err)
		require.NotZero(t, a)
	})
}

func BenchmarkSealAndOpen(b *testing.B) {
	from, to := task(b, 1, 11, Secret{}), task(b, 2, 22, Secret{})
	h := wire.Header{Type: wire.TypePut, Job: job, Source: 1, Target: 2, SourceLife: 11, TargetLife: 22, Epoch: 3}
	for _, size := range []int{68, 1400} {
		name := map[int]string{68: "8 bytes", 1400: "a full packet"}[size]
		b.Run(name, func(b *testing.B) {
			p := append(h.Append(make([]byte, 0, 2000)), make([]byte, size)...)
			b.ReportAllocs()
			for b.Loop() {
				s, _ := from.Seal(p)
				if _, _, reason := to.Open(s); reason != wire.OK {
					b.Fatal(reason)
				}
			}
		})
	}
}
