package shared_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"evenkeel/pgas/shared"
)

// value of element k of thread t's part.
func value(t, k int) int64 { return int64(1000*t + k) }

func TestCollectivesMoveTheParts(t *testing.T) { eachWorld(t, collectivesMoveTheParts) }

func collectivesMoveTheParts(t *testing.T, w *shared.World) {
	threads, me := w.Threads(), w.MyThread()
	for _, s := range []shared.Syncs{{}, {In: shared.MySync, Out: shared.MySync}, {In: shared.NoSync, Out: shared.NoSync}} {
		for _, n := range []int{0, 1, 3, 100} {
			room := max(1, n*threads)
			src, err := shared.AllAlloc[int64](w, room, room*threads)
			require.NoError(t, err)
			dst, err := shared.AllAlloc[int64](w, room, room*threads)
			require.NoError(t, err)
			perm, err := shared.AllAlloc[int32](w, 1, threads)
			require.NoError(t, err)
			perm.Local()[0] = int32((me + 1) % threads)
			for k := range src.Local() {
				src.Local()[k] = value(me, k)
			}
			try := func(what string, do func() error, want func(k int) int64, length int) {
				for k := range dst.Local() {
					dst.Local()[k] = -1
				}
				barrier(t, w)
				require.NoError(t, do(), what)
				barrier(t, w)
				for k, v := range dst.Local() {
					expected := int64(-1)
					if k < length {
						expected = want(k)
					}
					require.Equal(t, expected, v, "%s of %d: element %d of thread %d", what, n, k, me)
				}
				barrier(t, w)
			}
			root := threads - 1
			try("broadcast", func() error { return shared.Broadcast(dst, src, root, n, s) },
				func(k int) int64 { return value(root, k) }, n)
			try("scatter", func() error { return shared.Scatter(dst, src, root, n, s) },
				func(k int) int64 { return value(root, me*n+k) }, n)
			gathered := 0
			if me == root {
				gathered = n * threads
			}
			try("gather", func() error { return shared.Gather(dst, src, root, n, s) },
				func(k int) int64 { return value(k/n, k%n) }, gathered)
			try("gather all", func() error { return shared.GatherAll(dst, src, n, s) },
				func(k int) int64 { return value(k/n, k%n) }, n*threads)
			try("exchange", func() error { return shared.Exchange(dst, src, n, s) },
				func(k int) int64 { return value(k/n, me*n+k%n) }, n*threads)
			try("permute", func() error { return shared.Permute(dst, src, perm, n, s) },
				func(k int) int64 { return value((me+threads-1)%threads, k) }, n)
			require.NoError(t, src.AllFree())
			require.NoError(t, dst.AllFree())
			require.NoError(t, perm.AllFree())
		}
	}
}

func TestReductions(t *testing.T) { eachWorld(t, reductions) }

func reductions(t *testing.T, w *shared.World) {
	for _, block := range []int{0, 1, 3, 50} {
		for _, elements := range []int{0, 1, 2, 37} {
			src, err := shared.AllAlloc[int64](w, block, elements)
			require.NoError(t, err)
			dst, err := shared.AllAlloc[int64](w, block, elements)
			require.NoError(t, err)
			one, err := shared.AllAlloc[int64](w, 1, w.Threads())
			require.NoError(t, err)
			plain := make([]int64, elements)
			for i := range plain {
				plain[i] = int64(i*7919%101 - 50)
			}
			for i := range src.ForAll(0, elements) {
				require.NoError(t, src.Put(i, plain[i]))
			}
			last := w.Threads() - 1
			one.Local()[0] = -12345
			for _, op := range []func(a, b int64) int64{shared.Add[int64], shared.Max[int64], shared.Min[int64]} {
				require.NoError(t, shared.Reduce(one, last, src, op, shared.Syncs{}))
				want := int64(-12345) // of nothing: as it was
				for i, v := range plain {
					if want = op(want, v); i == 0 {
						want = v
					}
				}
				got, err := one.Get(last)
				require.NoError(t, err)
				require.Equal(t, want, got, "block %d, %d elements", block, elements)
				barrier(t, w)
			}
			// The last one is associative, but not commutative.
			for _, op := range []func(a, b int64) int64{shared.Add[int64], shared.Max[int64], func(_, b int64) int64 { return b }} {
				require.NoError(t, shared.PrefixReduce(dst, src, op, shared.Syncs{}))
				var want int64
				for i, v := range plain {
					if want = op(want, v); i == 0 {
						want = v
					}
					got, err := dst.Get(i)
					require.NoError(t, err)
					require.Equal(t, want, got, "block %d, element %d of %d", block, i, elements)
				}
				barrier(t, w)
			}
			require.NoError(t, src.AllFree())
			require.NoError(t, dst.AllFree())
			require.NoError(t, one.AllFree())
		}
	}
	a, err := shared.AllAlloc[int64](w, 1, 8)
	require.NoError(t, err)
	b, err := shared.AllAlloc[int64](w, 2, 8)
	require.NoError(t, err)
	require.ErrorContains(t, shared.PrefixReduce(a, b, shared.Add[int64], shared.Syncs{}), "the layouts differ")
	if w.MyThread() == 0 { // others hear of it in the reduction
		require.NoError(t, a.Resize(12))
		require.NoError(t, a.Memset(0, 12, 1))
	}
	barrier(t, w)
	require.NoError(t, shared.PrefixReduce(a, a, shared.Add[int64], shared.Syncs{}))
	last, err := a.Get(11)
	require.NoError(t, err)
	require.EqualValues(t, 12, last)
	require.NoError(t, a.AllFree())
	require.NoError(t, b.AllFree())
}
