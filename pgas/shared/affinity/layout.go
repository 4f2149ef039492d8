// Package affinity says which thread each element of a UPC shared array has affinity to and where it
// lies there, and adds to pointers to shared: the arithmetic of the UPC language specification 1.3,
// and nothing that has memory.
package affinity

import (
	"math"
	"math/bits"

	"github.com/pkg/errors"
)

// Indefinite is the block size of UPC's [] and [0]: all elements have affinity to one thread.
const Indefinite = 0

// Layout says which thread each element of a shared array has affinity to, and where it lies among
// that thread's elements: `shared [Block] T a[Elements]` with elements of Size bytes. Block 1 is
// cyclic, which is what UPC calls the default; Elements/Threads rounded up is one block each ([*],
// BlockPure).
//
// Blocks are dealt out in turn: block b belongs to thread b % Threads, and lies there behind that
// thread's blocks before it.
type Layout struct {
	Threads  int
	Block    int // elements; Indefinite: one block, of thread 0
	Elements int
	Size     int // bytes of an element
}

// NewLayout checks what can't be: the numbers of threads or bytes below one, a block or a number of
// elements below zero, more bytes than a memory has.
func NewLayout(threads, block, elements, size int) (Layout, error) {
	l := Layout{threads, block, elements, size}
	switch {
	case threads < 1:
		return Layout{}, errors.Errorf("a shared array over %d threads: there must be one at least", threads)
	case block < 0:
		return Layout{}, errors.Errorf("a shared array with blocks of %d elements: they can't be negative", block)
	case elements < 0:
		return Layout{}, errors.Errorf("a shared array of %d elements: their number can't be negative", elements)
	case size < 1:
		return Layout{}, errors.Errorf("a shared array of elements of %d bytes: they must have one at least", size)
	}
	if _, err := product("a shared array", elements, size); err != nil {
		return Layout{}, err
	}
	if block != Indefinite {
		if _, err := product("a round of blocks", block, threads, size); err != nil {
			return Layout{}, err
		}
	}
	return l, nil
}

// product multiplies numbers that are not negative; more bytes than half an address space are too many.
func product(what string, numbers ...int) (int, error) {
	all := uint64(1)
	for _, n := range numbers {
		high, low := bits.Mul64(all, uint64(n))
		if high > 0 || low > math.MaxInt64/2 {
			return 0, errors.Errorf("%s of %v: the product is beyond what memory has", what, numbers)
		}
		all = low
	}
	return int(all), nil
}

// BlockPure is the block size of [*]: as much as it takes for each thread to have one block.
func BlockPure(threads, elements int) int { return max(1, (elements+threads-1)/threads) }

// ThreadOf is the thread that element i has affinity to.
func (l Layout) ThreadOf(i int) int {
	if l.Block == Indefinite {
		return 0
	}
	return i / l.Block % l.Threads
}

// PhaseOf is the place of element i in its block; in indefinite blocks it is always 0.
func (l Layout) PhaseOf(i int) int {
	if l.Block == Indefinite {
		return 0
	}
	return i % l.Block
}

// LocalOf is the place of element i among those of its thread.
func (l Layout) LocalOf(i int) int {
	if l.Block == Indefinite {
		return i
	}
	return i/(l.Block*l.Threads)*l.Block + i%l.Block
}

// ElementOf is the element at a local place of a thread: the inverse of ThreadOf and LocalOf.
func (l Layout) ElementOf(thread, local int) int {
	if l.Block == Indefinite {
		return local
	}
	return (local/l.Block*l.Threads+thread)*l.Block + local%l.Block
}

// LocalElements is how many elements have affinity to a thread.
func (l Layout) LocalElements(thread int) int {
	return affinity(l.Elements, l.Block, l.Threads, thread)
}

// Run is how many elements from element i on, at most n, lie one behind the other in one thread's
// memory: to the end of the block.
func (l Layout) Run(i, n int) int {
	n = min(n, l.Elements-i)
	if l.Block != Indefinite && (l.Threads > 1) {
		n = min(n, l.Block-i%l.Block)
	}
	return n
}

// AffinitySize is upc_affinitysize: of an object of totalSize bytes in blocks of blockBytes, those
// with affinity to a thread. blockBytes 0 is one block of thread 0.
func AffinitySize(totalSize, blockBytes, threads, thread int) int {
	return affinity(totalSize, blockBytes, threads, thread)
}

func affinity(total, block, threads, thread int) int {
	if thread < 0 || thread >= threads {
		return 0
	}
	if block == Indefinite {
		if thread == 0 {
			return total
		}
		return 0
	}
	rounds, rest := total/(block*threads), total%(block*threads)
	return rounds*block + min(max(rest-thread*block, 0), block)
}

// ---- blocks of several dimensions ---------------------------------------------------------------

// Tiling is an array of several dimensions in blocks of as many: tiles are dealt out in turn, in
// row-major order, and within a tile elements are in row-major order too. Tiles at the edges take as
// much memory as the others. (C. Barton, C. Cascaval, G. Almasi, R. Garg, J. N. Amaral, M.
// Farreras: Multidimensional blocking in UPC, LCPC 2007.)
type Tiling struct {
	Threads int
	Sizes   []int // elements of each dimension
	Tile    []int // and of a tile
	Size    int   // bytes of an element
	tiles   []int // of each dimension
	inTile  int   // elements
}

// NewTiling checks that sizes and tile have the same number of dimensions, one at least, and that
// tiles have elements.
func NewTiling(threads int, sizes, tile []int, size int) (*Tiling, error) {
	if len(sizes) == 0 || len(sizes) != len(tile) {
		return nil, errors.Errorf("an array of %d dimensions in blocks of %d: both must have the same, one at least", len(sizes), len(tile))
	}
	t := &Tiling{Threads: threads, Sizes: append([]int(nil), sizes...), Tile: append([]int(nil), tile...), Size: size}
	for i := range sizes {
		if tile[i] < 1 || sizes[i] < 0 {
			return nil, errors.Errorf("dimension %d has %d elements in blocks of %d: blocks need one at least", i, sizes[i], tile[i])
		}
		t.tiles = append(t.tiles, (sizes[i]+tile[i]-1)/tile[i])
	}
	var err error
	if t.inTile, err = product("a block", t.Tile...); err != nil {
		return nil, err
	}
	tiles, err := product("an array of blocks", t.tiles...)
	if err != nil {
		return nil, err
	}
	elements, err := product("an array of blocks", tiles, t.inTile)
	if err != nil {
		return nil, err
	}
	_, err = NewLayout(threads, t.inTile, elements, size)
	return t, err
}

// Layout is that of the tiles one after the other.
func (t *Tiling) Layout() Layout {
	elements := t.inTile
	for _, n := range t.tiles {
		elements *= n
	}
	return Layout{t.Threads, t.inTile, elements, t.Size}
}

// Element is the number in Layout of the element with these indices, one for each dimension.
func (t *Tiling) Element(indices ...int) int {
	tile, phase := 0, 0
	for d, i := range indices {
		tile = tile*t.tiles[d] + i/t.Tile[d]
		phase = phase*t.Tile[d] + i%t.Tile[d]
	}
	return tile*t.inTile + phase
}

// Indices are those of an element of Layout; false: it is padding of a tile at the edge.
func (t *Tiling) Indices(element int) ([]int, bool) {
	indices := make([]int, len(t.Sizes))
	tile, phase := element/t.inTile, element%t.inTile
	inside := true
	for d := len(t.Sizes) - 1; d >= 0; d-- {
		indices[d] = tile%t.tiles[d]*t.Tile[d] + phase%t.Tile[d]
		inside = inside && indices[d] < t.Sizes[d]
		tile /= t.tiles[d]
		phase /= t.Tile[d]
	}
	return indices, inside
}
