// Command ring passes a token once around all ranks; each adds its number to it.
//
//	go build -o ring ./examples/go/ring && mpirun -np 4 ./ring
package main

import (
	"fmt"
	"log"

	"github.com/pkg/errors"

	"evenkeel/mpi"
)

const tag = 1

func main() {
	if err := run(); err != nil {
		log.Fatal(err) // mpirun then ends the other ranks
	}
}

func run() error {
	if err := mpi.Init(); err != nil {
		return err
	}
	world := mpi.World
	rank, size := world.Rank(), world.Size()
	next, previous := (rank+1)%size, (rank+size-1)%size

	token := []int64{0}
	if rank == 0 {
		began := mpi.Wtime()
		// Nonblocking, since a ring of one rank sends to itself.
		sent, err := mpi.Isend(world, token, next, tag)
		if err != nil {
			return errors.Wrap(err, "sending the token off")
		}
		back := []int64{0}
		if _, err := mpi.Recv(world, back, previous, tag); err != nil {
			return errors.Wrap(err, "getting the token back")
		}
		if _, err := sent.Wait(); err != nil {
			return errors.Wrap(err, "sending the token off")
		}
		fmt.Printf("the token came back from %d ranks as %d, after %.1f µs\n",
			size, back[0], (mpi.Wtime()-began)*1e6)
	} else {
		if _, err := mpi.Recv(world, token, previous, tag); err != nil {
			return errors.Wrap(err, "getting the token")
		}
		token[0] += int64(rank)
		if err := mpi.Send(world, token, next, tag); err != nil {
			return errors.Wrap(err, "passing the token on")
		}
	}
	return mpi.Finalize()
}
