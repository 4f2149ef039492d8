package spmd_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/pkg/errors"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/balancer/split"
	"evenkeel/balancer/spmd"
	"evenkeel/mpi"
)

type outcome struct {
	Unit int32
	Root float64
}

func outcomes(first int, results []outcome) error {
	for i := range results {
		results[i] = outcome{int32(first + i), math.Sqrt(float64(first + i))}
	}
	return nil
}

// Results come in the units' order, whatever the job was split into.
func TestJobsGiveResultsInOrder(t *testing.T) {
	for _, o := range []spmd.JobOptions{
		{},
		{Tasks: 3, Parts: 1},
		{Tasks: 2, Parts: 5, Relation: split.Linear{Slope: 2, Most: 3}},
		{Relation: split.Table{{Spread: 0, PerRank: 2}, {Spread: 1, PerRank: 4}}},
	} {
		j, err := spmd.NewJob[outcome](mpi.World, o)
		require.NoError(t, err)
		assert.Equal(t, "no job has run yet", j.Report())
		for _, work := range []int{1, 7, 1000} {
			results, err := j.Run(work, outcomes)
			require.NoError(t, err)
			alone := make([]outcome, work)
			require.NoError(t, outcomes(0, alone))
			require.Equal(t, alone, results, j.Report())
			assert.Equal(t, 1, strings.Count(j.Report(), "tasks for"), "of the last job alone: %s", j.Report())
			assert.NotContains(t, j.Report(), "no job has run yet")
			tasks, own, claimed := j.Counts()
			assert.Positive(t, tasks)
			sum := []int{own + claimed}
			require.NoError(t, mpi.AllreduceInPlace(mpi.World, sum, mpi.Sum))
			assert.GreaterOrEqual(t, sum[0], min(work, tasks))
		}
		require.NoError(t, j.Free())
	}
}

// The program's function is shown parts of equal size, and its own are what is run.
func TestJobsAreCutByTheProgram(t *testing.T) {
	const parts, work = 3, 100
	units, tasks := 0, 0
	j, err := spmd.NewJob[int32](mpi.World, spmd.JobOptions{Tasks: 1, Parts: parts, Cut: func(first, end int, ends []int) error {
		require.Len(t, ends, parts)
		assert.Equal(t, end, ends[parts-1])
		for i, from := 0, first; i < parts; i++ {
			assert.InDelta(t, float64(end-first)/parts, ends[i]-from, 1)
			from = ends[i]
		}
		units, tasks = units+end-first, tasks+1
		ends[0], ends[1] = first+1, first+1 // a unit, none, and the rest
		return nil
	}})
	require.NoError(t, err)
	lengths, err := j.Run(work, func(first int, results []int32) error {
		if len(results) == 0 {
			return errors.Errorf("a part of no units at %d", first)
		}
		for i := range results {
			results[i] = int32(len(results))
		}
		return nil
	})
	require.NoError(t, err)
	assert.Equal(t, work, units)
	single := 0
	for _, length := range lengths {
		if length == 1 {
			single++
		}
	}
	assert.Equal(t, tasks, single)
	require.NoError(t, j.Free())
}

// Claims go by the parts' numbers, so ranks that cut otherwise would leave units out.
func TestRanksMustCutAlike(t *testing.T) {
	otherwise, fails := false, false
	j, err := spmd.NewJob[outcome](mpi.World, spmd.JobOptions{Cut: func(first, _ int, ends []int) error {
		if otherwise && mpi.World.Rank() == mpi.World.Size()-1 {
			ends[0] = first
		}
		if fails && mpi.World.Rank() == mpi.World.Size()-1 {
			return errors.New("it was to fail")
		}
		return nil
	}})
	require.NoError(t, err)
	otherwise = true
	_, err = j.Run(1000, outcomes)
	if mpi.World.Size() > 1 {
		require.ErrorIs(t, err, spmd.ErrRefused)
		assert.ErrorContains(t, err, fmt.Sprintf("the program's function cuts tasks otherwise on rank %d than on rank 0", mpi.World.Size()-1))
	} else {
		require.NoError(t, err)
	}
	otherwise, fails = false, true
	_, err = j.Run(1000, outcomes)
	require.ErrorIs(t, err, spmd.ErrHook)
	fails = false
	_, err = j.Run(1000, outcomes)
	require.NoError(t, err)
	require.NoError(t, j.Free())
	_, err = spmd.NewJob[outcome](mpi.World, spmd.JobOptions{Parts: -1, Cut: func(int, int, []int) error { return nil }})
	require.ErrorIs(t, err, spmd.ErrRefused)
}

// Ranks that are ready claim parts of a rank that is slow.
func TestReadyRanksHelpOthers(t *testing.T) {
	j, err := spmd.NewJob[int32](mpi.World, spmd.JobOptions{Tasks: 1})
	require.NoError(t, err)
	_, err = j.Run(8*mpi.World.Size(), func(int, []int32) error {
		if mpi.World.Rank() == 0 {
			time.Sleep(20 * time.Millisecond)
		}
		return nil
	})
	require.NoError(t, err)
	_, _, claimed := j.Counts()
	sum := []int{claimed}
	require.NoError(t, mpi.AllreduceInPlace(mpi.World, sum, mpi.Sum))
	if mpi.World.Size() > 1 {
		assert.Positive(t, sum[0], j.Report())
	}
	require.NoError(t, j.Free())
}

func TestFailedJobsAreErrorsOnAllRanks(t *testing.T) {
	j, err := spmd.NewJob[int32](mpi.World, spmd.JobOptions{})
	require.NoError(t, err)
	_, err = j.Run(100, func(first int, _ []int32) error {
		if first == 0 {
			return errors.New("unit 0 was to fail")
		}
		return nil
	})
	require.ErrorIs(t, err, spmd.ErrHook)
	_, err = j.Run(-1, func(int, []int32) error { return nil })
	require.ErrorIs(t, err, spmd.ErrRefused)
	work := 10
	if mpi.World.Rank() == 0 && mpi.World.Size() > 1 {
		work = 11
	}
	if _, err = j.Run(work, func(int, []int32) error { return nil }); mpi.World.Size() > 1 {
		require.ErrorIs(t, err, spmd.ErrRefused)
	}
	_, err = spmd.NewJob[[]int](mpi.World, spmd.JobOptions{})
	require.ErrorIs(t, err, spmd.ErrRefused)
	_, err = spmd.NewJob[int](mpi.World, spmd.JobOptions{Tasks: -1})
	require.ErrorIs(t, err, spmd.ErrRefused)
	var relation split.Relation
	if last := mpi.World.Size() - 1; mpi.World.Rank() == last {
		relation = &split.Linear{}
	}
	_, err = spmd.NewJob[int](mpi.World, spmd.JobOptions{Relation: relation})
	require.ErrorIs(t, err, spmd.ErrRefused)
	require.ErrorContains(t, err, "a relation of type *split.Linear: give a split.Linear or split.Table")
	require.NoError(t, j.Free())
}
