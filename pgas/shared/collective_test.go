package shared_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/pgas/shared"
)

// value of element k of thread t's part.
func value(t, k int) int64 { return int64(1000*t + k) }

func TestCollectivesMoveTheParts(t *testing.T) { eachWorld(t, collectivesMoveTheParts) }

func collectivesMoveTheParts(t *testing.T, w *shared.World) {
	threads, me := w.Threads(), w.MyThread()
	for number, s := range []shared.Syncs{{}, {In: shared.MySync, Out: shared.MySync}, {In: shared.NoSync, Out: shared.NoSync}} {
		for _, n := range []int{0, 1, 3, 100} {
			room, to, from := n*threads+2, number%2, number/2
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
					if k -= to; 0 <= k && k < length {
						expected = want(k)
					}
					require.Equal(t, expected, v, "%s of %d: element %d of thread %d", what, n, k, me)
				}
				barrier(t, w)
			}
			root := threads - 1
			atRoot := root * room
			try("broadcast", func() error { return shared.Broadcast(dst, to, src, atRoot+from, n, s) },
				func(k int) int64 { return value(root, from+k) }, n)
			try("scatter", func() error { return shared.Scatter(dst, to, src, atRoot+from, n, s) },
				func(k int) int64 { return value(root, from+me*n+k) }, n)
			gathered := 0
			if me == root {
				gathered = n * threads
			}
			try("gather", func() error { return shared.Gather(dst, atRoot+to, src, from, n, s) },
				func(k int) int64 { return value(k/n, from+k%n) }, gathered)
			try("gather all", func() error { return shared.GatherAll(dst, to, src, from, n, s) },
				func(k int) int64 { return value(k/n, from+k%n) }, n*threads)
			try("exchange", func() error { return shared.Exchange(dst, to, src, from, n, s) },
				func(k int) int64 { return value(k/n, from+me*n+k%n) }, n*threads)
			try("permute", func() error { return shared.Permute(dst, to, src, from, perm, n, s) },
				func(k int) int64 { return value((me+threads-1)%threads, from+k) }, n)
			require.NoError(t, src.AllFree())
			require.NoError(t, dst.AllFree())
			require.NoError(t, perm.AllFree())
		}
	}
}

// What a collective waits for by itself: for others to have filled in what it reads, and for what it writes to be there.
func TestCollectivesWait(t *testing.T) { eachWorld(t, collectivesWait) }

func collectivesWait(t *testing.T, w *shared.World) {
	threads, me := w.Threads(), w.MyThread()
	late := func(thread int) { // one thread after the others
		if me == thread {
			time.Sleep(300 * time.Microsecond)
		}
	}
	const n = 3
	src, err := shared.AllAlloc[int64](w, n*threads, n*threads*threads)
	require.NoError(t, err)
	dst, err := shared.AllAlloc[int64](w, n*threads, n*threads*threads)
	require.NoError(t, err)
	perm, err := shared.AllAlloc[int32](w, 1, threads)
	require.NoError(t, err)
	perm.Local()[0] = int32((me + 1) % threads)
	for round := range max(4, times(t, 2*threads*threads)) { // each thread is late for each root
		root, slow := round%threads, round/threads%threads
		for _, s := range []shared.Syncs{{}, {In: shared.MySync, Out: shared.MySync}, {In: shared.AllSync, Out: shared.NoSync}, {In: shared.NoSync, Out: shared.AllSync}} {
			for number, c := range []struct {
				do    func() error
				want  func(thread, k int) int64
				where func(thread int) int // how many elements
			}{
				{func() error { return shared.Broadcast(dst, 0, src, root*n*threads, n, s) },
					func(_, k int) int64 { return value(root, k) }, func(int) int { return n }},
				{func() error { return shared.Scatter(dst, 0, src, root*n*threads, n, s) },
					func(thread, k int) int64 { return value(root, thread*n+k) }, func(int) int { return n }},
				{func() error { return shared.Gather(dst, root*n*threads, src, 0, n, s) },
					func(_, k int) int64 { return value(k/n, k%n) }, func(thread int) int {
						if thread == root {
							return n * threads
						}
						return 0
					}},
				{func() error { return shared.GatherAll(dst, 0, src, 0, n, s) },
					func(_, k int) int64 { return value(k/n, k%n) }, func(int) int { return n * threads }},
				{func() error { return shared.Exchange(dst, 0, src, 0, n, s) },
					func(thread, k int) int64 { return value(k/n, thread*n+k%n) }, func(int) int { return n * threads }},
				{func() error { return shared.Permute(dst, 0, src, 0, perm, n, s) },
					func(thread, k int) int64 { return value((thread+threads-1)%threads, k) }, func(int) int { return n }},
			} {
				base := int64(round)<<32 | int64(number)<<24
				if s.In == shared.NoSync || s.Out == shared.NoSync {
					barrier(t, w)
				}
				late(slow)
				for k := range src.Local() {
					src.Local()[k] = base + value(me, k)
				}
				if s.In == shared.NoSync {
					barrier(t, w)
					late(slow)
				}
				require.NoError(t, c.do())
				looked := []int{me, (me + 1) % threads}
				if s.Out == shared.NoSync {
					barrier(t, w)
				}
				for _, thread := range looked {
					got := make([]int64, c.where(thread))
					require.NoError(t, dst.Memget(got, thread*n*threads))
					for k, v := range got {
						require.Equal(t, base+c.want(thread, k), v, "call %d, %+v: element %d of thread %d", number, s, k, thread)
					}
				}
				barrier(t, w)
			}
		}
	}
	require.NoError(t, src.AllFree())
	require.NoError(t, dst.AllFree())
	require.NoError(t, perm.AllFree())
}

// line is a function x -> M x + C. One after the other they are such a function too: that is associative, and does not
// commute.
type line struct{ M, C int64 }

func after(a, b line) line { return line{a.M * b.M, a.C*b.M + b.C} }

func TestReductionsInOrder(t *testing.T) { eachWorld(t, reductionsInOrder) }

func reductionsInOrder(t *testing.T, w *shared.World) {
	one, err := shared.AllAlloc[line](w, 1, w.Threads())
	require.NoError(t, err)
	check := func(src *shared.Array[line], begin, n int, s shared.Syncs) {
		want := line{-1, -2} // of nothing: as it was
		one.Local()[0] = want
		for i := begin; i < begin+n; i++ {
			v := line{int64(i%5 - 7), int64(i)}
			if i == begin {
				want = v
			} else {
				want = after(want, v)
			}
		}
		for i := range src.ForAll(0, src.Len()) {
			require.NoError(t, src.Put(i, line{int64(i%5 - 7), int64(i)}))
		}
		barrier(t, w)
		at := w.Threads() - 1
		require.NoError(t, shared.ReduceNoncomm(one, at, src, begin, n, after, s))
		got, err := one.Get(at)
		require.NoError(t, err)
		require.Equal(t, want, got, "%+v", src.Layout())
		barrier(t, w)
	}
	for _, s := range []shared.Syncs{{}, {In: shared.NoSync, Out: shared.NoSync}} {
		for _, block := range []int{0, 1, 3, 50} {
			for _, elements := range []int{0, 1, 37} {
				src, err := shared.AllAlloc[line](w, block, elements)
				require.NoError(t, err)
				check(src, 0, elements, s)
				if elements > 1 {
					check(src, 4, 13, s)
					check(src, 36, 1, s)
				}
				require.NoError(t, src.AllFree())
			}
		}
	}
	refs, err := shared.AllAlloc[shared.Ref](w, 1, w.Threads())
	require.NoError(t, err)
	last := w.Threads() - 1
	if w.MyThread() == last { // all of it is on one thread, which is not the first
		theirs, err := shared.Alloc[line](w, 20)
		require.NoError(t, err)
		refs.Local()[0] = theirs.Ref()
	}
	barrier(t, w)
	ref, err := refs.Get(last)
	require.NoError(t, err)
	theirs, err := shared.OpenArray[line](w, ref)
	require.NoError(t, err)
	check(theirs, 0, 20, shared.Syncs{})
	check(theirs, 7, 12, shared.Syncs{})
	require.NoError(t, theirs.AllFree())
	require.NoError(t, one.AllFree())
	require.NoError(t, refs.AllFree())
}

// What UPC's operations come to of two numbers.
func TestOperations(t *testing.T) {
	for _, c := range []struct {
		op         func(a, b int8) int8
		a, b, want int8
	}{{shared.Add[int8], 100, 100, -56}, {shared.Mult[int8], 100, 3, 44}, {shared.And[int8], 12, 10, 8}, {shared.Or[int8], 12, 10, 14},
		{shared.Xor[int8], 12, 10, 6}, {shared.Min[int8], -3, 2, -3}, {shared.Max[int8], -3, 2, 2},
		{shared.LogAnd[int8], 4, 2, 1}, {shared.LogAnd[int8], 4, 0, 0}, {shared.LogAnd[int8], 0, 4, 0},
		{shared.LogOr[int8], 4, 2, 1}, {shared.LogOr[int8], 0, 2, 1}, {shared.LogOr[int8], 4, 0, 1}, {shared.LogOr[int8], 0, 0, 0}} {
		require.Equal(t, c.want, c.op(c.a, c.b), "%+v", c)
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
				require.NoError(t, shared.Reduce(one, last, src, 0, elements, op, shared.Syncs{}))
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
				require.NoError(t, shared.PrefixReduce(dst, 0, src, 0, elements, op, shared.Syncs{}))
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
	require.ErrorContains(t, shared.PrefixReduce(a, 0, b, 0, 8, shared.Add[int64], shared.Syncs{}), "the layouts differ: blocks of ")
	require.ErrorContains(t, shared.PrefixReduce(b, 1, b, 0, 7, shared.Add[int64], shared.Syncs{}), "differ in thread or phase")
	require.ErrorContains(t, shared.PrefixReduce(b, 0, b, 1, 8, shared.Add[int64], shared.Syncs{}), "8 elements from element 1 on are not in it: stay within 0 to ")
	require.ErrorContains(t, shared.Reduce(b, 0, b, 1, 8, shared.Add[int64], shared.Syncs{}), "8 elements from element 1 on are not in it: stay within 0 to ")
	if w.MyThread() == 0 { // others hear of it in the reduction
		require.NoError(t, a.Resize(12))
		require.NoError(t, a.Memset(0, 12, 1))
	}
	barrier(t, w)
	require.NoError(t, shared.PrefixReduce(a, 0, a, 0, 12, shared.Add[int64], shared.Syncs{}))
	last, err := a.Get(11)
	require.NoError(t, err)
	require.EqualValues(t, 12, last)
	require.NoError(t, a.AllFree())
	require.NoError(t, b.AllFree())
}

// Reductions of some elements of an array, and prefixes that lie further behind in another one.
func TestReductionsOfSome(t *testing.T) { eachWorld(t, reductionsOfSome) }

func reductionsOfSome(t *testing.T, w *shared.World) {
	const elements, untouched = 37, int64(-77)
	for _, block := range []int{0, 1, 3, 50} {
		behind := max(2, block*w.Threads())
		src, err := shared.AllAlloc[int64](w, block, elements)
		require.NoError(t, err)
		dst, err := shared.AllAlloc[int64](w, block, behind+elements)
		require.NoError(t, err)
		one, err := shared.AllAlloc[int64](w, 1, w.Threads())
		require.NoError(t, err)
		for i := range src.ForAll(0, elements) {
			require.NoError(t, src.Put(i, int64(i*i+1)))
		}
		for _, some := range [][2]int{{5, 20}, {4, 1}, {36, 1}, {7, 0}} {
			begin, n := some[0], some[1]
			for k := range dst.Local() {
				dst.Local()[k] = untouched
			}
			one.Local()[0] = untouched
			require.NoError(t, shared.Reduce(one, 0, src, begin, n, shared.Add[int64], shared.Syncs{}))
			require.NoError(t, shared.PrefixReduce(dst, behind+begin, src, begin, n, shared.Add[int64], shared.Syncs{}))
			got, want, sum := make([]int64, behind+elements), make([]int64, behind+elements), untouched
			for i := range want {
				want[i] = untouched
			}
			for i := begin; i < begin+n; i++ {
				if i == begin {
					sum = 0
				}
				sum += int64(i*i + 1)
				want[behind+i] = sum
			}
			require.NoError(t, dst.Memget(got, 0))
			require.Equal(t, want, got, "block %d, %v", block, some)
			total, err := one.Get(0)
			require.NoError(t, err)
			require.Equal(t, sum, total, "block %d, %v", block, some)
			barrier(t, w)
		}
		require.NoError(t, src.AllFree())
		require.NoError(t, dst.AllFree())
		require.NoError(t, one.AllFree())
	}
}

// Reductions with unequal arguments, or with such as can't be, name the object and the argument on all threads, and nothing
// is done.
func TestUnequalArgumentsOfAReduction(t *testing.T) { eachWorld(t, unequalArgumentsOfAReduction) }

func unequalArgumentsOfAReduction(t *testing.T, w *shared.World) {
	if w.Threads() == 1 {
		t.Skip("it takes two to differ")
	}
	src, err := shared.AllAlloc[int64](w, 1, 1000)
	require.NoError(t, err)
	dst, err := shared.AllAlloc[int64](w, 1, 1000)
	require.NoError(t, err)
	for k := range dst.Local() {
		dst.Local()[k] = -77
	}
	barrier(t, w)
	unequal, elsewhere := 100+100*(w.MyThread()%2), 100+100*(1-w.MyThread()%2)
	for _, s := range []shared.Syncs{{}, {In: shared.NoSync, Out: shared.NoSync}} {
		for _, c := range []struct {
			what   string
			reduce func(src *shared.Array[int64], i, n int) error
		}{
			{"reduction", func(src *shared.Array[int64], i, n int) error { return shared.Reduce(dst, 0, src, i, n, shared.Add, s) }},
			{"reduction in order", func(src *shared.Array[int64], i, n int) error {
				return shared.ReduceNoncomm(dst, 0, src, i, n, shared.Add, s)
			}},
			{"prefix reduction", func(src *shared.Array[int64], i, n int) error {
				return shared.PrefixReduce(dst, i, src, i, n, shared.Add, s)
			}},
		} {
			me := fmt.Sprintf("thread %d: %s into %s: ", w.MyThread(), c.what, dst.Ref())
			assert.EqualError(t, c.reduce(src, 0, unequal), fmt.Sprintf("%sn must be the same on all threads; it is %d here, and %d elsewhere", me, unequal, elsewhere))
			assert.EqualError(t, c.reduce(src, 901, 100), fmt.Sprintf("%ssrc, %s: 100 elements from element 901 on are not in it: stay within 0 to 999", me, src.Ref()))
			gone := fmt.Sprintf("%sthread %d failed in it", me, w.Threads()-1)
			theirs := *src
			if w.MyThread() == w.Threads()-1 {
				gone = fmt.Sprintf("%ssrc, %s: it was closed before", me, src.Ref())
				require.NoError(t, theirs.Close())
			}
			assert.EqualError(t, c.reduce(&theirs, 0, 100), gone)
		}
	}
	for _, v := range dst.Local() {
		require.EqualValues(t, -77, v)
	}
	require.NoError(t, src.AllFree())
	require.NoError(t, dst.AllFree())
}
