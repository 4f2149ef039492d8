package mpi_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/mpi"
)

// lengths cover the empty message, small ones and one that is sent in pieces.
var lengths = []int{0, 1, 5, 6000}

func TestSendRecv(t *testing.T)     { eachKind(t, elements.sendRecv) }
func TestSendrecvRing(t *testing.T) { eachKind(t, elements.sendrecvRing) }
func TestMatchedProbe(t *testing.T) { eachKind(t, elements.matchedProbe) }

// sendRecv sends from every rank to rank 0, with both blocking sends.
func (e typed[T]) sendRecv(t *testing.T, c *mpi.Comm) {
	for tag, n := range lengths {
		if c.Rank() != 0 {
			require.NoError(t, mpi.Send(c, e.values(n, c.Rank()), 0, tag))
			require.NoError(t, mpi.Ssend(c, e.values(n, -c.Rank()), 0, tag))
			continue
		}
		for source := 1; source < c.Size(); source++ {
			buf := make([]T, n+1)
			s, err := mpi.Recv(c, buf, source, mpi.AnyTag)
			require.NoError(t, err)
			assertStatus[T](t, s, source, tag, n)
			assertSame(t, e.values(n, source), buf[:n])

			_, err = mpi.Recv(c, buf, source, tag)
			require.NoError(t, err)
			assertSame(t, e.values(n, -source), buf[:n])
		}
	}
}

// sendrecvRing passes elements around the ring, and bytes back.
func (e typed[T]) sendrecvRing(t *testing.T, c *mpi.Comm) {
	left, right := neighbours(c)
	for tag, n := range lengths {
		buf := make([]T, n)
		s, err := mpi.Sendrecv(c, e.values(n, c.Rank()), right, tag, buf, left, tag)
		require.NoError(t, err)
		assertStatus[T](t, s, left, tag, n)
		assertSame(t, e.values(n, left), buf)

		rank := make([]byte, 1)
		s, err = mpi.Sendrecv(c, []byte{byte(c.Rank())}, left, tag, rank, mpi.AnySource, tag)
		require.NoError(t, err)
		assertStatus[byte](t, s, right, tag, 1)
		assert.Equal(t, right, int(rank[0]))
	}
}

// matchedProbe receives messages whose length it does not know.
func (e typed[T]) matchedProbe(t *testing.T, c *mpi.Comm) {
	left, right := neighbours(c)
	for tag, n := range lengths {
		out, err := mpi.Isend(c, e.values(n, c.Rank()), right, tag)
		require.NoError(t, err)

		probed, err := c.Probe(left, tag)
		require.NoError(t, err)
		assertStatus[T](t, probed, left, tag, n)

		m, s, err := c.Mprobe(mpi.AnySource, mpi.AnyTag)
		require.NoError(t, err)
		assertStatus[T](t, s, left, tag, n)
		buf := make([]T, n)
		s, err = mpi.Mrecv(m, buf)
		require.NoError(t, err)
		assertStatus[T](t, s, left, tag, n)
		assertSame(t, e.values(n, left), buf)

		_, err = out.Wait()
		require.NoError(t, err)
	}
}

func assertStatus[T mpi.Datatype](t *testing.T, s mpi.Status, source, tag, n int) {
	t.Helper()
	count, err := mpi.Count[T](s)
	require.NoError(t, err)
	assert.Equal(t, []int{source, tag, n}, []int{s.Source(), s.Tag(), count}, "source, tag and count")
}

func TestCountOfOtherType(t *testing.T) {
	out, err := mpi.Isend(mpi.Self, make([]byte, 12), 0, 0)
	require.NoError(t, err)
	s, err := mpi.Self.Probe(0, 0)
	require.NoError(t, err)
	floats, err := mpi.Count[float32](s)
	require.NoError(t, err)
	assert.Equal(t, 3, floats)
	doubles, err := mpi.Count[float64](s)
	require.NoError(t, err)
	assert.Equal(t, mpi.Undefined, doubles, "12 bytes are no whole number of float64")
	_, err = mpi.Recv(mpi.Self, make([]byte, 12), 0, 0)
	require.NoError(t, err)
	_, err = out.Wait()
	require.NoError(t, err)
}

func TestProbesThatFindNothing(t *testing.T) {
	_, found, err := mpi.Self.Iprobe(mpi.AnySource, mpi.AnyTag)
	require.NoError(t, err)
	assert.False(t, found)
	m, _, err := mpi.Self.Improbe(mpi.AnySource, mpi.AnyTag)
	require.NoError(t, err)
	assert.Nil(t, m)
	_, err = mpi.Mrecv(m, []int{0})
	assert.ErrorIs(t, err, mpi.ErrRequest)
}

func TestProbesThatFindAMessage(t *testing.T) {
	out, err := mpi.Isend(mpi.Self, []int16{1, 2, 3}, 0, 8)
	require.NoError(t, err)

	var s mpi.Status
	for found := false; !found; {
		s, found, err = mpi.Self.Iprobe(mpi.AnySource, mpi.AnyTag)
		require.NoError(t, err)
	}
	assertStatus[int16](t, s, 0, 8, 3)

	m, s, err := mpi.Self.Improbe(0, 8)
	require.NoError(t, err)
	require.NotNil(t, m)
	assertStatus[int16](t, s, 0, 8, 3)
	_, found, err := mpi.Self.Iprobe(0, 8)
	require.NoError(t, err)
	assert.False(t, found, "a matched message is out of the queue")

	buf := make([]int16, 3)
	_, err = mpi.Mrecv(m, buf)
	require.NoError(t, err)
	assert.Equal(t, []int16{1, 2, 3}, buf)
	_, err = mpi.Mrecv(m, buf)
	assert.ErrorIs(t, err, mpi.ErrRequest, "a message is received once")
	_, err = out.Wait()
	require.NoError(t, err)
}

func TestProcNull(t *testing.T) {
	require.NoError(t, mpi.Send(mpi.World, []int{1}, mpi.ProcNull, 0))
	buf := []int{7}
	s, err := mpi.Recv(mpi.World, buf, mpi.ProcNull, 0)
	require.NoError(t, err)
	assertStatus[int](t, s, mpi.ProcNull, mpi.AnyTag, 0)
	assert.Equal(t, []int{7}, buf)
}

// A buffer may lie in a struct that also holds Go pointers: only its elements go to MPI.
func TestBufferInsideStructWithPointers(t *testing.T) {
	left, right := neighbours(mpi.World)
	type cell struct {
		name *string
		halo [4]float64
		next *cell
	}
	text := "name"
	from := &cell{name: &text, halo: [4]float64{1, 2, 3, float64(mpi.World.Rank())}, next: &cell{}}
	to := &cell{name: &text, next: from}
	_, err := mpi.Sendrecv(mpi.World, from.halo[:], right, 0, to.halo[:], left, 0)
	require.NoError(t, err)
	assert.Equal(t, [4]float64{1, 2, 3, float64(left)}, to.halo)
}
