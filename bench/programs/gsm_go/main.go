// Command gsm_go measures what it takes a Go program to reach another task's memory on the same node.
//
//	mpirun -np 2 gsm_go [TURNS]
//
// Rank 0 reaches rank 1's memory, and prints the median of each: a name and a figure a line, in nanoseconds, or GB/s where
// it is a copy. What is called raw is the same on memory of its own, without a check.
package main

import (
	"fmt"
	"log"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"time"
	"unsafe"

	"evenkeel/mpi"
	"evenkeel/pgas/gsm"
)

const (
	large = 1 << 20
	words = 512
)

func main() {
	turns := 7
	if len(os.Args) > 1 {
		turns, _ = strconv.Atoi(os.Args[1])
	}
	if err := run(max(turns, 1)); err != nil {
		log.Fatal(err)
	}
}

func run(turns int) error {
	if err := mpi.Init(); err != nil {
		return err
	}
	job, err := gsm.Join(mpi.World, gsm.Options{})
	if err != nil {
		return err
	}
	array, err := job.AllAllocate(2*large, large, gsm.AllowAll)
	if err != nil {
		return err
	}
	if job.Task() == 0 {
		if err := measure(array, turns); err != nil {
			return err
		}
	}
	if err := array.Free(); err != nil {
		return err
	}
	if err := job.Leave(); err != nil {
		return err
	}
	return mpi.Finalize()
}

type way struct {
	name  string
	loop  func(n int) error
	times int
	bytes int // 0: the figure is nanoseconds each
}

func measure(array *gsm.Array, turns int) error {
	there, data := array.Address(large), make([]byte, large)
	mine := array.Local()
	word := func(i int) *uint64 { return (*uint64)(unsafe.Pointer(&mine[8*(i%words)])) }
	var sum, last uint64
	ways := []way{
		{"put.ours", func(n int) error {
			for i := range n {
				if err := array.Put64(there.Add(int64(8*(i%words))), uint64(i)); err != nil {
					return err
				}
			}
			return nil
		}, 2000000, 0},
		{"put.raw", func(n int) error {
			for i := range n {
				*word(i) = uint64(i)
			}
			return nil
		}, 2000000, 0},
		{"get.ours", func(n int) error {
			for i := range n {
				v, err := array.Get64(there.Add(int64(8 * (i % words))))
				if err != nil {
					return err
				}
				sum += v
			}
			return nil
		}, 2000000, 0},
		{"get.raw", func(n int) error {
			for i := range n {
				sum += atomic.LoadUint64(word(i))
			}
			return nil
		}, 2000000, 0},
		{"add.ours", func(n int) error {
			for range n {
				if _, err := array.FetchAndAdd64(there, 1); err != nil {
					return err
				}
			}
			return nil
		}, 500000, 0},
		{"add.raw", func(n int) error {
			for range n {
				sum += atomic.AddUint64(word(0), 1)
			}
			return nil
		}, 500000, 0},
		{"cas.ours", func(n int) error {
			for range n {
				old, err := array.CompareAndSwap64(there, last, last+1)
				if err != nil {
					return err
				}
				if old == last {
					last++
				} else {
					last = old
				}
			}
			return nil
		}, 500000, 0},
		{"cas.raw", func(n int) error {
			for range n {
				if atomic.CompareAndSwapUint64(word(0), sum, sum+1) {
					sum++
				} else {
					sum = atomic.LoadUint64(word(0))
				}
			}
			return nil
		}, 500000, 0},
		{"large.ours", func(n int) error {
			for range n {
				if err := array.Put(there, data); err != nil {
					return err
				}
			}
			return nil
		}, 100, large},
		{"large.raw", func(n int) error {
			for range n {
				copy(mine, data)
			}
			return nil
		}, 100, large},
	}
	figures := make([][]float64, len(ways))
	for turn := range turns + 1 {
		for i, w := range ways {
			begin := time.Now()
			if err := w.loop(w.times); err != nil {
				return err
			}
			each := float64(time.Since(begin).Nanoseconds()) / float64(w.times)
			if w.bytes > 0 {
				each = float64(w.bytes) / each
			}
			if turn > 0 { // the first one warms up
				figures[i] = append(figures[i], each)
			}
		}
	}
	for i, w := range ways {
		slices.Sort(figures[i])
		fmt.Printf("%s %.3f\n", w.name, figures[i][turns/2])
	}
	return nil
}
