package shared_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/pgas/shared"
)

// Elements of several sizes, in blocks of several, written by one thread and read by another, against
// what the layout says of the local parts.
func TestElementsAreShared(t *testing.T) { eachWorld(t, elementsAreShared) }

func elementsAreShared(t *testing.T, w *shared.World) {
	for _, block := range []int{0, 1, 3, 10, 100} {
		sharedElements(t, w, block, func(i int) int64 { return int64(i) * 1000003 })
		sharedElements(t, w, block, func(i int) uint32 { return uint32(i) * 17 })
		sharedElements(t, w, block, func(i int) byte { return byte(i) })
		sharedElements(t, w, block, func(i int) [3]uint16 { return [3]uint16{uint16(i), 2, uint16(3 * i)} })
	}
}

func sharedElements[T comparable](t *testing.T, w *shared.World, block int, value func(int) T) {
	const elements = 57
	a, err := shared.AllAlloc[T](w, block, elements)
	require.NoError(t, err)
	me, threads := w.MyThread(), w.Threads()
	for i := range elements { // each writes what the next one reads
		if i%threads == me {
			require.NoError(t, a.Put(i, value(i)))
		}
	}
	barrier(t, w)
	for i := range elements {
		v, err := a.Get(i)
		require.NoError(t, err)
		require.Equal(t, value(i), v)
		v, err = a.Load(a.Pointer(i))
		require.NoError(t, err)
		require.Equal(t, value(i), v)
		if a.ThreadOf(i) == me {
			require.Equal(t, value(i), a.Local()[a.Layout().LocalOf(i)])
		}
	}
	barrier(t, w)
	require.NoError(t, a.AllFree())
}

// Random bulk operations by one thread after the other, against a plain slice.
func TestBulkOperationsAreThoseOfASlice(t *testing.T) { eachWorld(t, bulkOperationsAreThoseOfASlice) }

func bulkOperationsAreThoseOfASlice(t *testing.T, w *shared.World) {
	const elements = 200
	for seed := range uint64(times(t, 60)) {
		r := rand.New(rand.NewPCG(seed, 4)) // the same on all threads
		a, err := shared.AllAlloc[int32](w, r.IntN(9), elements)
		require.NoError(t, err)
		b, err := shared.AllAlloc[int32](w, r.IntN(9), elements)
		require.NoError(t, err)
		plain, other := make([]int32, elements), make([]int32, elements)
		if w.MyThread() == 0 {
			require.NoError(t, a.Memset(0, elements, 0))
			require.NoError(t, b.Memset(0, elements, 0))
		}
		barrier(t, w)
		for range 20 {
			i, j, v := r.IntN(elements), r.IntN(elements), r.Int32()
			n := r.IntN(elements + 1 - max(i, j))
			mine := r.IntN(w.Threads()) == w.MyThread()
			var err error
			switch r.IntN(4) {
			case 0:
				if mine {
					err = a.Memset(i, n, v)
				}
				for k := range n {
					plain[i+k] = v
				}
			case 1:
				some := make([]int32, n)
				for k := range some {
					some[k] = v + int32(k)
				}
				if mine {
					err = a.Memput(i, some)
				}
				copy(plain[i:], some)
			case 2:
				if mine {
					err = shared.Memcpy(b, i, a, j, n)
				}
				copy(other[i:i+n], plain[j:j+n])
			default:
				got := make([]int32, n)
				require.NoError(t, a.Memget(got, i))
				require.Equal(t, plain[i:i+n], got, "seed %d", seed)
			}
			require.NoError(t, err)
			barrier(t, w)
		}
		got := make([]int32, elements)
		require.NoError(t, b.Memget(got, 0))
		require.Equal(t, other, got, "seed %d", seed)
		barrier(t, w)
		require.NoError(t, a.AllFree())
		require.NoError(t, b.AllFree())
	}
}

// Each iteration is executed once, by the thread that its affinity names.
func TestForAllExecutesEachIterationOnce(t *testing.T) { eachWorld(t, forAllExecutesEachIterationOnce) }

func forAllExecutesEachIterationOnce(t *testing.T, w *shared.World) {
	for _, block := range []int{0, 1, 2, 7} {
		a, err := shared.AllAlloc[int64](w, block, 40)
		require.NoError(t, err)
		for _, bounds := range [][2]int{{0, 40}, {3, 31}, {5, 5}, {-2, 99}} {
			var mine []int
			for i := range a.ForAll(bounds[0], bounds[1]) {
				mine = append(mine, i)
			}
			var want []int
			for i := max(0, bounds[0]); i < min(40, bounds[1]); i++ {
				if a.ThreadOf(i) == w.MyThread() {
					want = append(want, i)
				}
			}
			require.Equal(t, want, mine, "block %d, %v", block, bounds)
		}
		require.NoError(t, a.AllFree())
	}
	for begin := -5; begin < 6; begin++ {
		var mine, want []int
		for i := range w.ForAll(begin, 20) {
			mine = append(mine, i)
		}
		for i := begin; i < 20; i++ {
			if ((i%w.Threads())+w.Threads())%w.Threads() == w.MyThread() {
				want = append(want, i)
			}
		}
		require.Equal(t, want, mine)
	}
}

// What one thread allocates reaches the others by its Ref, kept in shared memory; any thread may free it.
func TestAllocationIsByAnyThread(t *testing.T) { eachWorld(t, allocationIsByAnyThread) }

func allocationIsByAnyThread(t *testing.T, w *shared.World) {
	me, threads := w.MyThread(), w.Threads()
	next := (me + 1) % threads
	refs, err := shared.AllAlloc[[2]shared.Ref](w, 1, threads)
	require.NoError(t, err)
	for round := range max(3, times(t, 20)) {
		mine, err := shared.Alloc[int64](w, 10+me)
		require.NoError(t, err)
		require.Len(t, mine.Local(), 10+me)
		for i := range mine.Len() {
			require.Equal(t, me, mine.ThreadOf(i))
		}
		global, err := shared.GlobalAlloc[int64](w, 2, 5*threads)
		require.NoError(t, err)
		require.NoError(t, mine.Put(3, int64(100*me+round)))
		require.NoError(t, global.Memset(0, global.Len(), int64(me)))
		require.NoError(t, refs.Put(me, [2]shared.Ref{mine.Ref(), global.Ref()}))
		barrier(t, w)
		got, err := refs.Get(next)
		require.NoError(t, err)
		theirs, err := shared.OpenArray[int64](w, got[0])
		require.NoError(t, err)
		v, err := theirs.Get(3)
		require.NoError(t, err)
		require.EqualValues(t, 100*next+round, v)
		spread, err := shared.OpenArray[int64](w, got[1])
		require.NoError(t, err)
		for i := range spread.Len() {
			v, err := spread.Get(i)
			require.NoError(t, err)
			require.EqualValues(t, next, v)
		}
		barrier(t, w)
		require.NoError(t, theirs.Free())
		require.NoError(t, spread.Free())
		barrier(t, w)
		// It is gone for the one that allocated it, and can't be opened.
		assert.ErrorContains(t, mine.Free(), fmt.Sprintf("thread %d's object", me))
		assert.ErrorContains(t, mine.Put(0, 1), "it was freed before")
		_, err = shared.OpenArray[int64](w, got[0])
		assert.ErrorContains(t, err, "it was freed before")
		barrier(t, w)
	}
}

// Pointers in shared memory lead to an element wherever it has moved, until it is freed.
func TestSharedPointers(t *testing.T) { eachWorld(t, sharedPointers) }

func sharedPointers(t *testing.T, w *shared.World) {
	me, next := w.MyThread(), (w.MyThread()+1)%w.Threads()
	pointers, err := shared.AllAlloc[shared.Target](w, 1, w.Threads())
	require.NoError(t, err)
	data, err := shared.GlobalAlloc[int64](w, 2, 8*w.Threads())
	require.NoError(t, err)
	require.NoError(t, data.Put(3, int64(me)))
	require.NoError(t, pointers.Put(me, data.Target(3)))
	barrier(t, w)
	require.NoError(t, data.Resize(1000*w.Threads()))
	barrier(t, w)
	p, err := pointers.Get(next)
	require.NoError(t, err)
	theirs, err := shared.OpenArray[int64](w, p.Ref)
	require.NoError(t, err)
	v, err := theirs.Load(p.Pointer)
	require.NoError(t, err)
	require.EqualValues(t, next, v)
	barrier(t, w)
	require.NoError(t, theirs.Free())
	barrier(t, w)
	_, err = shared.OpenArray[int64](w, p.Ref)
	require.ErrorContains(t, err, "it was freed before")
	_, err = shared.OpenArray[int64](w, shared.Target{}.Ref)
	require.ErrorContains(t, err, "there never was such an object")
	one, err := shared.Alloc[shared.Target](w, 1)
	require.NoError(t, err)
	for _, r := range []shared.Ref{pointers.Ref(), one.Ref()} {
		_, err = shared.OpenArray[[4]uint64](w, r)
		require.ErrorContains(t, err, "is of kind pointer")
	}
	again, err := shared.OpenArray[shared.Target](w, one.Ref())
	require.NoError(t, err)
	require.NoError(t, again.Free())
	plain, err := shared.AllAlloc[[4]uint64](w, 1, 2)
	require.NoError(t, err)
	_, err = shared.OpenArray[shared.Target](w, plain.Ref())
	require.ErrorContains(t, err, "is of kind array")
	require.NoError(t, plain.AllFree())
	require.NoError(t, pointers.AllFree())
}

// An array that gets one word more than there is room for leaves, and does not reach what is behind it.
func TestArraysInARow(t *testing.T) { eachWorld(t, arraysInARow) }

func arraysInARow(t *testing.T, w *shared.World) {
	var row [3]*shared.Array[int64]
	var want [3][]int64
	for which := range row {
		var err error
		row[which], err = shared.Alloc[int64](w, 8)
		require.NoError(t, err)
		for i := range 8 {
			want[which] = append(want[which], int64(100*which+i))
		}
		require.NoError(t, row[which].Memput(0, want[which]))
	}
	require.NoError(t, row[0].Resize(9))
	require.NoError(t, row[0].Put(8, -1))
	require.NoError(t, row[1].Resize(24))
	require.NoError(t, row[1].Memset(8, 16, 1))
	for which, a := range row {
		got := make([]int64, 8)
		require.NoError(t, a.Memget(got, 0))
		assert.Equal(t, want[which], got, "array %d", which)
		require.NoError(t, a.Free())
	}
	barrier(t, w)
}

func TestErrorsNameObjectAndThread(t *testing.T) { eachWorld(t, errorsNameObjectAndThread) }

func errorsNameObjectAndThread(t *testing.T, w *shared.World) {
	me := fmt.Sprintf("thread %d: ", w.MyThread())
	a, err := shared.AllAlloc[int64](w, 2, 10)
	require.NoError(t, err)
	for _, err := range []error{a.Put(10, 1), a.Put(-1, 1), a.Memput(8, make([]int64, 3)), a.Memset(0, 11, 0), a.Memset(0, -1, 0),
		a.Memget(make([]int64, 11), 0), shared.Memcpy(a, 0, a, 5, 6), a.Store(shared.Pointer{Thread: 0, Address: 800}, 1),
		a.Store(shared.Pointer{Thread: 0, Address: 4}, 1)} {
		assert.ErrorContains(t, err, me)
		assert.ErrorContains(t, err, " everyone's object")
	}
	assert.ErrorContains(t, a.Put(10, 1), me+"writing "+a.Ref().String()+": element 10 is not in it: stay within 0 to 9")
	const nowhere = ": {thread 0, phase 0, address 4} points at none of its elements"
	_, err = a.Load(shared.Pointer{Thread: 0, Address: 4})
	assert.EqualError(t, err, me+"reading "+a.Ref().String()+nowhere)
	assert.EqualError(t, a.Store(shared.Pointer{Thread: 0, Address: 4}, 1), me+"writing "+a.Ref().String()+nowhere)
	for _, p := range []shared.Pointer{{Thread: w.Threads()}, {Thread: -1}, {Thread: 0, Address: -8}, {Thread: 0, Address: 8 * a.Layout().LocalElements(0)}} {
		_, err = a.Load(p)
		assert.ErrorContains(t, err, "points at none of its elements", "%+v", p)
	}
	_, err = a.Sub(shared.Pointer{Thread: 0, Phase: 1, Address: 12}, a.Pointer(0))
	assert.EqualError(t, err, "the pointers {thread 0, phase 1, address 12} and {thread 0, phase 0, address 0} do not point into one array of "+
		"blocks of 2 elements of 8 bytes")
	assert.EqualError(t, shared.Memcpy(a, 0, a, 10, 1), me+"copying from "+a.Ref().String()+": element 10 is not in it: stay within 0 to 9")
	long, err := shared.AllAlloc[int64](w, 1, 6000) // more than is copied at once
	require.NoError(t, err)
	short, err := shared.AllAlloc[int64](w, 1, 5000)
	require.NoError(t, err)
	if w.MyThread() == 0 {
		require.NoError(t, long.Memset(0, 6000, 5))
		require.NoError(t, short.Memset(0, 5000, 1))
		assert.EqualError(t, shared.Memcpy(short, 1, long, 0, 6000), me+"copying into "+short.Ref().String()+
			": 6000 elements from element 1 on are not in it: stay within 0 to 4999")
		first, err := short.Get(1)
		require.NoError(t, err)
		assert.EqualValues(t, 1, first, "what is refused is not begun")
	}
	require.NoError(t, long.AllFree())
	require.NoError(t, short.AllFree())
	_, err = shared.GlobalAlloc[int64](w, -1, 10)
	assert.ErrorContains(t, err, me+"allocating a global shared array")
	assert.ErrorContains(t, err, "blocks of -1 elements")
	_, err = shared.Alloc[int64](w, 1<<62)
	assert.ErrorContains(t, err, "beyond what memory has")
	_, err = shared.Alloc[int64](w, 1<<30)
	assert.ErrorContains(t, err, "no room in the shared heap")
	_, err = shared.AllAlloc[byte](w, 1<<23, 1<<23)
	assert.ErrorContains(t, err, me+"allocating a shared array of 8388608 elements of 1 bytes: ")
	why := "there is no memory for it"
	if w.MyThread() == 0 {
		why = "no room in the shared heap"
	}
	assert.ErrorContains(t, err, why)
	_, err = shared.Alloc[*int](w, 1)
	assert.ErrorContains(t, err, "elements of type *int mean something in one process alone")
	_, err = shared.Alloc[struct{ s string }](w, 1)
	assert.ErrorContains(t, err, "in one process alone")
	_, err = shared.OpenArray[int64](w, 77<<16|1)
	assert.ErrorContains(t, err, "there never was such an object")
	_, err = shared.OpenArray[int64](w, 99<<40|1)
	assert.ErrorContains(t, err, "there never was such an object")
	_, err = shared.OpenArray[int32](w, a.Ref())
	assert.ErrorContains(t, err, "with elements of 8 bytes")
	_, err = w.OpenLock(a.Ref())
	assert.ErrorContains(t, err, "is no lock, but of kind array")
	require.NoError(t, a.AllFree())
	for _, err := range []error{a.AllFree(), a.Put(0, 1), a.Free()} {
		assert.ErrorContains(t, err, me)
		assert.ErrorContains(t, err, "it was freed before")
	}
}

// Elements keep their values and their threads when an array gets another size, where it is or elsewhere, whoever
// uses it meanwhile, and whatever was allocated in between.
func TestArraysResize(t *testing.T) { eachWorld(t, arraysResize) }

func arraysResize(t *testing.T, w *shared.World) {
	me, threads := w.MyThread(), w.Threads()
	value := func(object, i int) int64 { return int64(object*1000000 + i) }
	refs, err := shared.AllAlloc[shared.Ref](w, 1, threads)
	require.NoError(t, err)
	for round := range max(2, times(t, 12)) {
		all, err := shared.AllAlloc[int64](w, 3, 10)
		require.NoError(t, err)
		mine, err := []func(*shared.World) (*shared.Array[int64], error){
			func(w *shared.World) (*shared.Array[int64], error) { return shared.GlobalAlloc[int64](w, 2, 10) },
			func(w *shared.World) (*shared.Array[int64], error) { return shared.Alloc[int64](w, 10) },
		}[round%2](w)
		require.NoError(t, err)
		require.NoError(t, refs.Put(me, mine.Ref()))
		barrier(t, w)
		next := (me + 1) % threads
		ref, err := refs.Get(next)
		require.NoError(t, err)
		theirs, err := shared.OpenArray[int64](w, ref)
		require.NoError(t, err)
		if threads > 1 {
			assert.ErrorContains(t, theirs.Resize(20), fmt.Sprintf("only thread %d may do that", next))
		}
		filled := 0
		for _, elements := range []int{10, 40, 300, 20, 200, 0, 500} { // where it is, and elsewhere
			require.NoError(t, all.AllResize(elements))
			require.NoError(t, mine.Resize(elements))
			barrier(t, w)
			require.Equal(t, elements, all.Len())
			has := "it has none"
			if elements > 0 {
				has = fmt.Sprintf("stay within 0 to %d", elements-1)
				// Theirs are as many at once.
				_, err = theirs.Get(elements - 1)
				require.NoError(t, err, "%d elements", elements)
			}
			assert.ErrorContains(t, theirs.Put(elements, 1), fmt.Sprintf("element %d is not in it: %s", elements, has))
			assert.ErrorContains(t, all.Put(elements, 1), fmt.Sprintf("element %d is not in it: %s", elements, has))
			assert.ErrorContains(t, all.Memset(1, elements, 1), fmt.Sprintf("%d elements from element 1 on are not in it: %s", elements, has))
			v := make([]int64, min(filled, elements))
			for object, a := range []*shared.Array[int64]{all, theirs} {
				require.NoError(t, a.Memget(v, 0))
				for i := range v {
					require.Equal(t, value(object*(next+1), i), v[i], "round %d, %d elements", round, elements)
				}
			}
			barrier(t, w)
			for i := range elements {
				require.NoError(t, mine.Put(i, value(me+1, i)))
			}
			for i := range all.ForAll(0, elements) {
				require.NoError(t, all.Put(i, value(0, i)))
			}
			filled = elements
			barrier(t, w)
		}
		require.NoError(t, all.AllFree())
		require.NoError(t, theirs.Free())
		barrier(t, w)
	}
	nothingIsPromised(t, w)
}

// What is freed is memory again: as much as fits is allocated and freed many times.
func TestFreedMemoryIsUsedAgain(t *testing.T) { eachWorld(t, freedMemoryIsUsedAgain) }

func freedMemoryIsUsedAgain(t *testing.T, w *shared.World) {
	const bytes = 1 << 20 // of 2 MiB that each half has
	refs, err := shared.AllAlloc[shared.Ref](w, 1, w.Threads())
	require.NoError(t, err)
	for range max(3, times(t, 50)) {
		a, err := shared.AllAlloc[byte](w, bytes, bytes*w.Threads())
		require.NoError(t, err)
		mine, err := shared.Alloc[byte](w, bytes)
		require.NoError(t, err)
		require.NoError(t, refs.Put(w.MyThread(), mine.Ref()))
		barrier(t, w)
		ref, err := refs.Get((w.MyThread() + 1) % w.Threads())
		require.NoError(t, err)
		theirs, err := shared.OpenArray[byte](w, ref)
		require.NoError(t, err)
		barrier(t, w)
		require.NoError(t, a.AllFree())
		require.NoError(t, theirs.Free())
		barrier(t, w)
	}
}

// Of all threads that free an array at once one does, and nobody waits for its memory in vain.
func TestOneOfSeveralFrees(t *testing.T) { eachWorld(t, oneOfSeveralFrees) }

func oneOfSeveralFrees(t *testing.T, w *shared.World) {
	did, err := shared.AllAlloc[int32](w, 1, w.Threads())
	require.NoError(t, err)
	for range max(5, times(t, 100)) {
		a, err := shared.AllAlloc[int64](w, 1, 10)
		require.NoError(t, err)
		barrier(t, w)
		did.Local()[0] = 1
		if err := a.Free(); err != nil {
			require.ErrorContains(t, err, "it was freed before")
			did.Local()[0] = 0
		}
		require.NoError(t, shared.Reduce(did, 0, did, 0, w.Threads(), shared.Add[int32], shared.Syncs{}))
		sum, err := did.Get(0)
		require.NoError(t, err)
		require.EqualValues(t, 1, sum)
		barrier(t, w)
	}
	nothingIsPromised(t, w)
	require.NoError(t, did.AllFree())
}

// nothingIsPromised has a thread find the heap full at once, without memory that others have freed and would give back.
func nothingIsPromised(t *testing.T, w *shared.World) {
	const more = 1 << 23 // bytes than there are
	_, err := shared.Alloc[byte](w, more)
	require.ErrorContains(t, err, "no room in the shared heap")
	require.NotContains(t, err.Error(), "still in use")
	_, err = shared.GlobalAlloc[byte](w, more, more)
	require.ErrorContains(t, err, "no room in the shared heap")
	require.NotContains(t, err.Error(), "still in use")
	barrier(t, w)
}

// openedByAll has thread 0 allocate an array of its own, with one value in all elements, and each thread open it.
func openedByAll(t *testing.T, w *shared.World, refs *shared.Array[shared.Ref], elements int, value int64) *shared.Array[int64] {
	if w.MyThread() == 0 {
		a, err := shared.Alloc[int64](w, elements)
		require.NoError(t, err)
		require.NoError(t, a.Memset(0, elements, value))
		require.NoError(t, refs.Put(0, a.Ref()))
	}
	barrier(t, w)
	ref, err := refs.Get(0)
	require.NoError(t, err)
	a, err := shared.OpenArray[int64](w, ref)
	require.NoError(t, err)
	barrier(t, w)
	return a
}

// An array that another thread frees while it moves: what it would have moved to is memory again.
func TestAnArrayIsFreedWhileItMoves(t *testing.T) { eachWorld(t, anArrayIsFreedWhileItMoves) }

func anArrayIsFreedWhileItMoves(t *testing.T, w *shared.World) {
	if w.Threads() == 1 {
		t.Skip("it takes two")
	}
	refs, err := shared.AllAlloc[shared.Ref](w, 1, w.Threads())
	require.NoError(t, err)
	const elements = 10000 // of 2 MiB that a thread has for itself, twenty times as much would have gone
	interrupted := 0
	for range max(5, times(t, 60)) {
		a := openedByAll(t, w, refs, elements, 0)
		switch w.MyThread() {
		case 0:
			var err error
			for n := 1; err == nil; n++ {
				err = a.Resize(elements * (1 + n%3))
			}
			require.ErrorContains(t, err, "it was freed before")
			if strings.Contains(err.Error(), "settling of") {
				interrupted++
			}
		case 1:
			require.NoError(t, a.Free())
		}
		barrier(t, w)
	}
	t.Logf("%d times while it moved", interrupted)
	nothingIsPromised(t, w)
	require.NoError(t, refs.AllFree())
}

// Whichever thread frees an array, when it has done so nobody gets at it any more who comes behind a barrier.
func TestUseAfterFree(t *testing.T) { eachWorld(t, useAfterFree) }

func useAfterFree(t *testing.T, w *shared.World) {
	refs, err := shared.AllAlloc[shared.Ref](w, 1, w.Threads())
	require.NoError(t, err)
	for round := range max(4, times(t, 100)) {
		freer := round % w.Threads()
		everyones, err := shared.AllAlloc[int64](w, 1, 16*w.Threads())
		require.NoError(t, err)
		for _, a := range []*shared.Array[int64]{everyones, openedByAll(t, w, refs, 100, 1)} {
			barrier(t, w)
			if w.MyThread() == freer {
				require.NoError(t, a.Free())
			}
			barrier(t, w)
			_, err := a.Get(0)
			assert.ErrorContains(t, err, "it was freed before", "freed by thread %d", freer)
			assert.ErrorContains(t, a.Put(w.MyThread(), 7), "it was freed before", "freed by thread %d", freer)
			assert.ErrorContains(t, a.Free(), "it was freed before", "freed by thread %d", freer)
		}
	}
	barrier(t, w)
}

// An array that another thread frees while it is used: an access is of the array or an error, and never reaches
// what is in its memory afterwards. Once that thread says that it is free, each is an error.
func TestAFreedArrayIsNotReached(t *testing.T) { eachWorld(t, aFreedArrayIsNotReached) }

func aFreedArrayIsNotReached(t *testing.T, w *shared.World) {
	if w.Threads() == 1 {
		t.Skip("it takes two")
	}
	const elements = 150000 // more than half of what a thread has for itself: the next array is where this one was
	all := make([]int64, elements)
	refs, err := shared.AllAlloc[shared.Ref](w, 1, w.Threads())
	require.NoError(t, err)
	frees, err := shared.AllAlloc[int64](w, 1, 1)
	require.NoError(t, err)
	if w.MyThread() == 0 {
		require.NoError(t, frees.Put(0, 0))
	}
	for round := range max(3, times(t, 30)) {
		a := openedByAll(t, w, refs, elements, int64(round))
		if w.MyThread() == 0 {
			require.NoError(t, a.Free())
			require.NoError(t, frees.PutStrict(0, int64(round+1)))
			again, err := shared.Alloc[int64](w, elements)
			require.NoError(t, err)
			require.NoError(t, again.Memset(0, elements, -1))
			barrier(t, w)
			require.NoError(t, again.Free())
			continue
		}
		for i := 0; ; i++ {
			freed, err := frees.GetStrict(0)
			require.NoError(t, err)
			if all[0], err = a.Get(i % elements); err == nil {
				require.EqualValues(t, round, freed, "it was read after it was freed")
				require.EqualValues(t, round, all[0])
				err = a.Memget(all, 0)
			}
			if err != nil {
				require.ErrorContains(t, err, "thread 0's object")
				require.ErrorContains(t, err, "it was freed before")
				break
			}
			for _, v := range all {
				if v != int64(round) {
					t.Fatalf("round %d: read %d", round, v)
				}
			}
		}
		barrier(t, w)
	}
}

// Unequal arguments: all threads get an error, none hangs, and all go on.
func TestUnequalArgumentsOfACollective(t *testing.T) { eachWorld(t, unequalArgumentsOfACollective) }

func unequalArgumentsOfACollective(t *testing.T, w *shared.World) {
	if w.Threads() == 1 {
		t.Skip("it takes two to differ")
	}
	_, err := shared.AllAlloc[int64](w, 2, 10+w.MyThread())
	assert.ErrorContains(t, err, "the tasks gave unequal arguments")
	const large = 1 << 20 // bytes, of 2 MiB that a thread gives: what is refused takes nothing
	for range 3 {
		_, err = shared.AllAlloc[byte](w, large, large*w.Threads()-w.MyThread())
		assert.ErrorContains(t, err, "the tasks gave unequal arguments")
	}
	fits, err := shared.AllAlloc[byte](w, large, large*w.Threads())
	require.NoError(t, err)
	require.NoError(t, fits.AllFree())
	_, err = shared.AllAlloc[int64](w, w.MyThread()-1, 10)
	assert.ErrorContains(t, err, fmt.Sprintf("thread %d: ", w.MyThread()))
	a, err := shared.AllAlloc[int64](w, 1, 16)
	require.NoError(t, err)
	b, err := shared.AllAlloc[int64](w, 1, 16)
	require.NoError(t, err)
	assert.ErrorContains(t, shared.Broadcast(a, 0, b, w.MyThread()%2, 1, shared.Syncs{}), fmt.Sprintf(
		"thread %d: broadcast into %s: the element of src must be the same on all threads; it is %d here, and %d elsewhere",
		w.MyThread(), a.Ref(), w.MyThread()%2, 1-w.MyThread()%2))
	assert.ErrorContains(t, shared.Broadcast(a, 0, b, 16, 1, shared.Syncs{}), fmt.Sprintf(
		"thread %d: broadcast into %s: src, %s: element 16 is not in it: stay within 0 to 15", w.MyThread(), a.Ref(), b.Ref()))
	assert.ErrorContains(t, shared.Gather(a, -1, b, 0, 1, shared.Syncs{}), fmt.Sprintf(
		"thread %d: gather into %s: dst, %s: element -1 is not in it: stay within 0 to 15", w.MyThread(), a.Ref(), a.Ref()))
	assert.ErrorContains(t, shared.Broadcast(a, 0, b, 0, 1000, shared.Syncs{}), ": it takes 1000 elements of thread 0 from place 0 of its part on, which has ")
	assert.ErrorContains(t, shared.Scatter(a, 0, b, 0, math.MaxInt/2, shared.Syncs{}), fmt.Sprintf("scatter into %s: src, %s: it takes", a.Ref(), b.Ref()))
	end := a.Layout().LocalElements(0) - 1 // the last one of thread 0
	assert.ErrorContains(t, shared.Broadcast(a, 0, b, a.Layout().ElementOf(0, end), 2, shared.Syncs{}), fmt.Sprintf(
		": it takes 2 elements of thread 0 from place %d of its part on, which has %d: take 1 at most", end, end+1))
	for _, n := range []int{1 << 61, 1 << 62, math.MaxInt} { // so many for each thread are more than can be said
		assert.ErrorContains(t, shared.Exchange(a, 0, b, 0, n, shared.Syncs{}), ": it takes ")
	}
	perm, err := shared.AllAlloc[int32](w, 1, w.Threads())
	require.NoError(t, err)
	nobody := "thread 0 failed in it"
	require.NoError(t, perm.Put(w.MyThread(), int32(w.MyThread())))
	if w.MyThread() == 0 {
		require.NoError(t, perm.Put(0, int32(w.Threads())))
		nobody = fmt.Sprintf("thread 0: permute into %s: dst, %s: there is no thread %d: stay within 0 to %d", a.Ref(), a.Ref(), w.Threads(), w.Threads()-1)
	}
	assert.ErrorContains(t, shared.Permute(a, 0, b, 0, perm, 1, shared.Syncs{}), nobody)
	require.NoError(t, perm.AllFree())
	why := "thread 0 failed in it"
	if w.MyThread() == 0 {
		why = "resizing"
	}
	assert.ErrorContains(t, a.AllResize(1<<40), why) // for which thread 0 alone looks for memory
	mine, other := a, b
	if w.MyThread() == 1 {
		mine, other = b, a
	}
	assert.ErrorContains(t, mine.AllFree(), fmt.Sprintf("thread %d: freeing %s: the array must be the same on all threads; it is %s here, and %s elsewhere",
		w.MyThread(), mine.Ref(), mine.Ref(), other.Ref()))
	require.NoError(t, shared.Broadcast(a, 0, b, 0, 1, shared.Syncs{}))
	require.NoError(t, a.AllFree())
	require.NoError(t, b.AllFree())
}

func TestSplitPhaseBarrier(t *testing.T) { eachWorld(t, splitPhaseBarrier) }

func splitPhaseBarrier(t *testing.T, w *shared.World) {
	a, err := shared.AllAlloc[int64](w, 1, w.Threads())
	require.NoError(t, err)
	me, next := w.MyThread(), (w.MyThread()+1)%w.Threads()
	for round := range times(t, 200) {
		require.NoError(t, a.Put(next, int64(round)))
		require.NoError(t, w.Notify(uint64(round)))
		require.NoError(t, w.Wait())
		require.EqualValues(t, round, a.Local()[0])
		barrier(t, w)
	}
	assert.ErrorContains(t, w.Wait(), fmt.Sprintf("thread %d: wait: without a notify", me))
	require.NoError(t, w.Notify(1))
	assert.ErrorContains(t, w.Notify(1), "between Notify and Wait")
	_, err = shared.AllAlloc[int64](w, 1, 1)
	assert.ErrorContains(t, err, "between Notify and Wait")
	require.NoError(t, w.Wait())
	if w.Threads() > 1 {
		differ := fmt.Sprintf("barrier %d: other threads are at barriers from 0 to %d", me, w.Threads()-1)
		assert.ErrorContains(t, w.Barrier(uint64(me)), differ)
		require.NoError(t, w.Notify(uint64(me)))
		assert.ErrorContains(t, w.Wait(), differ)
	}
	require.NoError(t, a.AllFree())
}

// Message passing: who sees the flag that was set by a strict write sees the relaxed write before it.
func TestStrictAccessesOrderRelaxedOnes(t *testing.T) { eachWorld(t, strictAccessesOrderRelaxedOnes) }

func strictAccessesOrderRelaxedOnes(t *testing.T, w *shared.World) {
	if w.Threads() == 1 {
		t.Skip("it takes two")
	}
	data, err := shared.AllAlloc[int64](w, 1, 2)
	require.NoError(t, err)
	flag, err := shared.AllAlloc[int64](w, 1, 2)
	require.NoError(t, err)
	require.NoError(t, data.Memset(0, 2, 0))
	require.NoError(t, flag.Memset(0, 2, 0))
	barrier(t, w)
	rounds := int64(times(t, 2000))
	for round := int64(1); round <= rounds && w.MyThread() < 2; round++ {
		me := w.MyThread()
		// Thread 0 writes data[1], flag[1]; thread 1 answers in data[0], flag[0].
		if me == 0 {
			require.NoError(t, data.Put(1, round))
			require.NoError(t, flag.PutStrict(1, round))
		}
		for {
			v, err := flag.GetStrict(me)
			require.NoError(t, err)
			if v == round {
				break
			}
			giveWay()
		}
		v, err := data.Get(me)
		require.NoError(t, err)
		require.Equal(t, round, v)
		if me == 1 {
			require.NoError(t, data.Put(0, round))
			require.NoError(t, flag.PutStrict(0, round))
		}
	}
	barrier(t, w)
}

// Store buffering: of two threads that each write one element and then read the other's, at least one sees what the other
// wrote, if write or read are strict or a fence is between them. The processor alone does not promise it. Both run through
// many such pairs, each on lines of its own, and meet before each.
func TestStrictAccessesAreInOneOrder(t *testing.T) { eachWorld(t, strictAccessesAreInOneOrder) }

func strictAccessesAreInOneOrder(t *testing.T, w *shared.World) {
	if w.Threads() == 1 {
		t.Skip("it takes two")
	}
	const pairs, apart = 2000, 8
	me := w.MyThread()
	x, err := shared.AllAlloc[int64](w, shared.Indefinite, 2*pairs*apart) // what thread t writes begins at t * apart
	require.NoError(t, err)
	seen, err := shared.AllAlloc[int64](w, pairs, pairs*w.Threads())
	require.NoError(t, err)
	came, err := shared.AllAlloc[int64](w, apart, apart*w.Threads()) // thread t's first element: to so many pairs
	require.NoError(t, err)
	nothing := func() error { return nil }
	for _, way := range []struct {
		what  string
		put   func(i int, v int64) error
		fence func() error
		get   func(i int) (int64, error)
	}{
		{"both strict", x.PutStrict, nothing, x.GetStrict},
		{"a strict write", x.PutStrict, nothing, x.Get},
		{"a strict read", x.Put, nothing, x.GetStrict},
		{"a fence", x.Put, w.Fence, x.Get},
	} {
		both := 0
		for range times(t, 6) {
			for i := 0; i < times(t, pairs) && me < 2; i++ { // so it has what it reads in its cache, and waits for what it writes
				require.NoError(t, x.Put((2*i+1-me)*apart, 0))
			}
			came.Local()[0] = 0
			barrier(t, w)
			for i := 0; i < times(t, pairs) && me < 2; i++ {
				require.NoError(t, came.Put(me*apart, int64(i+1)))
				for looks, other := 0, int64(0); other <= int64(i); looks++ {
					other, err = came.Get((1 - me) * apart)
					require.NoError(t, err)
					if looks > 1000 {
						giveWay()
					}
				}
				for range i * (3 + 4*me) % 701 { // who came last goes on some 100 ns before the other one
				}
				errOfPut, errOfFence := way.put((2*i+me)*apart, 1), way.fence()
				v, err := way.get((2*i + 1 - me) * apart)
				if errOfPut != nil || errOfFence != nil || err != nil {
					t.Fatal(errOfPut, errOfFence, err)
				}
				seen.Local()[i] = v
			}
			barrier(t, w)
			if me == 0 {
				other := make([]int64, pairs)
				require.NoError(t, seen.Memget(other, pairs))
				for i, v := range other[:times(t, pairs)] {
					require.NotEqual(t, int64(0), v+seen.Local()[i], "%s, pair %d: neither saw the other", way.what, i)
					both += int(v * seen.Local()[i])
				}
			}
			barrier(t, w)
		}
		t.Logf("%s: %d of %d times both saw the other", way.what, both, times(t, 6)*times(t, pairs))
	}
	require.NoError(t, x.AllFree())
	require.NoError(t, seen.AllFree())
	require.NoError(t, came.AllFree())
}

// Relaxed accesses of one thread to one element, of which one writes, appear to all threads in the order of the program:
// nobody who reads with fences between sees an earlier value after a later one.
func TestWritesOfOneElementAreInOrder(t *testing.T) { eachWorld(t, writesOfOneElementAreInOrder) }

func writesOfOneElementAreInOrder(t *testing.T, w *shared.World) {
	last, writer := int64(max(100, times(t, 30000))), w.Threads()-1
	for home := range min(w.Threads(), 2) {
		x, err := shared.AllAlloc[int64](w, 1, w.Threads())
		require.NoError(t, err)
		x.Local()[0] = 0
		barrier(t, w)
		if w.MyThread() == writer {
			for v := int64(1); v <= last; v++ {
				require.NoError(t, x.Put(home, v))
				if v%64 == 0 {
					giveWay()
				}
			}
			got, err := x.Get(home)
			require.NoError(t, err)
			require.Equal(t, last, got)
		} else {
			for before, v := int64(0), int64(0); v < last; before = v {
				v, err = x.Get(home)
				require.NoError(t, err)
				require.GreaterOrEqual(t, v, before)
				require.NoError(t, w.Fence())
				giveWay()
			}
		}
		barrier(t, w)
		require.NoError(t, x.AllFree())
	}
}

// Independent reads of independent writes: two threads each write an element, and two others each wait for one of these
// and then read the other one, strictly. There is one order of all strict accesses, so whoever saw the later write sees
// both.
func TestStrictAccessesAreInOneOrderForAll(t *testing.T) {
	eachWorld(t, strictAccessesAreInOneOrderForAll)
}

func strictAccessesAreInOneOrderForAll(t *testing.T, w *shared.World) {
	if w.Threads() < 4 {
		t.Skip("it takes four")
	}
	const apart = 8
	pairs, me := times(t, 300), w.MyThread()
	x, err := shared.AllAlloc[int64](w, pairs*apart, w.Threads()*pairs*apart) // written by thread 0 with affinity to it, and by 1
	require.NoError(t, err)
	seen, err := shared.AllAlloc[int64](w, pairs, w.Threads()*pairs) // by threads 2 and 3
	require.NoError(t, err)
	for range times(t, 10) {
		clear(x.Local())
		barrier(t, w)
		for i := range pairs {
			side := me % 2
			mine, other := (side*pairs+i)*apart, ((1-side)*pairs+i)*apart
			switch {
			case me < 2:
				require.NoError(t, x.PutStrict(mine, 1))
			case me < 4:
				for v := int64(0); v == 0; giveWay() {
					v, err = x.GetStrict(mine)
					require.NoError(t, err)
				}
				seen.Local()[i], err = x.GetStrict(other)
				require.NoError(t, err)
			}
			giveWay()
		}
		barrier(t, w)
		if me == 2 {
			theirs := make([]int64, pairs)
			require.NoError(t, seen.Memget(theirs, 3*pairs))
			for i, v := range theirs {
				require.NotZero(t, v+seen.Local()[i], "pair %d: each reader saw one write alone, and not the same", i)
			}
		}
		barrier(t, w)
	}
	require.NoError(t, x.AllFree())
	require.NoError(t, seen.AllFree())
}

// A thread that lets go of an object is told nothing of it any more, and may open it again.
func TestClosing(t *testing.T) { eachWorld(t, closing) }

func closing(t *testing.T, w *shared.World) {
	me, next := w.MyThread(), (w.MyThread()+1)%w.Threads()
	refs, err := shared.AllAlloc[shared.Ref](w, 2, 2*w.Threads())
	require.NoError(t, err)
	mine, err := shared.Alloc[int64](w, 10)
	require.NoError(t, err)
	lock, err := w.GlobalLockAlloc()
	require.NoError(t, err)
	require.NoError(t, refs.Memput(2*me, []shared.Ref{mine.Ref(), lock.Ref()}))
	barrier(t, w)
	ref := make([]shared.Ref, 2)
	require.NoError(t, refs.Memget(ref, 2*next))
	for round := range int64(3) {
		theirs, err := shared.OpenArray[int64](w, ref[0])
		require.NoError(t, err)
		again, err := shared.OpenArray[int64](w, ref[0])
		require.NoError(t, err)
		require.NoError(t, theirs.Put(3, round))
		require.True(t, w.Knows(ref[0]))
		require.NoError(t, theirs.Close())
		require.Equal(t, me == next, w.Knows(ref[0])) // a home knows its own
		_, err = theirs.Get(3)
		require.ErrorContains(t, err, "it was closed before")
		require.ErrorContains(t, theirs.Close(), "it was closed before")
		require.ErrorContains(t, theirs.Free(), "it was closed before")
		v, err := again.Get(3) // who has it open twice has it still
		require.NoError(t, err)
		require.Equal(t, round, v)
		require.NoError(t, again.Close())
		opened, err := w.OpenLock(ref[1])
		require.NoError(t, err)
		require.NoError(t, opened.Lock())
		require.ErrorContains(t, opened.Close(), "the thread holds it")
		require.NoError(t, opened.Unlock())
		require.NoError(t, opened.Close())
		require.Equal(t, me == next, w.Knows(ref[1]))
		require.ErrorContains(t, opened.Lock(), "it was closed before")
		barrier(t, w)
		require.NoError(t, mine.Resize(int(11+round))) // which nobody is told
		barrier(t, w)
	}
	require.NoError(t, mine.Free())
	require.NoError(t, lock.Free())
	require.NoError(t, refs.AllFree())
}
