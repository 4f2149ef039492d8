package affinity

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// place is where an element is: the reference keeps it in the plainest way.
type place struct {
	thread, phase, local int
}

// walk deals elements out one by one, as the language says: a block to a thread, the next block to the
// next thread, and each element behind those that its thread has already.
func walk(threads, block, elements int) []place {
	var places []place
	has := make([]int, threads)
	thread, phase := 0, 0
	for range elements {
		places = append(places, place{thread, phase, has[thread]})
		has[thread]++
		if block == Indefinite {
			continue
		}
		if phase++; phase == block {
			phase = 0
			if thread++; thread == threads {
				thread = 0
			}
		}
	}
	return places
}

const mostThreads, mostBlock, mostElements = 6, 7, 60

// eachLayout runs over all combinations of small numbers.
func eachLayout(t *testing.T, of func(l Layout, places []place)) {
	combinations := 0
	for threads := 1; threads <= mostThreads; threads++ {
		for block := 0; block <= mostBlock; block++ {
			for elements := 0; elements <= mostElements; elements++ {
				for _, size := range []int{1, 3, 8} {
					l, err := NewLayout(threads, block, elements, size)
					require.NoError(t, err)
					of(l, walk(threads, block, elements))
					combinations++
				}
			}
		}
	}
	t.Logf("%d combinations of threads, block, elements and size", combinations)
}

func TestElementsAreWhereTheLanguagePutsThem(t *testing.T) {
	eachLayout(t, func(l Layout, places []place) {
		counts, locator := make([]int, l.Threads), l.Locator()
		for i, p := range places {
			require.Equal(t, p, place{l.ThreadOf(i), l.PhaseOf(i), l.LocalOf(i)}, "element %d of %+v", i, l)
			require.Equal(t, i, l.ElementOf(p.thread, p.local), "%+v", l)
			thread, local := locator.Locate(i)
			require.Equal(t, p, place{thread, p.phase, local}, "element %d of %+v", i, l)
			counts[p.thread]++
			// A run ends where the next element is elsewhere.
			n := 1
			for i+n < len(places) && places[i+n].thread == p.thread && places[i+n].local == p.local+n {
				n++
			}
			require.LessOrEqual(t, l.Run(i, l.Elements), n, "%+v", l)
			if l.Threads > 1 || l.Block == Indefinite {
				require.Equal(t, n, l.Run(i, l.Elements), "element %d of %+v", i, l)
			}
		}
		for thread, n := range counts {
			require.Equal(t, n, l.LocalElements(thread), "thread %d of %+v", thread, l)
			require.Equal(t, n*l.Size, AffinitySize(l.Elements*l.Size, l.Block*l.Size, l.Threads, thread), "thread %d of %+v", thread, l)
		}
	})
	assert.Zero(t, AffinitySize(100, 10, 4, 4))
	assert.Zero(t, AffinitySize(100, 10, 4, -1))
}

// Numbers beyond 32 bits, which no array can be walked through for.
func TestLocateFarElements(t *testing.T) {
	for _, block := range []int{Indefinite, 1, 7, 1 << 20, 1<<33 + 5} {
		for _, threads := range []int{1, 3, 64} {
			l := Layout{threads, block, 1 << 61, 1}
			locator := l.Locator()
			for _, i := range []int{1<<32 - 1, 1 << 32, 1<<32 + 1, 1<<45 + 12345, 1<<60 - 1, 1<<61 - 1} {
				thread, local := locator.Locate(i)
				require.Equal(t, []int{l.ThreadOf(i), l.LocalOf(i)}, []int{thread, local}, "element %d of %+v", i, l)
				require.Equal(t, i, l.ElementOf(thread, local))
			}
		}
	}
}

// The quotients that are easily one too many or one too few: beside multiples of divisors, those beside
// powers of two among them.
func TestDivisorsDivide(t *testing.T) {
	const most = 1<<62 - 1 // elements of a layout
	random := rand.New(rand.NewPCG(1, 2))
	for range 200000 {
		d := random.Uint64()>>(2+random.IntN(62)) + 1
		if random.IntN(2) == 0 {
			d = 1<<random.IntN(62) + random.Uint64N(3) - 1
		}
		d = max(d, 1)
		blocks, threads := Layout{1 << 62, int(d), 0, 1}.Locator(), Layout{int(d), 1, 0, 1}.Locator()
		n := random.Uint64() >> (2 + random.IntN(62))
		for _, n := range []uint64{n, n / d * d, n/d*d - 1, most / d * d, most/d*d - 1, most} {
			if n > most {
				continue
			}
			thread, local := blocks.Locate(int(n))
			if uint64(thread) != n/d || uint64(local) != n%d {
				require.Equal(t, []uint64{n / d, n % d}, []uint64{uint64(thread), uint64(local)}, "%d in blocks of %d", n, d)
			}
			if thread, local = threads.Locate(int(n)); uint64(thread) != n%d || uint64(local) != n/d {
				require.Equal(t, []uint64{n % d, n / d}, []uint64{uint64(thread), uint64(local)}, "%d over %d threads", n, d)
			}
		}
	}
}

// Objects need not be made of whole elements for upc_affinitysize.
func TestAffinitySizeCountsBytes(t *testing.T) {
	for threads := 1; threads <= mostThreads; threads++ {
		for block := 0; block <= 2*mostBlock; block++ {
			for total := 0; total <= 2*mostElements; total++ {
				counts := make([]int, threads)
				for _, p := range walk(threads, block, total) {
					counts[p.thread]++
				}
				for thread, n := range counts {
					require.Equal(t, n, AffinitySize(total, block, threads, thread))
				}
			}
		}
	}
}

// Every difference of every two elements, and arithmetic that leaves the array.
func TestPointerArithmeticIsTheArrays(t *testing.T) {
	eachLayout(t, func(l Layout, places []place) {
		if l.Size == 1 && l.Elements%7 != 0 {
			return // the larger sizes tell more
		}
		ty := l.Type()
		for i, p := range places {
			at := Pointer{p.thread, p.phase, p.local * l.Size}
			require.Equal(t, at, l.Pointer(i), "element %d of %+v", i, l)
			for j, q := range places {
				other := Pointer{q.thread, q.phase, q.local * l.Size}
				if got := ty.Add(at, j-i); got != other {
					require.Equal(t, other, got, "&a[%d] + %d of %+v", i, j-i, l)
				}
				difference, err := ty.Sub(other, at)
				if err != nil || difference != j-i {
					require.Equal(t, j-i, difference, "&a[%d] - &a[%d] of %+v: %v", j, i, l, err)
				}
			}
		}
	})
}

// The identities of the specification (6.4.2) for any pointer, also such as no element of an array that
// begins at phase 0 has.
func TestPointerArithmeticKeepsTheIdentities(t *testing.T) {
	for threads := 1; threads <= 4; threads++ {
		for block := 1; block <= 5; block++ {
			ty := Type{threads, block, 4}
			for thread := range threads {
				for phase := range block {
					p := Pointer{thread, phase, 400}
					step := p
					for i := range 50 {
						q := ty.Add(p, i)
						require.Equal(t, step, q, "one step after the other")
						require.Equal(t, (PhaseOf(p)+i)%block, PhaseOf(q))
						require.Equal(t, (ThreadOf(p)+(PhaseOf(p)+i)/block)%threads, ThreadOf(q))
						require.Equal(t, p, ty.Add(q, -i))
						step = ty.Add(step, 1)
					}
					require.Equal(t, Pointer{thread, 0, 400}, ResetPhase(p))
					require.Equal(t, AddrField(p), AddrField(ResetPhase(p)))
				}
			}
		}
	}
}

func TestPointersOfDifferentArraysHaveNoDifference(t *testing.T) {
	ty := Type{4, 3, 8}
	_, err := ty.Sub(Pointer{0, 0, 8}, Pointer{0, 0, 0})
	assert.ErrorContains(t, err, "do not point into one array of blocks of 3 elements")
	_, err = Type{4, Indefinite, 8}.Sub(Pointer{1, 0, 8}, Pointer{0, 0, 0})
	assert.ErrorContains(t, err, "do not point into one array")
	_, err = Type{4, Indefinite, 8}.Sub(Pointer{1, 0, 9}, Pointer{1, 0, 0})
	assert.ErrorContains(t, err, "do not point into one array")
}

func TestCastsResetThePhase(t *testing.T) {
	p := Pointer{1, 2, 80}
	assert.Equal(t, p, Cast(p, Type{4, 3, 8}, Type{4, 3, 8}))
	assert.Equal(t, Pointer{1, 0, 80}, Cast(p, Type{4, 3, 8}, Type{4, 5, 8}))
	assert.Equal(t, Pointer{1, 0, 80}, Cast(p, Type{4, 3, 8}, Type{4, 3, 4}))
}

func TestLayoutsThatCanNotBe(t *testing.T) {
	for _, c := range []struct {
		threads, block, elements, size int
		say                            string
	}{
		{0, 1, 1, 1, "over 0 threads"},
		{1, -1, 1, 1, "blocks of -1 elements"},
		{1, 1, -1, 1, "of -1 elements"},
		{1, 1, 1, 0, "elements of 0 bytes"},
		{1, 1, math.MaxInt, 8, "beyond what memory has"},
		{1 << 20, math.MaxInt >> 20, 1, 8, "beyond what memory has"},
	} {
		_, err := NewLayout(c.threads, c.block, c.elements, c.size)
		assert.ErrorContains(t, err, c.say)
	}
}

// Tiles are dealt out by walking over them, and over their elements.
func TestTilesAreDealtOutInTurn(t *testing.T) {
	combinations := 0
	for threads := 1; threads <= 5; threads++ {
		for _, sizes := range [][]int{{7}, {5, 6}, {4, 3}, {3, 4, 5}, {6, 1, 2}, {0, 3}} {
			for _, tile := range [][]int{{1, 1, 1}, {2, 3, 2}, {3, 2, 4}, {8, 8, 8}} {
				tile = tile[:len(sizes)]
				tiling, err := NewTiling(threads, sizes, tile, 8)
				require.NoError(t, err)
				l := tiling.Layout()
				next := make([]int, threads) // free place of each thread
				number := 0
				eachIndex(tilesOf(sizes, tile), func(which []int) {
					thread := number % threads
					inside := 0
					eachIndex(tile, func(within []int) {
						indices := make([]int, len(sizes))
						ok := true
						for d := range sizes {
							indices[d] = which[d]*tile[d] + within[d]
							ok = ok && indices[d] < sizes[d]
						}
						element := tiling.Element(indices...)
						require.Equal(t, thread, l.ThreadOf(element))
						require.Equal(t, inside, l.PhaseOf(element))
						require.Equal(t, next[thread]+inside, l.LocalOf(element))
						back, real := tiling.Indices(element)
						require.Equal(t, indices, back)
						require.Equal(t, ok, real)
						inside++
					})
					next[thread] += inside
					number++
				})
				for thread, n := range next {
					require.Equal(t, n, l.LocalElements(thread))
				}
				combinations++
			}
		}
	}
	t.Logf("%d combinations", combinations)
	for _, c := range []struct {
		sizes, tile []int
		say         string
	}{
		{nil, nil, "0 dimensions"},
		{[]int{1, 2}, []int{1}, "2 dimensions in blocks of 1"},
		{[]int{4, 4}, []int{2, 0}, "dimension 1 has 4 elements in blocks of 0"},
		{[]int{1 << 40, 1 << 40}, []int{1, 1}, "beyond what memory has"},
	} {
		_, err := NewTiling(2, c.sizes, c.tile, 8)
		assert.ErrorContains(t, err, c.say)
	}
}

func tilesOf(sizes, tile []int) (n []int) {
	for d := range sizes {
		n = append(n, (sizes[d]+tile[d]-1)/tile[d])
	}
	return n
}

// eachIndex counts in row-major order.
func eachIndex(sizes []int, of func([]int)) {
	total := 1
	for _, n := range sizes {
		total *= n
	}
	for k := range total {
		indices := make([]int, len(sizes))
		for d, rest := len(sizes)-1, k; d >= 0; d-- {
			indices[d] = rest % sizes[d]
			rest /= sizes[d]
		}
		of(indices)
	}
}
