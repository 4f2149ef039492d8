// Package arrivals sums up when the tasks of a job came to a synchronisation call, in
// a sketch of fixed size: what a reduction carries where there are too many tasks for
// everyone to hear of each.
//
// The first and the last task, with their times, and the number of tasks are exact.
// For everything between there is a random sample of tasks: those whose numbers have
// the smallest hashes (bottom-k sampling). So two sketches can be merged in any order
// and always give the same, and a sketch of up to Sample tasks has them all.
package arrivals

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/pkg/errors"

	"evenkeel/runtime/fabric"
	"evenkeel/runtime/history"
)

// Sample is how many tasks a sketch has the times of.
const Sample = 64

// Arrival is when a task came, in ns of the job's clock.
type Arrival struct {
	Task fabric.Task
	Time int64
}

// Sketch is of the arrivals of some tasks, each once. The zero Sketch is of none.
type Sketch struct {
	Count       uint64
	First, Last Arrival
	Sample      []Arrival // by the hashes of the tasks
}

// Of is the sketch of one arrival.
func Of(a Arrival) Sketch { return Sketch{Count: 1, First: a, Last: a, Sample: []Arrival{a}} }

func byTime(a, b Arrival) int {
	return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.Task, b.Task))
}

func byHash(a, b Arrival) int {
	return cmp.Or(cmp.Compare(hash(a.Task), hash(b.Task)), cmp.Compare(a.Task, b.Task))
}

func hash(t fabric.Task) uint64 { return history.Mix(uint64(t) + 1) }

// Merge is the sketch of the tasks of both.
func Merge(a, b Sketch) Sketch {
	switch {
	case a.Count == 0:
		return b
	case b.Count == 0:
		return a
	}
	m := Sketch{Count: a.Count + b.Count, First: a.First, Last: a.Last}
	if byTime(b.First, m.First) < 0 {
		m.First = b.First
	}
	if byTime(b.Last, m.Last) > 0 {
		m.Last = b.Last
	}
	m.Sample = slices.Concat(a.Sample, b.Sample)
	slices.SortFunc(m.Sample, byHash)
	m.Sample = m.Sample[:min(len(m.Sample), Sample)]
	return m
}

// Quantile is the time by which a part p of the tasks had come, estimated from the
// sample: with a standard error of sqrt(p(1-p)/Sample) of the tasks. 0 and 1 are
// exact. It needs at least one arrival.
func (s Sketch) Quantile(p float64) (int64, error) {
	switch {
	case s.Count == 0:
		return 0, errors.New("the quantile of no arrivals")
	case p < 0 || p > 1:
		return 0, errors.Errorf("%g is no part of the tasks", p)
	case p == 0:
		return s.First.Time, nil
	case p == 1:
		return s.Last.Time, nil
	}
	times := slices.SortedFunc(slices.Values(s.Sample), byTime)
	return times[min(len(times)-1, int(p*float64(len(times))))].Time, nil
}

// Append encodes a sketch: numbers of 8 bytes, times, and of 4, tasks.
func (s Sketch) Append(to []byte) []byte {
	to = binary.LittleEndian.AppendUint64(to, s.Count)
	for _, a := range append([]Arrival{s.First, s.Last}, s.Sample...) {
		to = binary.LittleEndian.AppendUint32(to, uint32(a.Task))
		to = binary.LittleEndian.AppendUint64(to, uint64(a.Time))
	}
	return to
}

// arrivalBytes is what an arrival takes, encoded, MaxBytes a sketch at most.
const (
	arrivalBytes = 12
	MaxBytes     = 8 + (2+Sample)*arrivalBytes
)

// Decode reads what Append wrote.
func Decode(data []byte) (Sketch, error) {
	rest := len(data) - 8
	n := rest/arrivalBytes - 2
	if rest < 0 || rest%arrivalBytes != 0 || n < 0 || n > Sample {
		return Sketch{}, errors.Errorf("%d bytes are no sketch of arrivals", len(data))
	}
	s := Sketch{Count: binary.LittleEndian.Uint64(data)}
	if uint64(n) != min(s.Count, Sample) {
		return Sketch{}, errors.Errorf("a sketch of %d arrivals with %d in its sample", s.Count, n)
	}
	arrival := func(i int) Arrival {
		at := data[8+i*arrivalBytes:]
		return Arrival{fabric.Task(binary.LittleEndian.Uint32(at)), int64(binary.LittleEndian.Uint64(at[4:]))}
	}
	s.First, s.Last = arrival(0), arrival(1)
	for i := range n {
		s.Sample = append(s.Sample, arrival(2+i))
	}
	return s, nil
}

// Combine merges two encoded sketches: what a reduction (relay.Combine) of them does.
// What is none counts as one of no tasks.
func Combine(before, after []byte) []byte {
	a, err := Decode(before)
	if err != nil {
		return after
	}
	b, err := Decode(after)
	if err != nil {
		return before
	}
	return Merge(a, b).Append(nil)
}
