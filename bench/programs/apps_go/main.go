// Command apps_go is bench/programs/apps.c in Go: four small applications by evenkeel's global shared memory and shared
// objects, and by MPI.
//
//	mpirun -np 2 apps_go [TURNS [SHRINK]]
//
// GUPS and the hash table use package gsm, the stencil and the sample sort package shared. Problems, checks and what is
// printed are those of the C program, and so the checksums.
package main

import (
	"fmt"
	"log"
	"math/bits"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/pkg/errors"

	"evenkeel/mpi"
	"evenkeel/pgas/gsm"
	"evenkeel/pgas/shared"
)

const (
	mostRanks  = 16
	mostShrink = 8
)

func main() {
	turns, shrink, err := arguments(os.Args[1:])
	if err == nil {
		err = run(turns, shrink)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func arguments(args []string) (turns, shrink int, err error) {
	turns = 5
	for i, into := range []*int{&turns, &shrink} {
		if i < len(args) {
			if *into, err = strconv.Atoi(args[i]); err != nil {
				return 0, 0, errors.Wrap(err, "usage: apps_go [TURNS [SHRINK]]")
			}
		}
	}
	if turns < 1 || shrink < 0 || shrink > mostShrink {
		return 0, 0, errors.Errorf("%d turns, shrinking %d times: at least one turn, and shrinking up to %d times", turns, shrink, mostShrink)
	}
	return turns, shrink, nil
}

// job is what all applications need.
type job struct {
	rank, ranks int
	shrink      int
	gsm         *gsm.Job
	world       *shared.World
}

// app is an application. It takes so many units of work; a way is ours or mpi's.
type app struct {
	name    string
	units   int
	prepare func(way int)
	run     func(way int) error
	fence   func(way int) error
	check   func(way int) (sum uint64, err error) // the rank's part of the checksum
	free    func() error
}

const (
	ours = iota
	mpis
	ways
)

func run(turns, shrink int) error {
	if err := mpi.Init(); err != nil {
		return err
	}
	j := &job{rank: mpi.World.Rank(), ranks: mpi.World.Size(), shrink: shrink}
	if j.ranks > mostRanks || j.ranks&(j.ranks-1) != 0 {
		return errors.Errorf("%d ranks: it takes a power of two up to %d", j.ranks, mostRanks)
	}
	var err error
	if j.gsm, err = gsm.Join(mpi.World, gsm.Options{}); err != nil {
		return err
	}
	if j.world, err = shared.Start(mpi.World, shared.Options{}); err != nil {
		return err
	}
	for _, begin := range []func(*job) (*app, error){gups, hash, stencil, sampleSort} {
		a, err := begin(j)
		if err != nil {
			return err
		}
		if err := j.measure(a, turns); err != nil {
			return errors.WithMessage(err, a.name)
		}
		if err := a.free(); err != nil {
			return err
		}
	}
	if err := j.world.End(); err != nil {
		return err
	}
	if err := j.gsm.Leave(); err != nil {
		return err
	}
	return mpi.Finalize()
}

func (j *job) measure(a *app, turns int) error {
	var rates [ways][]float64
	var sums [ways]uint64
	for turn := range turns + 1 {
		for way := range ways {
			taken, err := timed(a, way)
			if err != nil {
				return err
			}
			if turn > 0 { // the first one warms up
				rates[way] = append(rates[way], float64(a.units)/taken.Seconds()/1e6)
			}
			sum, err := a.check(way)
			if err != nil {
				return err
			}
			sums[way] = sum
			if err := mpi.AllreduceInPlace(mpi.World, sums[way:way+1], mpi.Sum); err != nil {
				return err
			}
		}
	}
	for way, name := range []string{"ours", "mpi"} {
		slices.Sort(rates[way])
		if j.rank == 0 {
			fmt.Printf("%s.%s %.3f %016x\n", a.name, name, rates[way][turns/2], sums[way])
		}
	}
	return nil
}

// timed is from when all begin until all are done.
func timed(a *app, way int) (time.Duration, error) {
	a.prepare(way)
	if err := a.fence(way); err != nil {
		return 0, err
	}
	if err := mpi.World.Barrier(); err != nil {
		return 0, err
	}
	begin := time.Now()
	if err := a.run(way); err != nil {
		return 0, err
	}
	err := a.fence(way)
	return time.Since(begin), err
}

// mix is a permutation of the numbers, and only the last becomes 0: Steele, Lea and Flood's splitmix64.
func mix(i uint64) uint64 {
	z := (i + 1) * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// part is what the rank has of n: from begin on, and before end.
func (j *job) part(n int) (begin, end int) {
	return n / j.ranks * j.rank, n / j.ranks * (j.rank + 1)
}

// bitsOfRanks is how many bits of a place say whose it is.
func (j *job) bitsOfRanks() int { return bits.Len(uint(j.ranks)) - 1 }

// errWrong is a result that the sequential program does not have.
var errWrong = errors.New("the result is not that of the sequential program")
