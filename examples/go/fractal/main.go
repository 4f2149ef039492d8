// Command fractal computes the frames of a zoom into the Mandelbrot set. Points of
// the set take long, others do not, and which rows they are in changes with the zoom.
//
//	mpirun -np 2 fractal [-frames N] [-way even|balanced|split]
//
// Rows are the items of a partition, which adapts to where the work is (balanced) or
// stays as it is (even); or each frame is a job that is split into tasks (split). The
// checksum does not depend on it.
package main

import (
	"flag"
	"fmt"
	"log"
	"math"
	"runtime"
	"time"

	"github.com/pkg/errors"

	"evenkeel/balancer"
	"evenkeel/balancer/spmd"
	"evenkeel/mpi"
)

const (
	width, height    = 240, 240
	limit            = 600
	centreX, centreY = -0.7436, 0.1318
)

// row is how many iterations each of its points took.
type row [width]int32

func main() {
	frames := flag.Int("frames", 40, "frames of the zoom")
	way := flag.String("way", "balanced", "even, balanced or split")
	flag.Parse()
	runtime.GOMAXPROCS(1) // the ranks are the parallel part
	if err := run(*frames, *way); err != nil {
		log.Fatal(err) // mpirun then ends the other ranks
	}
}

func run(frames int, way string) error {
	if err := mpi.Init(); err != nil {
		return err
	}
	compute := map[string]func(*cycles) ([]row, error){"even": partitioned(balancer.Static), "balanced": partitioned(balancer.Profiled), "split": split}[way]
	if compute == nil || frames < 1 {
		return errors.Errorf("%d frames, %s: give one at least, and even, balanced or split", frames, way)
	}
	c := &cycles{frames: frames}
	last, err := compute(c)
	if err != nil {
		return err
	}
	if mpi.World.Rank() == 0 {
		fmt.Printf("checksum %d\n", checksum(last))
	}
	if err := c.print(); err != nil {
		return err
	}
	return mpi.Finalize()
}

// partitioned computes all frames, each rank its rows of a partition.
func partitioned(policy balancer.Policy) func(*cycles) ([]row, error) {
	return func(c *cycles) ([]row, error) {
		p, err := spmd.NewPartition(mpi.World, height, spmd.Options{Policy: policy, Cycles: c.frames})
		if err != nil {
			return nil, err
		}
		rows, err := spmd.NewArray[row](p, 0)
		if err != nil {
			return nil, err
		}
		if err := p.Start(); err != nil {
			return nil, err
		}
		c.begin()
		for frame := range c.frames {
			first, _ := p.Range()
			began := time.Now()
			own := rows.Own()
			for i := range own {
				own[i].compute(first+i, frame)
			}
			computed := time.Since(began)
			if err := p.Costs(costs(own)); err != nil {
				return nil, err
			}
			if _, err := p.Step(); err != nil {
				return nil, err
			}
			c.add(computed)
		}
		all := make([]row, height)
		if err := rows.Gather(all); err != nil {
			return nil, err
		}
		return all, p.Free()
	}
}

// costs are the rows' iterations.
func costs(rows []row) []float64 {
	sums := make([]float64, len(rows))
	for i := range rows {
		for _, n := range rows[i] {
			sums[i] += float64(n)
		}
	}
	return sums
}

// split computes each frame as a job.
func split(c *cycles) ([]row, error) {
	j, err := spmd.NewJob[row](mpi.World, spmd.JobOptions{Tasks: 1})
	if err != nil {
		return nil, err
	}
	var all []row
	c.begin()
	for frame := range c.frames {
		var computed time.Duration
		all, err = j.Run(height, func(first int, rows []row) error {
			began := time.Now()
			for i := range rows {
				rows[i].compute(first+i, frame)
			}
			computed += time.Since(began) // one task at a time
			return nil
		})
		if err != nil {
			return nil, err
		}
		c.add(computed)
	}
	return all, j.Free()
}

func (r *row) compute(y, frame int) {
	pixel := 3.0 / width * math.Pow(0.93, float64(frame))
	cy := centreY - float64(y-height/2)*pixel
	for x := range r {
		r[x] = iterations(centreX+float64(x-width/2)*pixel, cy)
	}
}

// iterations of z -> z² + c from 0 until |z| > 2, at most limit.
func iterations(cx, cy float64) int32 {
	x, y := 0.0, 0.0
	for n := range int32(limit) {
		if x*x+y*y > 4 {
			return n
		}
		x, y = x*x-y*y+cx, 2*x*y+cy
	}
	return limit
}

func checksum(rows []row) (sum int64) {
	for y := range rows {
		for x, n := range rows[y] {
			sum = sum*31 + int64(n) + int64(x)
		}
	}
	return sum
}

// cycles are what this rank computed, in seconds, in each.
type cycles struct {
	frames   int
	computed []float64
	start    time.Time
	took     time.Duration
}

func (c *cycles) begin() { c.start = time.Now() }

func (c *cycles) add(computed time.Duration) {
	c.computed = append(c.computed, computed.Seconds())
	c.took = time.Since(c.start)
}

// print says how long all cycles took, how long they would have if all ranks had
// computed all the time, after how many of them that was met within 5 %, and the
// imbalance of the second half of them: the longest over the mean time that ranks
// computed.
func (c *cycles) print() error {
	mean, longest := make([]float64, c.frames), make([]float64, c.frames)
	if err := mpi.Allreduce(mpi.World, c.computed, mean, mpi.Sum); err != nil {
		return err
	}
	if err := mpi.Allreduce(mpi.World, c.computed, longest, mpi.Max); err != nil {
		return err
	}
	ideal, settled := 0.0, c.frames
	var lateLongest, lateMean float64
	for i := len(mean) - 1; i >= 0; i-- {
		mean[i] /= float64(mpi.World.Size())
		ideal += mean[i]
		if i >= c.frames/2 {
			lateLongest, lateMean = lateLongest+longest[i], lateMean+mean[i]
		}
		if longest[i] <= 1.05*mean[i] {
			settled = i
		}
	}
	if mpi.World.Rank() == 0 {
		fmt.Printf("time %.6f ideal %.6f settled %d imbalance %.6f\n", c.took.Seconds(), ideal, settled, lateLongest/lateMean)
	}
	return nil
}
