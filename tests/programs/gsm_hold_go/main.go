// Command gsm_hold_go is gsm_hold.c once more, in Go: it gives a few commands through windows of global shared memory, and
// holds all that until it is killed.
//
//	mpirun -np N gsm_hold_go BYTES [WINDOWS]
package main

import (
	"fmt"
	"log"
	"os"
	"strconv"

	"github.com/pkg/errors"

	"evenkeel/mpi"
	"evenkeel/pgas/gsm"
	_ "evenkeel/runtime/attach"
)

func main() {
	log.SetFlags(0)
	if err := run(argument(1, 4096), argument(2, 1)); err != nil {
		log.Fatal(err)
	}
	select {}
}

func argument(i int, otherwise uint64) uint64 {
	if len(os.Args) <= i {
		return otherwise
	}
	n, err := strconv.ParseUint(os.Args[i], 10, 64)
	if err != nil {
		log.Fatal(err)
	}
	return n
}

func run(bytes, windows uint64) error {
	if err := mpi.Init(); err != nil {
		return err
	}
	job, err := gsm.Join(mpi.World, gsm.Options{})
	if err != nil {
		return err
	}
	block, err := job.Allocate(bytes)
	if err != nil {
		return err
	}
	for range windows {
		w, err := job.Open(block, gsm.AllowAll)
		if err != nil {
			return err
		}
		if err := use(w, bytes); err != nil {
			return err
		}
	}
	if err := mpi.World.Barrier(); err != nil {
		return err
	}
	if mpi.World.Rank() == 0 {
		fmt.Println("held")
	}
	return nil
}

func use(w *gsm.Window, bytes uint64) error {
	for range mpi.World.Rank() + 1 {
		if err := w.Put(w.Address(0), []byte("sixteen bytes...")); err != nil {
			return err
		}
		if _, err := w.Get64(w.Address(0)); err != nil {
			return err
		}
		if err := w.Add32(w.Address(8), 1); err != nil {
			return err
		}
		if err := w.Put64(w.Address(bytes), 1); !errors.Is(err, gsm.ErrRange) {
			return errors.Errorf("a PUT beyond the window: %v", err)
		}
	}
	return w.Fence()
}
