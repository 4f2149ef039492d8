// Command go_sites calls MPI from Go in every way that package mpi has of reaching it. A
// comment beside each call names what is called: the test compares them with the report.
package main

import (
	"log"

	"evenkeel/mpi"
)

func main() {
	if err := mpi.Init(); err != nil {
		log.Fatal(err)
	}
	messages()
	collectives()
	communicators()
	windows()
	if err := mpi.Finalize(); err != nil {
		log.Fatal(err)
	}
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

func messages() {
	rank, size := mpi.World.Rank(), mpi.World.Size()
	left, right := (rank+size-1)%size, (rank+1)%size
	out, in := []float64{1, 2}, make([]float64, 2)

	value(mpi.Sendrecv(mpi.World, out, right, 0, in, left, 0)) // MPI_Sendrecv
	for range 3 {
		receive := value(mpi.Irecv(mpi.World, in, left, 1)) // MPI_Irecv
		must(mpi.Send(mpi.World, out, right, 1))            // MPI_Send
		value(receive.Wait())                               // MPI_Wait
	}
	send := value(mpi.Isend(mpi.World, []int32{7}, right, 2)) // MPI_Isend
	value(mpi.World.Probe(left, 2))                           // MPI_Probe
	value(mpi.Recv(mpi.World, make([]int32, 1), left, 2))     // MPI_Recv
	value(mpi.WaitAll(send))                                  // MPI_Wait
	send = value(mpi.Isend(mpi.World, []byte{7}, right, 3))   // MPI_Isend
	message, _, err := mpi.World.Mprobe(left, 3)              // MPI_Mprobe
	must(err)
	value(mpi.Mrecv(message, make([]byte, 1))) // MPI_Mrecv
	_, _, err = mpi.WaitAny(send)              // MPI_Waitany
	must(err)
}

func collectives() {
	sum := []int{mpi.World.Rank()}
	must(mpi.World.Barrier())                                             // MPI_Barrier
	must(mpi.AllreduceInPlace(mpi.World, sum, mpi.Sum))                   // MPI_Allreduce
	func() { must(mpi.Bcast(mpi.World, sum, 0)) }()                       // MPI_Bcast
	must(mpi.Allgather(mpi.World, sum, make([]int, mpi.World.Size())))    // MPI_Allgather
	value(value(mpi.IallreduceInPlace(mpi.World, sum, mpi.Max)).Wait())   // MPI_Iallreduce MPI_Wait
	done := make(chan error)                                              // another thread
	go func() { done <- mpi.ReduceInPlace(mpi.World, sum, mpi.Sum, 0) }() // MPI_Reduce
	must(<-done)
}

func communicators() {
	half := value(mpi.World.Split(mpi.World.Rank()%2, 0))                      // MPI_Comm_split
	must(half.Free())                                                          // MPI_Comm_free
	grid := value(mpi.World.Cart([]int{mpi.World.Size()}, []bool{true}, true)) // MPI_Cart_create
	line := value(grid.Sub([]bool{true}))                                      // MPI_Cart_sub
	must(line.Barrier())                                                       // MPI_Barrier
}

func windows() {
	w := value(mpi.WinAllocateShared[int64](mpi.World, 4)) // MPI_Win_allocate_shared MPI_Allgather MPI_Barrier
	must(w.Fence(0))                                       // MPI_Win_fence
	must(w.Put([]int64{1}, 0, mpi.World.Rank()))           // MPI_Put
	must(w.Fence(0))                                       // MPI_Win_fence
	must(w.Free())                                         // MPI_Win_free
}
