package caller_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"

	"evenkeel/mpi/caller"
)

// line is the line of a program's place.
func line(pc uintptr) (string, int) {
	f := runtime.FuncForPC(pc - 1)
	_, at := f.FileLine(pc - 1)
	return f.Name(), at
}

//go:noinline
func place() uintptr { return caller.Program(0) }

func TestProgramIsOutsideOfEvenkeelsPackages(t *testing.T) {
	for range 2 { // and from what is known then
		_, _, here, _ := runtime.Caller(0)
		pc := place()
		name, at := line(pc)
		assert.Equal(t, "evenkeel/mpi/caller_test.TestProgramIsOutsideOfEvenkeelsPackages", name)
		assert.Equal(t, here+1, at)

		_, _, here, _ = runtime.Caller(0)
		pc = caller.Through()
		name, at = line(pc)
		assert.Equal(t, "evenkeel/mpi/caller_test.TestProgramIsOutsideOfEvenkeelsPackages", name)
		assert.Equal(t, here+1, at, "through functions of evenkeel's")

		_, _, here, _ = runtime.Caller(0)
		pc = caller.Copied()
		name, at = line(pc)
		assert.Equal(t, "evenkeel/mpi/caller_test.TestProgramIsOutsideOfEvenkeelsPackages", name)
		assert.Equal(t, here+1, at, "through one that was copied into the program")
	}
	found := make(chan uintptr)
	for _, spawn := range []func(chan uintptr){caller.Spawn, caller.SpawnInGroup} {
		spawn(found)
		pc := <-found
		name, _ := line(pc)
		assert.Equal(t, "evenkeel/mpi/caller.send", name, "no program called it")
		assert.False(t, caller.InProgram(pc))
	}
	assert.True(t, caller.InProgram(place()))
}

var sink uintptr

func BenchmarkProgram(b *testing.B) {
	for b.Loop() {
		sink = place()
	}
}

func BenchmarkProgramThroughOurs(b *testing.B) {
	for b.Loop() {
		sink = caller.Through()
	}
}
