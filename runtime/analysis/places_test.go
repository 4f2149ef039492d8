package analysis

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"evenkeel/runtime/profile"
)

func TestCallsOfOneLineAreOne(t *testing.T) {
	site := func(call, offset string, line int, mpi float64) profile.CallSite {
		return profile.CallSite{Call: call, Module: "app", Offset: offset, Function: "f", File: "a.c", Line: line,
			Calls: 10, Timed: 5, Bytes: 100, Longest: mpi, Split: profile.Split{MPI: mpi, Late: mpi, Error: 3 * mpi, LateError: 3 * mpi}}
	}
	elsewhere := site("MPI_Send", "50", 7, 0.1)
	elsewhere.Module = "lib.so"
	joined := JoinLines([]profile.CallSite{
		site("MPI_Wait", "10", 8, 5),
		site("MPI_Send", "20", 7, 4), // with the other one more than MPI_Wait
		site("MPI_Send", "30", 7, 3),
		site("MPI_Recv", "40", 7, 0.2),
		elsewhere,
		site("MPI_Send", "60", 0, 0.04), // who knows whether these are one
		site("MPI_Send", "70", 0, 0.03),
	})

	var offsets []string
	for _, s := range joined {
		offsets = append(offsets, s.Offset)
	}
	assert.Equal(t, []string{"20", "10", "40", "50", "60", "70"}, offsets)
	assert.Equal(t, profile.CallSite{Call: "MPI_Send", Module: "app", Offset: "20", Function: "f", File: "a.c", Line: 7,
		Calls: 20, Timed: 10, Bytes: 200, Longest: 4, Split: profile.Split{MPI: 7, Late: 7, Error: 15, LateError: 15}}, joined[0])
}
