package mpi_test

import (
	"math"
	"syscall"
	"testing"

	"github.com/pkg/errors"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/mpi"
)

func TestRefusedArguments(t *testing.T) {
	c, n := mpi.World, mpi.World.Size()
	freed, err := c.Dup()
	require.NoError(t, err)
	require.NoError(t, freed.Free())
	buf := []int{1}
	_, irecv := mpi.Irecv(c, buf, n, 0)
	_, dup := freed.Dup()
	_, recv := mpi.Recv(c, buf, n, 0)
	_, create := c.Create(0, n)

	for _, test := range []struct {
		name string
		err  error
		call string
		want mpi.Class
	}{
		{"rank beyond the last", mpi.Send(c, buf, n, 0), "MPI_Send", mpi.ErrRank},
		{"rank below ProcNull", mpi.Send(c, buf, -17, 0), "MPI_Send", mpi.ErrRank},
		{"rank that C's int cannot hold", mpi.Send(c, buf, 1<<32, 0), "MPI_Send", mpi.ErrRank},
		{"rank that C's int cannot hold", mpi.Send(c, buf, math.MinInt, 0), "MPI_Send", mpi.ErrRank},
		{"source beyond the last", recv, "MPI_Recv", mpi.ErrRank},
		{"source beyond the last", irecv, "MPI_Irecv", mpi.ErrRank},
		{"member beyond the last", create, "MPI_Group_incl", mpi.ErrRank},
		{"negative tag", mpi.Send(c, buf, 0, -5), "MPI_Send", mpi.ErrTag},
		{"tag that C's int cannot hold", mpi.Send(c, buf, 0, 1<<33), "MPI_Send", mpi.ErrTag},
		{"root beyond the last", mpi.Bcast(c, buf, n), "MPI_Bcast", mpi.ErrRoot},
		{"root beyond the last", mpi.Gather(c, buf, nil, n), "MPI_Gather", mpi.ErrRoot},
		{"freed communicator", mpi.Send(freed, buf, 0, 0), "MPI_Send", mpi.ErrComm},
		{"freed communicator", dup, "MPI_Comm_dup", mpi.ErrComm},
		{"freed communicator", freed.Barrier(), "MPI_Barrier", mpi.ErrComm},
		{"freed communicator", freed.Free(), "MPI_Comm_free", mpi.ErrComm},
		{"nil communicator", mpi.Allreduce(nil, buf, buf, mpi.Sum), "MPI_Allreduce", mpi.ErrComm},
		{"predefined communicator", c.Free(), "MPI_Comm_free", mpi.ErrComm},
	} {
		var e *mpi.Error
		require.ErrorAs(t, test.err, &e, test.name)
		assert.Equal(t, test.want, e.Class, "%s: %v", test.name, e)
		assert.Equal(t, test.call, e.Call)
		assert.NotZero(t, e.Code)
		assert.NotEmpty(t, e.Text)
		assert.ErrorIs(t, test.err, test.want)
		assert.NotErrorIs(t, test.err, mpi.ErrIntern)
		assert.ErrorContains(t, test.err, test.call)
	}
	assert.Equal(t, mpi.Undefined, freed.Rank())
}

// A message of 2³¹ elements, which C's int cannot count, is refused, not sent in part.
func TestHugeCount(t *testing.T) {
	untouched, err := syscall.Mmap(-1, 0, 1<<31, syscall.PROT_NONE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	require.NoError(t, err)
	assert.ErrorIs(t, mpi.Send(mpi.World, untouched, mpi.World.Rank(), 0), mpi.ErrCount)
	assert.NoError(t, mpi.Send(mpi.World, untouched[:1<<31-1], mpi.ProcNull, 0))
	require.NoError(t, syscall.Munmap(untouched))
}

// The messages are sent before the receives begin: Open MPI 4.1 does not see that a message from the
// rank itself is too long for a receive that was there first.
func TestTruncation(t *testing.T) {
	send := func(n int) *mpi.Request {
		r, err := mpi.Isend(mpi.Self, make([]float32, n), 0, 3)
		require.NoError(t, err)
		return r
	}
	short := make([]float32, 2)

	out := send(4)
	_, err := mpi.Recv(mpi.Self, short, 0, 3)
	assert.ErrorIs(t, err, mpi.ErrTruncate)
	assert.ErrorContains(t, err, "longer than the buffer")
	_, err = out.Wait()
	require.NoError(t, err)

	out = send(4)
	in, err := mpi.Irecv(mpi.Self, short, 0, 3)
	require.NoError(t, err)
	_, err = in.Wait()
	assert.ErrorIs(t, err, mpi.ErrTruncate)
	_, err = in.Wait()
	assert.NoError(t, err, "a request that failed is complete")
	_, err = out.Wait()
	require.NoError(t, err)
}

func TestCompletionTellsWhichFailed(t *testing.T) {
	for name, complete := range map[string]func(...*mpi.Request) ([]mpi.Status, error){
		"WaitAll": mpi.WaitAll,
		"TestAll": func(requests ...*mpi.Request) ([]mpi.Status, error) {
			for {
				if statuses, done, err := mpi.TestAll(requests...); done {
					return statuses, err
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			requests, received := oneTooLong(t)
			statuses, err := complete(requests...)
			assert.ErrorIs(t, err, mpi.ErrTruncate)
			assert.ErrorContains(t, err, "request 4")
			assert.NotContains(t, err.Error(), "request 3")
			assertStatus[int](t, statuses[5], 0, 2, 2)
			assert.Equal(t, []int{1, 2}, received[0])
			assert.Equal(t, []int{6, 7}, received[2])
			_, err = complete(requests...)
			assert.NoError(t, err, "all are complete")
		})
	}
	t.Run("WaitAny", func(t *testing.T) {
		requests, _ := oneTooLong(t)
		for range requests {
			i, _, err := mpi.WaitAny(requests...)
			if i == 4 {
				assert.ErrorIs(t, err, mpi.ErrTruncate)
			} else {
				assert.NoError(t, err)
			}
		}
		i, _, err := mpi.WaitAny(requests...)
		assert.NoError(t, err)
		assert.Equal(t, mpi.Undefined, i)
	})
}

// oneTooLong returns three sends and three receives; the message of request 4 is too long for it.
func oneTooLong(t *testing.T) ([]*mpi.Request, [][]int) {
	var requests []*mpi.Request
	for tag, message := range [][]int{{1, 2}, {3, 4, 5}, {6, 7}} {
		out, err := mpi.Isend(mpi.Self, message, 0, tag)
		require.NoError(t, err)
		requests = append(requests, out)
	}
	received := make([][]int, 3)
	for tag := range received {
		received[tag] = make([]int, 2)
		in, err := mpi.Irecv(mpi.Self, received[tag], 0, tag)
		require.NoError(t, err)
		requests = append(requests, in)
	}
	return requests, received
}

func TestLengthMismatches(t *testing.T) {
	c, n := mpi.World, mpi.World.Size()
	me := c.Rank()
	ints := func(n int) []int { return make([]int, n) }
	_, iallreduce := mpi.Iallreduce(c, ints(2), ints(1), mpi.Sum)
	_, inPlace := mpi.ReduceScatterBlockInPlace(c, ints(n+1), mpi.Sum)
	ones := ints(n)
	for i := range ones {
		ones[i] = 1
	}
	_, uneven := mpi.ReduceScatterInPlace(c, ints(n+1), ones, mpi.Sum)
	negative := append(ints(n-1), -1)

	tests := map[string]error{
		"Gather":               mpi.Gather(c, ints(2), ints(2*n+1), me),
		"Scatter":              mpi.Scatter(c, ints(2*n-1), ints(2), me),
		"Allgather":            mpi.Allgather(c, ints(2), ints(2*n+2)),
		"Gatherv counts":       mpi.Gatherv(c, ints(1), ints(n), ints(n+1), nil, me),
		"Gatherv displs":       mpi.Gatherv(c, ints(1), ints(n), ones, ints(n+1), me),
		"Gatherv send":         mpi.Gatherv(c, ints(2), ints(n), ones, nil, me),
		"Gatherv recv":         mpi.Gatherv(c, ints(1), ints(n-1), ones, nil, me),
		"Gatherv negative":     mpi.Gatherv(c, ints(0), ints(n), negative, nil, me),
		"Scatterv send":        mpi.Scatterv(c, ints(n-1), ones, nil, ints(1), me),
		"Scatterv recv":        mpi.Scatterv(c, ints(n), ones, nil, ints(2), me),
		"Allgatherv recv":      mpi.Allgatherv(c, ints(1), ints(n-1), ones, nil),
		"Allgatherv send":      mpi.Allgatherv(c, ints(2), ints(n), ones, nil),
		"Alltoall":             mpi.Alltoall(c, ints(n), ints(n+1)),
		"Alltoallv send":       mpi.Alltoallv(c, ints(n-1), ones, nil, ints(n), ones, nil),
		"Alltoallv recv":       mpi.Alltoallv(c, ints(n), ones, nil, ints(n-1), ones, nil),
		"Reduce":               mpi.Reduce(c, ints(2), ints(1), mpi.Sum, me),
		"Allreduce":            mpi.Allreduce(c, ints(2), ints(3), mpi.Sum),
		"Iallreduce":           iallreduce,
		"ReduceScatterBlock":   mpi.ReduceScatterBlock(c, ints(n), ints(2), mpi.Sum),
		"ReduceScatter send":   mpi.ReduceScatter(c, ints(n+1), ints(1), ones, mpi.Sum),
		"ReduceScatter recv":   mpi.ReduceScatter(c, ints(n), ints(2), ones, mpi.Sum),
		"ReduceScatter less":   mpi.ReduceScatter(c, ints(n), ints(0), negative, mpi.Sum),
		"ReduceScatterInPlace": uneven,
		"Scan":                 mpi.Scan(c, ints(2), nil, mpi.Sum),
		"Exscan":               mpi.Exscan(c, ints(2), ints(1), mpi.Sum),
	}
	if n > 1 {
		tests["Alltoall parts"] = mpi.Alltoall(c, ints(n+1), ints(n+1))
		tests["AlltoallInPlace parts"] = mpi.AlltoallInPlace(c, ints(n+1))
		tests["AllgatherInPlace parts"] = mpi.AllgatherInPlace(c, ints(n+1))
		tests["ReduceScatterBlockInPlace"] = inPlace
	}
	for name, err := range tests {
		assert.ErrorIs(t, err, mpi.ErrLength, name)
		assert.ErrorContains(t, err, "MPI_", name)
	}
	// Nobody has entered MPI, so all ranks are still in step.
	require.NoError(t, c.Barrier())
}

func TestWindowRefusals(t *testing.T) {
	w, err := mpi.WinAllocateShared[int32](mpi.World, 4)
	require.NoError(t, err)
	require.NoError(t, w.LockAll())
	for name, err := range map[string]error{
		"beyond the end":   w.Put(make([]int32, 2), 0, 3),
		"before the start": w.Get(make([]int32, 2), 0, -1),
		"too long":         w.Accumulate(make([]int32, 5), 0, 0, mpi.Sum),
		"huge offset":      w.Get(make([]int32, 2), 0, math.MaxInt),
		"one beyond":       w.FetchAndOp(1, nil, 0, 4, mpi.Sum),
		"one before":       w.CompareAndSwap(1, 0, nil, 0, -1),
	} {
		assert.ErrorIs(t, err, mpi.ErrLength, name)
	}
	assert.ErrorIs(t, w.Put([]int32{1}, mpi.World.Size(), 0), mpi.ErrRank)
	assert.Equal(t, mpi.Undefined, w.Len(mpi.World.Size()))
	require.NoError(t, w.UnlockAll())
	require.NoError(t, w.Free())

	_, err = w.Shared(0)
	for name, err := range map[string]error{
		"Fence": w.Fence(0), "Put": w.Put(nil, 0, 0), "Lock": w.Lock(mpi.LockShared, 0),
		"Shared": err, "Free": w.Free(),
	} {
		assert.ErrorIs(t, err, mpi.ErrWin, name)
	}
	_, err = mpi.WinAllocateShared[int32](mpi.World, -1)
	assert.ErrorIs(t, err, mpi.ErrLength)
	_, err = mpi.WinCreate[int32](nil, nil)
	assert.ErrorIs(t, err, mpi.ErrComm)
	_, err = mpi.AllocMem[float64](math.MaxInt / 4)
	assert.ErrorIs(t, err, mpi.ErrLength)
}

func TestErrorText(t *testing.T) {
	err := mpi.Send(mpi.World, []int{1}, 1000, 0)
	assert.EqualError(t, err, "MPI_Send: MPI_ERR_RANK: invalid rank (ranks run from 0 to Size()-1)")
	assert.Equal(t, "MPI_ERR_RANK: invalid rank", mpi.ErrRank.Error())
	assert.EqualError(t, mpi.Allreduce(mpi.World, []int{1, 2}, nil, mpi.Sum),
		"MPI_Allreduce: recv has 0 elements and needs 2: buffer length mismatch")
	wrapped := errors.Wrap(err, "sending the halo")
	assert.ErrorIs(t, wrapped, mpi.ErrRank)
}
