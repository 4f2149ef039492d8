// Command sieve counts the primes below a limit with the sieve of Eratosthenes over a shared array: each
// thread strikes out multiples in its own blocks, and takes the next prime from whichever thread has it.
//
//	go build -o sieve ./examples/go/sieve && mpirun -np 4 ./sieve -limit 1000000
package main

import (
	"flag"
	"fmt"
	"log"

	"github.com/pkg/errors"

	"evenkeel/mpi"
	"evenkeel/pgas/shared"
)

func main() {
	limit := flag.Int("limit", 1000000, "count the primes below this number")
	block := flag.Int("block", 4096, "numbers in each block of the shared array")
	flag.Parse()
	if err := run(*limit, *block); err != nil {
		log.Fatal(err) // mpirun then ends the other ranks
	}
}

func run(limit, block int) error {
	if err := mpi.Init(); err != nil {
		return err
	}
	w, err := shared.Start(mpi.World, shared.Options{Heap: 2*limit + 1<<20})
	if err != nil {
		return err
	}
	struck, err := shared.AllAlloc[bool](w, block, limit)
	if err != nil {
		return errors.Wrap(err, "the sieve")
	}
	clear(struck.Local())
	if err := w.Barrier(0); err != nil {
		return err
	}
	for prime := 2; prime*prime < limit; prime++ {
		out, err := struck.Get(prime) // of whichever thread
		if err != nil {
			return err
		}
		if !out {
			strike(w, struck, prime)
		}
		// The next number must have been struck out before anybody asks for it.
		if err := w.Barrier(uint64(prime)); err != nil {
			return err
		}
	}
	if err := count(w, struck); err != nil {
		return err
	}
	if err := struck.AllFree(); err != nil {
		return err
	}
	if err := w.End(); err != nil {
		return err
	}
	return mpi.Finalize()
}

// strike strikes the multiples of a prime out of the thread's own blocks.
func strike(w *shared.World, struck *shared.Array[bool], prime int) {
	l, local := struck.Layout(), struck.Local()
	for begin := 0; begin < len(local); begin += l.Block {
		first := l.ElementOf(w.MyThread(), begin)
		multiple := max(prime*prime, (first+prime-1)/prime*prime)
		for end := min(begin+l.Block, len(local)); multiple-first < end-begin; multiple += prime {
			local[begin+multiple-first] = true
		}
	}
}

// count adds up what the threads have left.
func count(w *shared.World, struck *shared.Array[bool]) error {
	counts, err := shared.AllAlloc[int64](w, 1, w.Threads())
	if err != nil {
		return errors.Wrap(err, "the counts")
	}
	total, err := shared.AllAlloc[int64](w, shared.Indefinite, 1)
	if err != nil {
		return errors.Wrap(err, "the count")
	}
	n := int64(0)
	for i := range struck.ForAll(2, struck.Len()) {
		if !struck.Local()[struck.Layout().LocalOf(i)] {
			n++
		}
	}
	counts.Local()[0] = n
	if err := shared.Reduce(total, 0, counts, 0, counts.Len(), shared.Add, shared.Syncs{}); err != nil {
		return err
	}
	if w.MyThread() == 0 {
		fmt.Printf("%d primes below %d\n", total.Local()[0], struck.Len())
	}
	if err := counts.AllFree(); err != nil {
		return err
	}
	return total.AllFree()
}
