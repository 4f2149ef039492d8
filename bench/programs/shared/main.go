// Command shared prints what access to shared objects takes, in ns, as name|bytes|figures: from Go, on two
// ranks of a node. The ways take turns; figures are medians of the turns.
package main

import (
	"fmt"
	"log"
	"slices"
	"time"

	"evenkeel/mpi"
	"evenkeel/pgas/shared"
)

const (
	turns    = 15
	elements = 1 << 17 // 1 MiB for each thread
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

// way is something to be measured: it does what it does so many times.
type way struct {
	name  string
	times int
	do    func(times int) error
}

var sink int64

func run() error {
	if err := mpi.Init(); err != nil {
		return err
	}
	w, err := shared.Start(mpi.World, shared.Options{})
	if err != nil {
		return err
	}
	a, err := shared.AllAlloc[int64](w, elements, 2*elements)
	if err != nil {
		return err
	}
	for i := range a.Local() {
		a.Local()[i] = int64(i)
	}
	window, err := mpi.WinAllocateShared[int64](mpi.World, elements)
	if err != nil {
		return err
	}
	if err := window.LockAll(); err != nil {
		return err
	}
	if err := w.Barrier(0); err != nil {
		return err
	}
	if w.MyThread() == 0 {
		if err := measure(access(a, window)); err != nil {
			return err
		}
	}
	if err := w.Barrier(1); err != nil {
		return err
	}
	if err := objects(w); err != nil {
		return err
	}
	if err := locks(w, window); err != nil {
		return err
	}
	if err := window.UnlockAll(); err != nil {
		return err
	}
	if err := window.Free(); err != nil {
		return err
	}
	if err := w.End(); err != nil {
		return err
	}
	return mpi.Finalize()
}

// access are ways for one thread to read and write elements.
func access(a *shared.Array[int64], window *mpi.Win[int64]) []way {
	plain := make([]int64, elements)
	local := a.Local()
	one, all := make([]int64, 1), make([]int64, elements)
	over := func(get func(i int) (int64, error)) func(int) error {
		return func(times int) error {
			sum := int64(0)
			for i := range times {
				v, err := get(i % elements)
				if err != nil {
					return err
				}
				sum += v
			}
			sink += sum
			return nil
		}
	}
	slice := func(s []int64) func(int) error {
		return func(times int) error {
			sum := int64(0)
			for i := range times {
				sum += s[i%elements]
			}
			sink += sum
			return nil
		}
	}
	return []way{
		{"read an element of a Go slice", elements, slice(plain)},
		{"read one's own by Local", elements, slice(local)},
		{"read one's own by Get", elements, over(func(i int) (int64, error) { return a.Get(i) })},
		{"read another thread's by Get", elements, over(func(i int) (int64, error) { return a.Get(elements + i) })},
		{"MPI_Get and flush of 8 bytes", elements / 8, over(func(i int) (int64, error) {
			if err := window.Get(one, 1, i); err != nil {
				return 0, err
			}
			return one[0], window.Flush(1)
		})},
		{"write another thread's by Put", elements, func(times int) error {
			for i := range times {
				if err := a.Put(elements+i%elements, int64(i)); err != nil {
					return err
				}
			}
			return nil
		}},
		{"copy 1 MiB within a slice", 8, func(times int) error {
			for range times {
				copy(all, plain)
			}
			return nil
		}},
		{"Memget of another thread's 1 MiB", 8, func(times int) error {
			for range times {
				if err := a.Memget(all, elements); err != nil {
					return err
				}
			}
			return nil
		}},
		{"MPI_Get and flush of 1 MiB", 8, func(times int) error {
			for range times {
				if err := window.Get(all, 1, 0); err != nil {
					return err
				}
				if err := window.Flush(1); err != nil {
					return err
				}
			}
			return nil
		}},
	}
}

func measure(ways []way) error {
	taken := make([][]float64, len(ways))
	for turn := -1; turn < turns; turn++ { // the first is not counted
		for i, w := range ways {
			begin := time.Now()
			if err := w.do(w.times); err != nil {
				return err
			}
			if turn >= 0 {
				taken[i] = append(taken[i], float64(time.Since(begin).Nanoseconds())/float64(w.times))
			}
		}
	}
	for i, w := range ways {
		slices.Sort(taken[i])
		fmt.Printf("%s|%.2f\n", w.name, taken[i][turns/2])
	}
	return nil
}

// objects are what it takes thread 0 to open another thread's array, and to allocate one of its own.
func objects(w *shared.World) error {
	mine, err := shared.Alloc[int64](w, 8)
	if err != nil {
		return err
	}
	refs := make([]shared.Ref, w.Threads())
	if err := mpi.Allgather(mpi.World, []shared.Ref{mine.Ref()}, refs); err != nil {
		return err
	}
	const times = 500
	if w.MyThread() == 0 {
		err = measure([]way{{"OpenArray of another thread's array, and Close", times, func(times int) error {
			for range times {
				a, err := shared.OpenArray[int64](w, refs[1])
				if err != nil {
					return err
				}
				if err := a.Close(); err != nil {
					return err
				}
			}
			return nil
		}}, {"Alloc and Free", times, func(times int) error {
			for range times {
				a, err := shared.Alloc[int64](w, 8)
				if err != nil {
					return err
				}
				if err := a.Free(); err != nil {
					return err
				}
			}
			return nil
		}}})
	}
	if err != nil {
		return err
	}
	if err := w.Barrier(2); err != nil {
		return err
	}
	return mine.Free()
}

// locks are ways for both threads to exclude each other: what one time of taking and giving up takes,
// alone and with the other wanting it too.
func locks(w *shared.World, window *mpi.Win[int64]) error {
	lock, err := w.AllLockAlloc()
	if err != nil {
		return err
	}
	shut := func(times int) error {
		for range times {
			if err := lock.Lock(); err != nil {
				return err
			}
			if err := lock.Unlock(); err != nil {
				return err
			}
		}
		return nil
	}
	// A lock of MPI's one-sided calls alone: a word that is swapped until it was free.
	word := func(times int) error {
		for range times {
			for was := int64(1); was != 0; {
				if err := window.FetchAndOp(1, &was, 0, 0, mpi.Replace); err != nil {
					return err
				}
				if err := window.Flush(0); err != nil {
					return err
				}
			}
			var was int64
			if err := window.FetchAndOp(0, &was, 0, 0, mpi.Replace); err != nil {
				return err
			}
			if err := window.Flush(0); err != nil {
				return err
			}
		}
		return nil
	}
	const times = 20000
	for _, c := range []struct {
		name string
		do   func(int) error
		both bool
	}{
		{"a lock, taken and given up by its home", shut, false}, {"a word by MPI_Fetch_and_op, the same", word, false},
		{"a lock that both want, from one to the next", shut, true}, {"a word by MPI_Fetch_and_op that both want", word, true},
	} {
		var taken []float64
		for turn := -1; turn < turns; turn++ {
			if err := w.Barrier(0); err != nil {
				return err
			}
			begin := time.Now()
			if c.both || w.MyThread() == 0 {
				if err := c.do(times); err != nil {
					return err
				}
			}
			if err := w.Barrier(0); err != nil {
				return err
			}
			each := float64(time.Since(begin).Nanoseconds()) / times
			if c.both {
				each /= 2
			}
			if turn >= 0 {
				taken = append(taken, each)
			}
		}
		slices.Sort(taken)
		if w.MyThread() == 0 {
			fmt.Printf("%s|%.2f\n", c.name, taken[turns/2])
		}
	}
	return lock.AllFree()
}
