package mpi_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/mpi"
)

func TestNonblocking(t *testing.T) { eachKind(t, elements.nonblocking) }

// nonblocking passes elements around the ring both ways, and completes them in every way.
func (e typed[T]) nonblocking(t *testing.T, c *mpi.Comm) {
	left, right := neighbours(c)
	for _, n := range lengths {
		fromLeft, fromRight := make([]T, n), make([]T, n)
		start := func() []*mpi.Request {
			clear(fromLeft)
			clear(fromRight)
			in1, err := mpi.Irecv(c, fromLeft, left, 1)
			require.NoError(t, err)
			in2, err := mpi.Irecv(c, fromRight, right, 2)
			require.NoError(t, err)
			out1, err := mpi.Isend(c, e.values(n, c.Rank()), right, 1)
			require.NoError(t, err)
			out2, err := mpi.Isend(c, e.values(n, -c.Rank()), left, 2)
			require.NoError(t, err)
			return []*mpi.Request{in1, in2, out1, out2}
		}
		arrived := func() {
			t.Helper()
			assertSame(t, e.values(n, left), fromLeft)
			assertSame(t, e.values(n, -right), fromRight)
		}

		requests := start()
		s, err := requests[0].Wait()
		require.NoError(t, err)
		assertStatus[T](t, s, left, 1, n)
		for done := false; !done; {
			s, done, err = requests[1].Test()
			require.NoError(t, err)
		}
		assertStatus[T](t, s, right, 2, n)
		_, err = mpi.WaitAll(requests[2:]...)
		require.NoError(t, err)
		arrived()

		statuses, err := mpi.WaitAll(start()...)
		require.NoError(t, err)
		assertStatus[T](t, statuses[0], left, 1, n)
		assertStatus[T](t, statuses[1], right, 2, n)
		arrived()

		requests = start()
		for done := false; !done; {
			statuses, done, err = mpi.TestAll(requests...)
			require.NoError(t, err)
		}
		assertStatus[T](t, statuses[0], left, 1, n)
		arrived()

		requests = start()
		var order []int
		for range requests {
			i, s, err := mpi.WaitAny(requests...)
			require.NoError(t, err)
			order = append(order, i)
			if i == 1 {
				assertStatus[T](t, s, right, 2, n)
			}
		}
		assert.ElementsMatch(t, []int{0, 1, 2, 3}, order)
		arrived()
		i, _, err := mpi.WaitAny(requests...)
		require.NoError(t, err)
		assert.Equal(t, mpi.Undefined, i, "all were complete before")
	}
}

func TestCompletedRequestsCompleteAtOnce(t *testing.T) {
	r, err := mpi.Irecv(mpi.World, []int{0}, mpi.ProcNull, 0)
	require.NoError(t, err)
	for range 2 {
		_, err = r.Wait()
		require.NoError(t, err)
	}
	_, done, err := r.Test()
	require.NoError(t, err)
	assert.True(t, done)

	assert.ErrorIs(t, r.Cancel(), mpi.ErrRequest)

	statuses, err := mpi.WaitAll(nil, r)
	require.NoError(t, err)
	assert.Len(t, statuses, 2)
	_, done, err = mpi.TestAll()
	require.NoError(t, err)
	assert.True(t, done, "no requests are complete requests")
}

func TestCancel(t *testing.T) {
	r, err := mpi.Irecv(mpi.Self, []int{0}, 0, 99)
	require.NoError(t, err)
	_, done, err := mpi.TestAll(r)
	require.NoError(t, err)
	assert.False(t, done)
	require.NoError(t, r.Cancel())
	s, err := r.Wait()
	require.NoError(t, err)
	cancelled, err := s.Cancelled()
	require.NoError(t, err)
	assert.True(t, cancelled)

	r, err = mpi.Irecv(mpi.Self, []int{0}, mpi.ProcNull, 0)
	require.NoError(t, err)
	s, err = r.Wait()
	require.NoError(t, err)
	cancelled, err = s.Cancelled()
	require.NoError(t, err)
	assert.False(t, cancelled)
}

// Under ThreadMultiple, goroutines talk at the same time, each on a communicator of its own.
func TestGoroutines(t *testing.T) {
	level, err := mpi.QueryThread()
	require.NoError(t, err)
	if level < mpi.ThreadMultiple {
		t.Skipf("MPI grants thread level %d", level)
	}
	var comms [3]*mpi.Comm
	for i := range comms {
		comms[i], err = mpi.World.Dup()
		require.NoError(t, err)
	}
	var group sync.WaitGroup
	for i, c := range comms {
		group.Go(func() {
			left, right := neighbours(c)
			for round := range 100 {
				got := []int{0}
				in, err := mpi.Irecv(c, got, left, round)
				assert.NoError(t, err)
				assert.NoError(t, mpi.Send(c, []int{i*1000 + round}, right, round))
				_, err = in.Wait()
				assert.NoError(t, err)
				assert.Equal(t, i*1000+round, got[0])
			}
		})
	}
	group.Wait()
	for _, c := range comms {
		require.NoError(t, c.Free())
	}
}
