package dgsp

import (
	"math/rand/v2"
)

// drawer makes random choices: from a seed, or from rapid, which can shrink them.
type drawer interface {
	between(low, high int) int
}

type seeded struct{ *rand.Rand }

func newSeeded(seed uint64) seeded { return seeded{rand.New(rand.NewPCG(seed, 1))} }

func (s seeded) between(low, high int) int { return low + s.IntN(high-low+1) }

// shape is a layout and what it means: where each of its bytes is, in order.
type shape struct {
	layout Layout
	places []int
}

const mostPlaces = 3000

// drawShape makes a layout of any form, and lists its bytes by the definition of each.
func drawShape(d drawer, depth int) shape {
	kind := d.between(0, 4)
	if depth == 0 {
		kind = 0
	}
	switch kind {
	case 0:
		return shape{Block(d.between(0, 40)), nil}.placed()
	case 1:
		return drawRepeat(d, drawShape(d, depth-1))
	case 2:
		return drawIndexed(d)
	case 3:
		each := drawShape(d, depth-1)
		at := make([]int, d.between(0, 8))
		var s shape
		for i := range at {
			at[i] = d.between(-300, 300)
			s.append(each, at[i])
		}
		s.layout = IndexedOf(each.layout, at)
		return s.bounded()
	default:
		fields := make([]Field, d.between(0, 5))
		var s shape
		for i := range fields {
			each := drawShape(d, depth-1)
			fields[i] = Field{d.between(-200, 200), each.layout}
			s.append(each, fields[i].At)
		}
		s.layout = Struct(fields...)
		return s.bounded()
	}
}

func drawRepeat(d drawer, each shape) shape {
	count, stride := d.between(0, 12), d.between(-70, 90)
	s := shape{layout: Repeat(each.layout, count, stride)}
	for i := range count {
		s.append(each, i*stride)
	}
	return s.bounded()
}

func drawIndexed(d drawer) shape {
	n := d.between(0, 10)
	at, length := make([]int, n), make([]int, n)
	s := shape{layout: Indexed(at, length)}
	unit := []int{1, 4, 8}[d.between(0, 2)]
	next := 0
	for i := range n {
		at[i] = next + d.between(-3, 9)
		if d.between(0, 5) == 0 {
			at[i] = next
		}
		length[i] = d.between(0, 4) * unit
		next = at[i] + length[i]
		s.append(shape{Block(length[i]), nil}.placed(), at[i])
	}
	return s
}

// placed lists the bytes of a block.
func (s shape) placed() shape {
	p, err := Compile(s.layout)
	if err != nil {
		panic(err)
	}
	for i := range p.Size() {
		s.places = append(s.places, i)
	}
	return s
}

func (s *shape) append(each shape, at int) {
	for _, p := range each.places {
		s.places = append(s.places, at+p)
	}
}

// bounded is one byte instead of a layout that has become too long to be listed.
func (s shape) bounded() shape {
	if len(s.places) > mostPlaces {
		return shape{Block(1), []int{0}}
	}
	return s
}

// reach is the least interval that has all places.
func (s shape) reach() (low, high int) {
	for i, p := range s.places {
		if i == 0 || p < low {
			low = p
		}
		if i == 0 || p >= high {
			high = p + 1
		}
	}
	return low, high
}
