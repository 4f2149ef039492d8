// Package level says when the resources of ranks have changed so much that work
// should be divided anew. It compares what was seen of them before and after,
// and looks at nothing itself.
package level

import (
	"fmt"
	"math"

	"github.com/pkg/errors"
)

// Seen says which inputs of a Snapshot could be read. Not all can be without
// privileges, or on every kernel.
type Seen uint8

const (
	Cores  Seen = 1 << iota // the affinity mask
	Quota                   // the CPU limit of the control group
	Others                  // the load of others on the rank's cores
	Nice                    // the rank's priority
)

// Snapshot is what one rank has to compute with, at some time.
type Snapshot struct {
	Seen Seen
	// Cores is how many cores the affinity mask holds.
	Cores int
	// Quota is how many cores' time the control group allows; +Inf: no limit.
	Quota float64
	// Others is how many threads of other jobs want to run on these cores, on
	// average.
	Others float64
	// Nice is from -20 (the most important) to 19.
	Nice int
}

// Capacity is how many cores' time the rank can expect: on each of its cores
// the kernel divides time by weight, which is 1.25 times as much for each step of
// niceness; and the quota is a limit. What was not seen does not count.
func (s Snapshot) Capacity() float64 {
	cores, weight, others := 1.0, 1.0, 0.0
	if s.Seen&Cores != 0 {
		cores = float64(s.Cores)
	}
	if s.Seen&Nice != 0 {
		weight = weightOf(s.Nice)
	}
	if s.Seen&Others != 0 {
		others = s.Others
	}
	capacity := cores * (weight / (weight + others/cores))
	if s.Seen&Quota != 0 {
		capacity = min(capacity, s.Quota)
	}
	return capacity
}

// weightOf is 1.25^-nice, by multiplication so that all ranks get the same.
func weightOf(nice int) float64 {
	weight := 1.0
	for ; nice > 0; nice-- {
		weight /= 1.25
	}
	for ; nice < 0; nice++ {
		weight *= 1.25
	}
	return weight
}

// Check returns an error unless what was seen can be true.
func (s Snapshot) Check() error {
	switch {
	case s.Seen&Cores != 0 && s.Cores < 1:
		return errors.Errorf("%d cores in the affinity mask: at least one is needed", s.Cores)
	case s.Seen&Quota != 0 && !(s.Quota > 0):
		return errors.Errorf("a quota of %v cores: it must be above 0, or +Inf for none", s.Quota)
	case s.Seen&Others != 0 && !(s.Others >= 0 && s.Others <= math.MaxFloat32):
		return errors.Errorf("%v threads of others: a number, not negative, is needed", s.Others)
	case s.Seen&Nice != 0 && (s.Nice < -20 || s.Nice > 19):
		return errors.Errorf("a niceness of %d: it is from -20 to 19", s.Nice)
	}
	return nil
}

// Verdict says whether to divide anew, and on what it rests.
type Verdict struct {
	Resplit bool
	// Factors are by how much the rate of each rank is expected to have changed:
	// its measured rate before, times this, is what to divide by.
	Factors []float64
	// Rank is the one whose resources changed most, and Reason says how, in one
	// sentence; empty if nothing changed.
	Rank   int
	Reason string
}

// Compare says what changed between two looks at the ranks. To divide anew pays
// if the resources of a rank changed by more than the threshold (0.1: by a tenth)
// in relation to those of the others: if all lose the same, their shares stay
// right. Inputs that were not seen both times are left out.
func Compare(before, after []Snapshot, threshold float64) (Verdict, error) {
	if len(before) != len(after) || len(after) == 0 {
		return Verdict{}, errors.Errorf("%d ranks before and %d after: the same ranks are needed, at least one", len(before), len(after))
	}
	if !(threshold > 0) {
		return Verdict{}, errors.Errorf("a threshold of %v: it must be above 0", threshold)
	}
	v := Verdict{Factors: make([]float64, len(after))}
	smallest, largest := 0, 0
	for r := range after {
		for _, s := range []Snapshot{before[r], after[r]} {
			if err := s.Check(); err != nil {
				return Verdict{}, errors.WithMessagef(err, "rank %d", r)
			}
		}
		b, a := common(before[r], after[r])
		v.Factors[r] = a.Capacity() / b.Capacity()
		if v.Factors[r] < v.Factors[smallest] {
			smallest = r
		}
		if v.Factors[r] > v.Factors[largest] {
			largest = r
		}
	}
	v.Resplit = v.Factors[largest] > float64(v.Factors[smallest]*(1+threshold))
	v.Rank = largest
	if 1/v.Factors[smallest] > v.Factors[largest] {
		v.Rank = smallest
	}
	v.Reason = describe(v.Rank, before[v.Rank], after[v.Rank])
	return v, nil
}

// common leaves of two snapshots what was seen in both.
func common(before, after Snapshot) (b, a Snapshot) {
	seen := before.Seen & after.Seen
	before.Seen, after.Seen = seen, seen
	return before, after
}

// describe names the first input that changed.
func describe(rank int, before, after Snapshot) string {
	b, a := common(before, after)
	switch seen := a.Seen; {
	case seen&Cores != 0 && b.Cores != a.Cores:
		return fmt.Sprintf("rank %d has %d cores instead of %d", rank, a.Cores, b.Cores)
	case seen&Quota != 0 && b.Quota != a.Quota:
		return fmt.Sprintf("the control group of rank %d allows %s instead of %s", rank, allowed(a.Quota), allowed(b.Quota))
	case seen&Nice != 0 && b.Nice != a.Nice:
		return fmt.Sprintf("rank %d has the niceness %d instead of %d", rank, a.Nice, b.Nice)
	case seen&Others != 0 && b.Others != a.Others:
		return fmt.Sprintf("rank %d shares its cores with %.2g threads of others instead of %.2g", rank, a.Others, b.Others)
	}
	return ""
}

func allowed(quota float64) string {
	if math.IsInf(quota, 1) {
		return "all cores"
	}
	return fmt.Sprintf("%.3g cores", quota)
}
