package caller

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
)

//go:noinline
func outer() [2][3]uintptr { return middle() }

//go:noinline
func middle() [2][3]uintptr { return inner[int]() }

// inner is generic, as the functions of package mpi are.
//
//go:noinline
func inner[T any]() [2][3]uintptr {
	var want [3]uintptr
	runtime.Callers(2, want[:])
	return [2][3]uintptr{want, {At(0), At(1), At(2)}}
}

func TestAtFindsWhatTheRuntimeFinds(t *testing.T) {
	found := outer()
	assert.Equal(t, found[0], found[1])
	assert.Equal(t, "evenkeel/mpi/caller.middle", runtime.FuncForPC(found[1][0]).Name())
	assert.Equal(t, "evenkeel/mpi/caller.outer", runtime.FuncForPC(found[1][1]).Name())

	// Goroutines begin on small stacks, which grow and so are moved.
	done := make(chan [2][3]uintptr)
	go func() { done <- deep(1000) }()
	found = <-done
	assert.Equal(t, found[0], found[1])
}

func deep(n int) [2][3]uintptr {
	if n == 0 {
		return outer()
	}
	return deep(n - 1)
}

var sink uintptr

func BenchmarkAt(b *testing.B) {
	for b.Loop() {
		sink = At(1)
	}
}

func BenchmarkCallers(b *testing.B) {
	for b.Loop() {
		var pcs [1]uintptr
		runtime.Callers(3, pcs[:])
		sink = pcs[0]
	}
}
