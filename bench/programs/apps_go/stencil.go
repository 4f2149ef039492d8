package main

import (
	"math"
	"slices"

	"golang.org/x/sys/unix"

	"evenkeel/mpi"
	"evenkeel/pgas/shared"
)

const (
	above = iota
	below
	sides
)

// grid is the part of a square grid that a rank has: whole rows.
type grid struct {
	j         *job
	side      int
	rows      int
	now, next []float64
	outside   []float64       // beyond the grid: zeros
	neighbour [sides]int      // mpi.ProcNull: none
	halo      [ways][]float64 // a row for each side, two of them in turn, in the order of place

	// The halos of all threads, and for each side of each a line with the number of the step whose row is there. A neighbour
	// is ahead by a step at most, for it needs this rank's rows as well.
	halos *shared.Array[float64]
	steps *shared.Array[uint64]
}

const line = 8 // words

func (g *grid) place(step, side int) int { return (step%2*sides + side) * g.side }

// stepAt is the element of steps for a side of a thread.
func stepAt(thread, side int) int { return (thread*sides + side) * line }

func newGrid(j *job, side int) (g *grid, err error) {
	g = &grid{j: j, side: side, rows: side / j.ranks, outside: make([]float64, side)}
	g.now, g.next = make([]float64, g.rows*side), make([]float64, g.rows*side)
	g.neighbour = [sides]int{j.rank - 1, j.rank + 1}
	if j.rank == 0 {
		g.neighbour[above] = mpi.ProcNull
	}
	if j.rank == j.ranks-1 {
		g.neighbour[below] = mpi.ProcNull
	}
	if g.halos, err = shared.AllAlloc[float64](j.world, 2*sides*side, 2*sides*side*j.ranks); err != nil {
		return nil, err
	}
	if g.steps, err = shared.AllAlloc[uint64](j.world, sides*line, sides*line*j.ranks); err != nil {
		return nil, err
	}
	g.halo = [ways][]float64{g.halos.Local(), make([]float64, 2*sides*side)}
	return g, nil
}

func (g *grid) free() error {
	if err := g.halos.AllFree(); err != nil {
		return err
	}
	return g.steps.AllFree()
}

// fill gives cells their first values; the first of them has this number in the grid.
func fill(cells []float64, begin int) {
	for i := range cells {
		cells[i] = float64(mix(uint64(begin+i)) >> 32)
	}
}

// relaxRow computes the cells of a row from those around them.
func relaxRow(into, above, row, below []float64) {
	last := len(into) - 1
	above, row, below = above[:len(into)], row[:len(into)], below[:len(into)]
	into[0] = 0.25 * ((above[0] + below[0]) + row[1])
	for i := 1; i < last; i++ {
		into[i] = 0.25 * ((above[i] + below[i]) + (row[i-1] + row[i+1]))
	}
	into[last] = 0.25 * ((above[last] + below[last]) + row[last-1])
}

// relax makes a step over rows of that many cells, between what is above and below them.
func relax(into, from []float64, side int, above, below []float64) {
	for r := 0; r < len(into); r += side {
		up, down := above, below
		if r > 0 {
			up = from[r-side : r]
		}
		if r+side < len(from) {
			down = from[r+side : r+2*side]
		}
		relaxRow(into[r:r+side], up, from[r:r+side], down)
	}
}

// run makes so many steps.
func (g *grid) run(way, steps int) error {
	exchange := g.exchange
	if way == mpis {
		exchange = g.exchangeMessages
	}
	for step := range steps {
		outer := [sides][]float64{g.now[:g.side], g.now[len(g.now)-g.side:]}
		if err := exchange(outer, step); err != nil {
			return err
		}
		var beyond [sides][]float64
		for side, n := range g.neighbour {
			if beyond[side] = g.outside; n != mpi.ProcNull {
				beyond[side] = g.halo[way][g.place(step, side):][:g.side]
			}
		}
		relax(g.next, g.now, g.side, beyond[above], beyond[below])
		g.now, g.next = g.next, g.now
	}
	return nil
}

// exchange puts the outer rows into the neighbours' halos, and waits until theirs are here.
func (g *grid) exchange(outer [sides][]float64, step int) error {
	for side, n := range g.neighbour {
		if n == mpi.ProcNull {
			continue
		}
		if err := g.halos.Memput(n*2*sides*g.side+g.place(step, 1-side), outer[side]); err != nil {
			return err
		}
		if err := g.steps.PutStrict(stepAt(n, 1-side), uint64(step)+1); err != nil {
			return err
		}
	}
	for side, n := range g.neighbour {
		if n == mpi.ProcNull {
			continue
		}
		if err := g.await(stepAt(g.j.rank, side), uint64(step)+1); err != nil {
			return err
		}
	}
	return nil
}

// await returns when an element of steps has come to that.
func (g *grid) await(i int, step uint64) error {
	for spins := 0; ; spins++ {
		if v, err := g.steps.GetStrict(i); err != nil || v >= step {
			return err
		}
		if spins > 1000 { // the other may need the core
			unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
		}
	}
}

func (g *grid) exchangeMessages(outer [sides][]float64, step int) error {
	var requests []*mpi.Request
	for side, n := range g.neighbour {
		r, err := mpi.Irecv(mpi.World, g.halo[mpis][g.place(step, side):][:g.side], n, 1-side)
		if err != nil {
			return err
		}
		requests = append(requests, r)
	}
	for side, n := range g.neighbour {
		r, err := mpi.Isend(mpi.World, outer[side], n, side)
		if err != nil {
			return err
		}
		requests = append(requests, r)
	}
	_, err := mpi.WaitAll(requests...)
	return err
}

// stencil is Jacobi's iteration with five points, whose rows are dealt out in blocks.
func stencil(j *job) (*app, error) {
	side, steps := 512>>(j.shrink/2), 200>>(j.shrink/2)
	g, err := newGrid(j, side)
	if err != nil {
		return nil, err
	}
	right, spare := make([]float64, side*side), make([]float64, side*side)
	fill(right, 0)
	for range steps {
		relax(spare, right, side, g.outside, g.outside)
		right, spare = spare, right
	}
	begin, end := j.part(side * side)
	return &app{
		name: "stencil", units: side * side * steps,
		prepare: func(int) {
			fill(g.now, begin)
			clear(g.steps.Local())
		},
		run:   func(way int) error { return g.run(way, steps) },
		fence: func(int) error { return j.world.Barrier(0) },
		check: func(int) (sum uint64, err error) {
			// To the last bit, for each cell is computed in the same way wherever it lies.
			if !slices.Equal(g.now, right[begin:end]) {
				return 0, errWrong
			}
			for i, v := range g.now {
				sum += math.Float64bits(v) * mix(uint64(begin+i))
			}
			return sum, nil
		},
		free: g.free,
	}, nil
}
