// Command spmd is a program in Go under mpirun: its ranks compute for unequal
// times and meet in barriers. Built with the tag `attach` it brings evenkeel's
// runtime along. Rank 0 prints how many times a Go runtime is in its process.
package main

import (
	"fmt"
	"log"
	"os"
	"regexp"
	"time"

	"evenkeel/mpi"
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	if err := mpi.Init(); err != nil {
		return err
	}
	world, rank := mpi.World, mpi.World.Rank()
	for range 50 {
		for end := time.Now().Add(time.Duration(rank+1) * time.Millisecond); time.Now().Before(end); {
		}
		if err := world.Barrier(); err != nil {
			return err
		}
	}
	if rank == 0 {
		maps, err := os.ReadFile("/proc/self/maps")
		if err != nil {
			return err
		}
		second := regexp.MustCompile(`libevenkeel-runtime`).Match(maps)
		fmt.Printf("another Go runtime: %t\n", second)
	}
	return mpi.Finalize()
}
