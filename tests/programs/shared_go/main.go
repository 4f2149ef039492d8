// Command shared_go waits in the functions of pgas/shared and pgas/gsm.
//
//	mpirun -np 2 shared_go constant|random SEED CYCLES OUT.json MICROSECONDS   as truth.c, in shared barriers
//	mpirun -np 3 shared_go calls                                               calls everything that waits
//	mpirun -np 3 shared_go hang                                                in a lock and in a barrier
//	mpirun -np 3 shared_go die HOW                                             as shared_wait.c
package main

/*
#cgo pkg-config: ompi-c
#cgo CFLAGS: -D_GNU_SOURCE
#cgo LDFLAGS: -lm -ldl
#include <stdlib.h>
#include "barrier_clock.h"
#include "../truth.h"

static void record(int on) { MPI_Pcontrol(on); }
*/
import "C"

import (
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"time"
	"unsafe"

	"github.com/pkg/errors"
	"golang.org/x/sys/unix"

	"evenkeel/mpi"
	"evenkeel/pgas/gsm"
	"evenkeel/pgas/shared"
	"evenkeel/runtime/fabric"
)

var world *shared.World

// The main goroutine is the rank's main thread, whose waits are the rank's.
func init() { runtime.LockOSThread() }

func main() {
	must(mpi.Init())
	C.record(0) // the truth is about what follows
	world = value(shared.Start(mpi.World, shared.Options{Heap: 1 << 20}))
	C.record(1)
	finish := func() {}
	switch os.Args[1] {
	case "calls":
		call()
	case "hang":
		hang()
	case "die":
		die(os.Args[2])
	default:
		finish = imbalance(os.Args[1])
	}
	C.record(0)
	must(world.End())
	finish()
	must(mpi.Finalize())
}

func must(err error) {
	if err != nil {
		log.Panic(err)
	}
}

func value[T any](v T, err error) T {
	must(err)
	return v
}

// now is the time as all ranks of the node know it, in seconds.
func now() float64 {
	var t unix.Timespec
	must(unix.ClockGettime(unix.CLOCK_MONOTONIC, &t))
	return float64(t.Nano()) / 1e9
}

func compute(seconds float64) {
	for end := now() + seconds; now() < end; {
	}
}

// imbalance computes for seeded times between barriers, whole and split in turn, and returns what
// writes down when each rank came and went: by the clock in C, since it takes Go some 10 to 40 µs
// to be back from a wait there where the machine has other work.
func imbalance(pattern string) func() {
	number := func(i int) int { return value(strconv.Atoi(os.Args[i])) }
	begin, cycles, mean := now(), number(3), float64(number(5))/1e6
	load := rand.New(rand.NewPCG(uint64(number(2)), uint64(world.MyThread())))
	mine := make([]C.struct_reading, cycles+1)
	share := 0.5 + load.Float64()
	for cycle := range cycles + 1 {
		if cycle < cycles { // all end together
			compute(mean * share)
		}
		if pattern == "random" {
			share = 0.5 + load.Float64()
		}
		if cycle%2 == 0 {
			must(world.Barrier(0))
		} else {
			must(world.Notify(0))
			must(world.Wait())
		}
		mine[cycle] = C.barrier_clock
	}
	life := now() - begin
	return func() { write(pattern, mine, life) }
}

// write has rank 0 write the truth.
func write(pattern string, mine []C.struct_reading, life float64) {
	ranks := mpi.World.Size()
	readings, lives := make([]float64, 2*ranks*len(mine)), make([]float64, ranks)
	must(mpi.Gather(mpi.World, unsafe.Slice((*float64)(&mine[0].enter), 2*len(mine)), readings, 0))
	must(mpi.Gather(mpi.World, []float64{life}, lives, 0))
	if mpi.World.Rank() != 0 {
		return
	}
	var pins runtime.Pinner
	defer pins.Unpin()
	pins.Pin(&readings[0])
	pins.Pin(&lives[0])
	path := C.CString(os.Args[4])
	defer C.free(unsafe.Pointer(path))
	t := C.struct_truth{
		pattern: map[string]uint32{"constant": C.CONSTANT, "random": C.RANDOM}[pattern],
		calls:   C.int(len(mine)), ranks: C.int(ranks), path: path,
		readings: (*C.struct_reading)(unsafe.Pointer(&readings[0])), life: (*C.double)(&lives[0]),
	}
	if C.truth_write(&t) != 0 {
		os.Exit(1)
	}
}

// call calls what waits, five times or once.
func call() {
	me, threads := world.MyThread(), world.Threads()
	a, b := value(shared.AllAlloc[int64](world, 4, 4*threads)), value(shared.AllAlloc[int64](world, 4, 4*threads))
	whole := value(shared.AllAlloc[int64](world, 4*threads, 4*threads*threads))
	sums := value(shared.AllAlloc[int64](world, 1, threads))
	lock := value(world.AllLockAlloc())
	job := value(gsm.Join(mpi.World, gsm.Options{}))
	words := value(job.AllAllocate(1<<12, 0, gsm.AllowAll))
	next := gsm.Address{Task: fabric.Task((me + 1) % threads), Window: words.Number()}
	none := shared.Syncs{In: shared.NoSync, Out: shared.NoSync}
	for range 5 {
		must(words.Put64(next, 1))
		value(words.Get64(next))
		value(words.FetchAndAdd64(next, 1))
		must(words.Fence())
		must(job.GlobalFence())
		must(a.Put((4*me+4)%(4*threads), 1))
		must(world.Barrier(0))
		value(a.Get((4*me + 4) % (4 * threads)))
		must(world.Notify(1))
		must(world.Wait())
		must(shared.Broadcast(b, 0, a, 0, 4, shared.Syncs{}))
		must(shared.GatherAll(whole, 0, b, 0, 4, shared.Syncs{In: shared.NoSync}))
		must(shared.Broadcast(b, 0, a, 0, 4, none))
		must(shared.Reduce(sums, 0, a, 0, a.Len(), shared.Add, shared.Syncs{}))
	}
	computeMeanwhile(lock)
	askHomes()
	must(sums.AllResize(10 * threads))
	must(lock.AllFree())
	must(sums.AllFree())
	must(words.Free())
	must(job.Leave())
}

// computeMeanwhile has a goroutine of each thread but the first wait for a lock, while its main goroutine
// computes, and says how long it waited.
func computeMeanwhile(lock *shared.Lock) {
	if world.MyThread() == 0 {
		must(lock.Lock())
	}
	must(world.Barrier(0))
	if world.MyThread() == 0 {
		compute(0.3)
		must(lock.Unlock())
	} else {
		waited := make(chan float64)
		go func() {
			begin := now()
			must(lock.Lock())
			waited <- now() - begin
			must(lock.Unlock())
		}()
		compute(0.2)
		fmt.Printf("thread %d waited %.9f\n", world.MyThread(), <-waited)
	}
	must(world.Barrier(0))
}

// askHomes has each thread open, read and free what the one before it allocates, makes larger and moves, and
// allocate what only fits when what it freed is gone.
func askHomes() {
	me, threads := world.MyThread(), world.Threads()
	refs := make([]shared.Ref, threads)
	mine := value(shared.GlobalAlloc[int64](world, 4, 4*threads))
	must(mpi.Allgather(mpi.World, []shared.Ref{mine.Ref()}, refs))
	theirs := value(shared.OpenArray[int64](world, refs[(me+threads-1)%threads]))
	must(world.Barrier(0))
	must(mine.Resize(8 * threads))   // where it is or elsewhere
	must(mine.Resize(800 * threads)) // elsewhere: another has the memory behind it
	must(world.Barrier(0))
	value(theirs.Get(799))
	must(theirs.Free())
	for range 20 { // there is room for one
		must(value(shared.Alloc[int64](world, 40000)).Free())
	}
	must(world.Barrier(0))
}

func hang() {
	lock := value(world.AllLockAlloc())
	if world.MyThread() == 1 {
		must(lock.Lock())
	}
	must(world.Barrier(0))
	switch world.MyThread() {
	case 0:
		fmt.Println("met")
		must(lock.Lock())
	case 1:
		time.Sleep(2 * time.Minute)
	default:
		must(world.Barrier(0))
	}
}

// say says what came of something.
func say(done string, err error) {
	fmt.Printf("thread %d %s: %v: %v\n", world.MyThread(), done, errors.Is(err, shared.ErrLost), err)
}

// untilLast returns when that thread is the last in the queue, or nobody can be.
func untilLast(lock *shared.Lock, thread int) {
	for {
		if last, err := lock.Waiting(); err != nil || last == thread {
			return
		}
		runtime.Gosched()
	}
}

func die(how string) {
	me, holder := world.MyThread(), 0
	lock := value(world.AllLockAlloc())
	if how == "holds" || how == "kill" {
		holder = 1
	}
	if me == holder {
		must(lock.Lock())
	}
	must(world.Barrier(0))
	if me == 1 {
		switch how {
		case "kill":
			must(unix.Kill(unix.Getpid(), unix.SIGKILL))
		case "waits":
			time.AfterFunc(time.Second, func() { unix.Kill(unix.Getpid(), unix.SIGKILL) })
			say("locks", lock.Lock())
		}
		unix.Exit(0)
	}
	switch {
	case how != "waits":
		say("locks", lock.Lock())
	case me == 0:
		untilLast(lock, 2)
		say("unlocks", lock.Unlock())
	default:
		untilLast(lock, 1)
		say("locks", lock.Lock())
	}
	for {
		taken, err := lock.Attempt()
		if taken || err != nil {
			say("tries again", err)
			break
		}
	}
	say("locks again", lock.Lock())
	say("unlocks again", lock.Unlock())
	say("frees", lock.Free())
	say("is done", nil)
	select {}
}
