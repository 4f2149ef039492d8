// Command heat follows the temperature of a rod whose ends are kept at zero, and compares it with
// the exact solution. Each rank holds a stretch of the rod and exchanges one cell with each
// neighbour in every step, while it computes the cells that need no neighbour.
//
//	go build -o heat ./examples/go/heat && mpirun -np 4 ./heat -cells 2000 -steps 1000
package main

import (
	"flag"
	"fmt"
	"log"
	"math"

	"github.com/pkg/errors"

	"evenkeel/mpi"
)

func main() {
	cells := flag.Int("cells", 1000, "cells of the rod, between its ends")
	steps := flag.Int("steps", 1000, "steps in time")
	flag.Parse()
	if err := run(*cells, *steps); err != nil {
		log.Fatal(err) // mpirun then ends the other ranks
	}
}

func run(cells, steps int) error {
	if err := mpi.Init(); err != nil {
		return err
	}
	if cells < mpi.World.Size() || steps < 0 {
		return errors.Errorf("%d cells and %d steps: each of the %d ranks needs a cell, and steps cannot be negative",
			cells, steps, mpi.World.Size())
	}
	grid, err := mpi.World.Cart([]int{mpi.World.Size()}, []bool{false}, true)
	if err != nil {
		return errors.Wrap(err, "laying the ranks out in a line")
	}
	r, err := newRod(grid, cells)
	if err != nil {
		return err
	}
	for range steps {
		if err := r.step(); err != nil {
			return err
		}
	}
	worst, err := r.deviation(steps)
	if err != nil {
		return err
	}
	if grid.Rank() == 0 {
		fmt.Printf("%d cells, %d steps: off the exact solution by at most %.3e\n", cells, steps, worst)
	}
	if err := grid.Free(); err != nil {
		return err
	}
	return mpi.Finalize()
}

// rod is a rank's stretch of the rod: now[1:n+1] are its own cells, now[0] and now[n+1] copies of
// the neighbours' (or the ends of the rod).
type rod struct {
	line        *mpi.Cart
	left, right int
	first       int // number of the first own cell, from 1, in the whole rod
	width       float64
	now, next   []float64
}

// ratio is Δt/Δx²; up to 1/2 the computation is stable.
const ratio = 0.4

func newRod(line *mpi.Cart, cells int) (*rod, error) {
	left, right, err := line.Shift(0, 1)
	if err != nil {
		return nil, errors.Wrap(err, "finding the neighbours")
	}
	from := line.Rank() * cells / line.Size()
	to := (line.Rank() + 1) * cells / line.Size()
	r := &rod{
		line: line, left: left, right: right,
		first: from + 1,
		width: 1 / float64(cells+1),
		now:   make([]float64, to-from+2),
		next:  make([]float64, to-from+2),
	}
	for i := 1; i <= to-from; i++ {
		r.now[i] = math.Sin(math.Pi * r.place(i))
	}
	return r, nil
}

// place returns where on the rod, from 0 to 1, an own cell is.
func (r *rod) place(i int) float64 {
	return float64(r.first+i-1) * r.width
}

func (r *rod) step() error {
	n := len(r.now) - 2
	halo, err := r.exchange(n)
	if err != nil {
		return errors.Wrap(err, "exchanging cells with the neighbours")
	}
	for i := 2; i < n; i++ {
		r.next[i] = r.cell(i)
	}
	if _, err := mpi.WaitAll(halo...); err != nil {
		return errors.Wrap(err, "exchanging cells with the neighbours")
	}
	r.next[1], r.next[n] = r.cell(1), r.cell(n)
	r.now, r.next = r.next, r.now
	return nil
}

func (r *rod) cell(i int) float64 {
	return r.now[i] + ratio*(r.now[i-1]-2*r.now[i]+r.now[i+1])
}

// exchange begins to send the outermost own cells and to receive the neighbours'. Beyond an end of
// the rod there is ProcNull, and the cell there stays zero.
func (r *rod) exchange(n int) ([]*mpi.Request, error) {
	const leftward, rightward = 1, 2
	var halo []*mpi.Request
	for _, begin := range []func() (*mpi.Request, error){
		func() (*mpi.Request, error) { return mpi.Irecv(r.line.Comm, r.now[:1], r.left, rightward) },
		func() (*mpi.Request, error) { return mpi.Irecv(r.line.Comm, r.now[n+1:], r.right, leftward) },
		func() (*mpi.Request, error) { return mpi.Isend(r.line.Comm, r.now[1:2], r.left, leftward) },
		func() (*mpi.Request, error) { return mpi.Isend(r.line.Comm, r.now[n:n+1], r.right, rightward) },
	} {
		request, err := begin()
		if err != nil {
			return nil, err
		}
		halo = append(halo, request)
	}
	return halo, nil
}

// deviation returns the greatest difference of any cell on any rank from the exact solution
// exp(-π²t)·sin(πx).
func (r *rod) deviation(steps int) (float64, error) {
	decay := math.Exp(-math.Pi * math.Pi * float64(steps) * ratio * r.width * r.width)
	worst := []float64{0}
	for i := 1; i < len(r.now)-1; i++ {
		worst[0] = max(worst[0], math.Abs(r.now[i]-decay*math.Sin(math.Pi*r.place(i))))
	}
	err := mpi.AllreduceInPlace(r.line.Comm, worst, mpi.Max)
	return worst[0], errors.Wrap(err, "finding the greatest error")
}
