// Command collect is a program in Go under mpirun whose rank 0 makes garbage while it
// computes and then waits for rank 1. It prints how many collections began in
// rank 0's computation and how many in its waits, how large its heap was at most, and
// what was left when all was reachable no more.
//
//	mpirun -np 2 collect idle|plain|limit
//
// plain: collection is Go's own. idle: it is moved into the waits. limit: nobody waits,
// and the heap is to stay below 64 MiB all the same.
package main

import (
	"fmt"
	"log"
	"os"
	"runtime"
	"time"

	"evenkeel/idle"
	"evenkeel/mpi"
)

const (
	cycles  = 12
	garbage = 24 << 20 // bytes in each computation
	late    = 60 * time.Millisecond
)

var kept [][]byte

// compute makes garbage in small pieces and keeps a little of it.
func compute() {
	for i := range garbage / 4096 {
		piece := make([]byte, 4096)
		piece[0] = byte(i)
		if i%64 == 0 {
			kept = append(kept, piece)
		}
	}
	kept = kept[:0]
}

func main() {
	if err := run(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(how string) error {
	if err := mpi.Init(); err != nil {
		return err
	}
	limit := int64(1 << 30)
	if how == "limit" {
		limit = 64 << 20
	}
	rank := mpi.World.Rank()
	if rank == 0 && how != "plain" {
		if err := idle.Collect(limit); err != nil {
			fmt.Println(err)
		}
	}
	var before, computed, waited runtime.MemStats
	var computing, waiting uint32
	var largest uint64
	token := []int32{0}
	for range cycles {
		if rank == 1 {
			if _, err := mpi.Recv(mpi.World, token, 0, 1); err != nil {
				return err
			}
			if how != "limit" {
				time.Sleep(late)
			}
			if err := mpi.Send(mpi.World, token, 0, 1); err != nil {
				return err
			}
			continue
		}
		runtime.ReadMemStats(&before)
		compute()
		runtime.ReadMemStats(&computed)
		if err := mpi.Send(mpi.World, token, 1, 1); err != nil {
			return err
		}
		if _, err := mpi.Recv(mpi.World, token, 1, 1); err != nil {
			return err
		}
		runtime.ReadMemStats(&waited)
		computing += computed.NumGC - before.NumGC
		waiting += waited.NumGC - computed.NumGC
		largest = max(largest, computed.HeapAlloc)
	}
	if rank == 0 {
		idle.Stop()
		fmt.Printf("computing %d\nwaiting %d\nlargest %d\n", computing, waiting, largest>>20)
	}
	return mpi.Finalize()
}
