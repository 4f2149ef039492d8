package main

import (
	"slices"

	"github.com/pkg/errors"

	"evenkeel/mpi"
	"evenkeel/pgas/shared"
)

const samples = 64 // of each rank

// sorter sorts keys that lie on all ranks: each gets those of its range.
type sorter struct {
	j      *job
	own    []uint64
	room   int        // for the keys that a rank gets
	counts [][]uint64 // from, to

	received [ways][]uint64

	// What a thread tells, what all have told, and what each receives.
	told, heard [2]*shared.Array[uint64]
	keys        *shared.Array[uint64]
}

// What the ranks tell each other.
const (
	aboutSamples = iota
	aboutCounts
)

func newSorter(j *job, keys int) (s *sorter, err error) {
	s = &sorter{j: j, own: make([]uint64, keys/j.ranks), room: 2*keys/j.ranks + samples}
	for about, n := range []int{samples, j.ranks} {
		if s.told[about], err = shared.AllAlloc[uint64](j.world, n, n*j.ranks); err != nil {
			return nil, err
		}
		if s.heard[about], err = shared.AllAlloc[uint64](j.world, n*j.ranks, n*j.ranks*j.ranks); err != nil {
			return nil, err
		}
	}
	if s.keys, err = shared.AllAlloc[uint64](j.world, s.room, s.room*j.ranks); err != nil {
		return nil, err
	}
	s.received = [ways][]uint64{s.keys.Local(), make([]uint64, s.room)}
	return s, nil
}

func (s *sorter) free() error {
	for _, a := range []*shared.Array[uint64]{s.told[0], s.told[1], s.heard[0], s.heard[1], s.keys} {
		if err := a.AllFree(); err != nil {
			return err
		}
	}
	return nil
}

// tell gives all ranks the words of each, one rank's after the other's.
func (s *sorter) tell(way, about int, words []uint64) (all []uint64, err error) {
	if way == mpis {
		all = make([]uint64, len(words)*s.j.ranks)
		return all, mpi.Allgather(mpi.World, words, all)
	}
	copy(s.told[about].Local(), words)
	if err := shared.GatherAll(s.heard[about], 0, s.told[about], 0, len(words), shared.Syncs{}); err != nil {
		return nil, err
	}
	return s.heard[about].Local(), nil
}

// offset is where what a rank sends lies at the one that receives it; that of one more than there are is how much it gets.
func (s *sorter) offset(from, to int) (offset int) {
	for _, counts := range s.counts[:from] {
		offset += int(counts[to])
	}
	return offset
}

// result is what the rank has received.
func (s *sorter) result(way int) []uint64 {
	return s.received[way][:s.offset(s.j.ranks, s.j.rank)]
}

func (s *sorter) run(way int) error {
	slices.Sort(s.own)
	picked := make([]uint64, samples)
	for i := range picked {
		picked[i] = s.own[i*len(s.own)/samples]
	}
	all, err := s.tell(way, aboutSamples, picked)
	if err != nil {
		return err
	}
	slices.Sort(all)
	if all, err = s.tell(way, aboutCounts, s.split(all)); err != nil {
		return err
	}
	s.counts = slices.Collect(slices.Chunk(all, s.j.ranks))
	for to := range s.j.ranks {
		if n := s.offset(s.j.ranks, to); n > s.room {
			return errors.Errorf("rank %d would get %d keys, and has room for %d", to, n, s.room)
		}
	}
	if way == mpis {
		err = s.sendMessages()
	} else {
		err = s.send()
	}
	if err != nil {
		return err
	}
	slices.Sort(s.result(way))
	return nil
}

// split tells how many of the rank's sorted keys each rank gets.
func (s *sorter) split(all []uint64) []uint64 {
	counts := make([]uint64, s.j.ranks)
	to := 0
	for _, key := range s.own {
		for to < s.j.ranks-1 && key >= all[samples*(to+1)] {
			to++
		}
		counts[to]++
	}
	return counts
}

// send writes each thread's part into its memory.
func (s *sorter) send() error {
	rest := s.own
	for to, count := range s.counts[s.j.rank] {
		if err := s.keys.Memput(to*s.room+s.offset(s.j.rank, to), rest[:count]); err != nil {
			return err
		}
		rest = rest[count:]
	}
	return s.j.world.Barrier(0)
}

func (s *sorter) sendMessages() error {
	sent, got := make([]int, s.j.ranks), make([]int, s.j.ranks)
	for other := range s.counts {
		sent[other], got[other] = int(s.counts[s.j.rank][other]), int(s.counts[other][s.j.rank])
	}
	return mpi.Alltoallv(mpi.World, s.own, sent, nil, s.received[mpis], got, nil)
}

// sampleSort sorts random keys.
func sampleSort(j *job) (*app, error) {
	keys := 1 << (18 - j.shrink)
	s, err := newSorter(j, keys)
	if err != nil {
		return nil, err
	}
	random := func(into []uint64, begin int) {
		for i := range into {
			into[i] = mix(1<<40 + uint64(begin+i))
		}
	}
	right := make([]uint64, keys)
	random(right, 0)
	slices.Sort(right)
	first, _ := j.part(keys)
	return &app{
		name: "sort", units: keys,
		prepare: func(way int) {
			random(s.own, first)
			clear(s.received[way])
		},
		run:   s.run,
		fence: func(int) error { return j.world.Barrier(0) },
		check: func(way int) (sum uint64, err error) {
			begin := 0
			for before := range j.rank {
				begin += s.offset(j.ranks, before)
			}
			result := s.result(way)
			if !slices.Equal(result, right[begin:begin+len(result)]) {
				return 0, errWrong
			}
			for i, key := range result {
				sum += key * mix(uint64(begin+i))
			}
			return sum, nil
		},
		free: s.free,
	}, nil
}
