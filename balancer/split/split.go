// Package split divides a job of work over N ranks into N+δ tasks, where δ
// grows with the spread of the ranks' rates: fast ranks get several tasks, which
// they run concurrently, slow ranks one smaller one. It is pure and
// deterministic, as package balancer is.
package split

import (
	"container/heap"
	"math"
	"sort"

	"github.com/pkg/errors"
)

// Relation says how many tasks more than ranks (δ) a job is split into.
type Relation interface {
	// Delta is δ for so many ranks, given the spread of the times that the ranks
	// take for equal work: (slowest - fastest) / fastest.
	Delta(spread float64, ranks int) int
}

// Linear is δ = Slope × spread × ranks, at most Most × ranks.
type Linear struct{ Slope, Most float64 }

// Default lets a job over two ranks of which one is twice as fast have three
// tasks: spread 1, δ = 1. There are never more than 8 tasks for each rank.
var Default = Linear{Slope: 0.5, Most: 7}

// Delta implements Relation.
func (l Linear) Delta(spread float64, ranks int) int {
	n := float64(ranks)
	return int(math.Min(math.Round(float64(l.Slope*spread)*n), math.Floor(float64(l.Most*n))))
}

// Point is a point of a Table: from this Spread on, δ is PerRank × ranks.
type Point struct{ Spread, PerRank float64 }

// Table gives δ in steps: that of the last point whose Spread is not above the
// one measured, and 0 below the first. Its points must be in order; CheckTable
// tells.
type Table []Point

// Delta implements Relation.
func (t Table) Delta(spread float64, ranks int) int {
	i := sort.Search(len(t), func(i int) bool { return t[i].Spread > spread })
	if i == 0 {
		return 0
	}
	return int(math.Round(float64(t[i-1].PerRank * float64(ranks))))
}

// Check returns an error unless the points are numbers, not negative, and in
// the order of their spreads.
func (t Table) Check() error {
	for i, p := range t {
		if !(p.Spread >= 0 && p.PerRank >= 0) || p.PerRank > mostPerRank {
			return errors.Errorf("point %d of the table is (%v, %v): a spread from 0, and up to %d tasks more for each rank", i, p.Spread, p.PerRank, mostPerRank)
		}
		if i > 0 && p.Spread <= t[i-1].Spread {
			return errors.Errorf("point %d of the table has the spread %v, which must be above the %v before it", i, p.Spread, t[i-1].Spread)
		}
	}
	return nil
}

// mostPerRank bounds δ / ranks, whatever a relation says.
const mostPerRank = 1 << 10

// Rank is what is known of a rank.
type Rank struct {
	// Rate is the work that it does in a second; only ratios between ranks count.
	Rate float64
	// Cores is how many tasks it can run at once, at least 1.
	Cores int
}

// Task is a part of the work, [First, End), planned for Rank.
type Task struct {
	First, End int64
	Rank       int
}

// Plan is how a job is split. Tasks are in the order of the work, which they
// divide exactly; those of a rank follow each other.
type Plan struct {
	Tasks []Task
	// Begin[r] is the number of the first task of rank r; Begin[r+1] the one
	// after its last.
	Begin []int
	// Concurrent is how many of its tasks each rank runs at once.
	Concurrent []int
	// Delta is len(Tasks) - ranks; Spread what it was made from.
	Delta  int
	Spread float64
}

// New splits work items over ranks. Each rank's share of the work is as its
// rate; then whichever rank has the largest tasks is given one task more, until
// there are N+δ (Adams's method of apportionment, which makes the largest task
// as small as it can be). A rank whose share is less than an item gets no task,
// and no task is less than an item.
func New(work int64, ranks []Rank, relation Relation) (Plan, error) {
	if err := check(work, ranks); err != nil {
		return Plan{}, err
	}
	slowest, fastest := ranks[0].Rate, ranks[0].Rate
	var total float64
	for _, r := range ranks {
		slowest, fastest = min(slowest, r.Rate), max(fastest, r.Rate)
		total += r.Rate
	}
	spread := fastest/slowest - 1
	delta := relation.Delta(spread, len(ranks))
	if delta < 0 || delta > mostPerRank*len(ranks) {
		return Plan{}, errors.Errorf("the relation gives δ = %d for the spread %v of %d ranks: it must be from 0 to %d", delta, spread, len(ranks), mostPerRank*len(ranks))
	}
	shares := share(work, ranks, total)
	counts := apportion(shares, delta)
	return lay(shares, counts, ranks, spread), nil
}

func check(work int64, ranks []Rank) error {
	if work < 1 || work > 1<<53 {
		return errors.Errorf("a job of %d items: give from 1 to 2^53", work)
	}
	if len(ranks) == 0 {
		return errors.New("a job over 0 ranks: at least one is needed")
	}
	for i, r := range ranks {
		if !(r.Rate > 0) || math.IsInf(r.Rate, 0) {
			return errors.Errorf("the rate of rank %d is %v: it must be a number above 0", i, r.Rate)
		}
		if r.Cores < 1 {
			return errors.Errorf("rank %d has %d cores: at least one is needed", i, r.Cores)
		}
	}
	return nil
}

// share divides the work in proportion to the rates; each bound is rounded to
// the nearest item.
func share(work int64, ranks []Rank, total float64) []int64 {
	shares := make([]int64, len(ranks))
	var sum float64
	var before int64
	for i, r := range ranks {
		sum += r.Rate
		end := work
		if i < len(ranks)-1 {
			end = min(work, max(before, int64(math.Round(float64(float64(work)*(sum/total))))))
		}
		shares[i], before = end-before, end
	}
	return shares
}

// apportion says how many tasks each share is cut into: one, and delta more in
// all, each given to the share whose tasks are the largest then.
func apportion(shares []int64, delta int) []int {
	counts := make([]int, len(shares))
	var largest sizes
	for i, s := range shares {
		if s > 0 {
			counts[i] = 1
		}
		if s > 1 {
			largest = append(largest, size{s, 1, i})
		}
	}
	heap.Init(&largest)
	for ; delta > 0 && len(largest) > 0; delta-- {
		top := &largest[0]
		top.parts++
		counts[top.rank]++
		if int64(top.parts) == top.share {
			heap.Pop(&largest)
		} else {
			heap.Fix(&largest, 0)
		}
	}
	return counts
}

// size is a share and how many tasks it is cut into.
type size struct {
	share int64
	parts int
	rank  int
}

// sizes is a heap with the largest task on top; of equals, the lowest rank.
type sizes []size

func (s sizes) Len() int { return len(s) }
func (s sizes) Less(i, j int) bool {
	a := float64(s[i].share) / float64(s[i].parts)
	b := float64(s[j].share) / float64(s[j].parts)
	return a > b || a == b && s[i].rank < s[j].rank
}
func (s sizes) Swap(i, j int) { s[i], s[j] = s[j], s[i] }
func (s *sizes) Push(x any)   { *s = append(*s, x.(size)) }
func (s *sizes) Pop() any {
	last := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return last
}

// lay puts the tasks behind each other; those of a rank differ by at most an item.
func lay(shares []int64, counts []int, ranks []Rank, spread float64) Plan {
	p := Plan{Begin: make([]int, len(ranks)+1), Concurrent: make([]int, len(ranks)), Spread: spread}
	var at int64
	for r, count := range counts {
		first := at
		for i := range int64(count) {
			end := first + shares[r]/int64(count)*(i+1) + min(i+1, shares[r]%int64(count))
			p.Tasks = append(p.Tasks, Task{First: at, End: end, Rank: r})
			at = end
		}
		p.Begin[r+1] = len(p.Tasks)
		p.Concurrent[r] = min(count, ranks[r].Cores)
	}
	p.Delta = len(p.Tasks) - len(ranks)
	return p
}
