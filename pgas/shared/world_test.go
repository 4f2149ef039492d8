package shared_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"evenkeel/mpi"
	"evenkeel/pgas/shared"
)

// All threads are told of what differs at the start, and can start again.
func TestUnequalHeaps(t *testing.T) {
	_, err := shared.Start(mpi.World, shared.Options{Heap: 100})
	assert.ErrorContains(t, err, "a shared heap of 100 bytes for each thread")
	if mpi.World.Size() > 1 {
		_, err = shared.Start(mpi.World, shared.Options{Heap: (1 + mpi.World.Rank()) << 20})
		assert.ErrorContains(t, err, "a shared heap must be as large on all threads; they ask for 1048576 to")
	}
}
