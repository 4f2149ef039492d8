package balancer

import (
	"iter"
	"math"
	"sort"

	"github.com/pkg/errors"
)

// Partition says which rank owns which items: rank r owns the contiguous range
// [p[r], p[r+1]). It has one bound more than there are ranks; the first is 0,
// the last the number of items, and none is below the one before. p[r+1] is the
// ending address of rank r.
type Partition []int64

// Even divides items among ranks; the sizes differ by at most one.
func Even(items int64, ranks int) (Partition, error) {
	if items < 1 {
		return nil, errors.Errorf("a partition of %d items: at least one is needed", items)
	}
	if ranks < 1 {
		return nil, errors.Errorf("a partition over %d ranks: at least one is needed", ranks)
	}
	p := make(Partition, ranks+1)
	each, rest := items/int64(ranks), items%int64(ranks)
	for r := range ranks {
		p[r+1] = p[r] + each
		if int64(r) < rest {
			p[r+1]++
		}
	}
	return p, nil
}

// Check returns an error unless p is a partition.
func (p Partition) Check() error {
	if len(p) < 2 {
		return errors.Errorf("a partition has one bound more than ranks, so at least 2, not %d", len(p))
	}
	if p[0] != 0 {
		return errors.Errorf("the first bound of a partition is 0, not %d", p[0])
	}
	for r := range p.Ranks() {
		if p[r+1] < p[r] {
			return errors.Errorf("rank %d ends at item %d, before it begins at %d", r, p[r+1], p[r])
		}
	}
	if p.Items() == 0 {
		return errors.New("a partition of 0 items: at least one is needed")
	}
	return nil
}

// Ranks is the number of ranks.
func (p Partition) Ranks() int { return len(p) - 1 }

// Items is the number of items.
func (p Partition) Items() int64 { return p[len(p)-1] }

// Size is how many items rank owns.
func (p Partition) Size(rank int) int64 { return p[rank+1] - p[rank] }

// Owner is the rank that owns item, which must be in [0, p.Items()).
func (p Partition) Owner(item int64) int {
	return sort.Search(p.Ranks(), func(r int) bool { return p[r+1] > item })
}

// Equal says whether every rank owns the same items in both.
func (p Partition) Equal(other Partition) bool {
	if len(p) != len(other) {
		return false
	}
	for i := range p {
		if p[i] != other[i] {
			return false
		}
	}
	return true
}

// Move is a range of items, [First, End), whose owner changes.
type Move struct {
	From, To   int
	First, End int64
}

// Moves yields what has to be moved from one partition to another of the same
// items over as many ranks, in the order of the items.
func Moves(from, to Partition) iter.Seq[Move] {
	return func(yield func(Move) bool) {
		giver, taker := 0, 0
		for at := int64(0); at < from.Items(); {
			for from[giver+1] <= at {
				giver++
			}
			for to[taker+1] <= at {
				taker++
			}
			end := min(from[giver+1], to[taker+1])
			if giver != taker && !yield(Move{giver, taker, at, end}) {
				return
			}
			at = end
		}
	}
}

// Sends are the moves in which rank gives items away, in their order.
func Sends(from, to Partition, rank int) []Move {
	return overlaps(from, to, rank, func(other int, first, end int64) Move { return Move{rank, other, first, end} })
}

// Receives are the moves in which rank is given items, in their order.
func Receives(from, to Partition, rank int) []Move {
	return overlaps(to, from, rank, func(other int, first, end int64) Move { return Move{other, rank, first, end} })
}

// overlaps cuts the range that rank has in mine at the bounds of theirs, and
// leaves out what the rank has in both.
func overlaps(mine, theirs Partition, rank int, move func(other int, first, end int64) Move) []Move {
	var moves []Move
	for at, last := mine[rank], mine[rank+1]; at < last; {
		other := theirs.Owner(at)
		end := min(last, theirs[other+1])
		if other != rank {
			moves = append(moves, move(other, at, end))
		}
		at = end
	}
	return moves
}

// traffic is the number of items whose owner changes, and the largest number
// that any one rank gives and takes.
func traffic(from, to Partition) (moved, busiest int64) {
	for r := range from.Ranks() {
		kept := max(0, min(from[r+1], to[r+1])-max(from[r], to[r]))
		given, taken := from.Size(r)-kept, to.Size(r)-kept
		moved += given
		busiest = max(busiest, given+taken)
	}
	return moved, busiest
}

// maxExact is the largest number of items: beyond, float64 skips integers.
const maxExact = int64(1) << 53

func checkLimits(items int64, ranks int, o *Options) error {
	if items > maxExact {
		return errors.Errorf("%d items are more than 2^53, the most that can be divided exactly", items)
	}
	if o.MinItems < 0 {
		return errors.Errorf("a minimum of %d items per rank: it can't be negative", o.MinItems)
	}
	if o.MinItems > items/int64(ranks) {
		return errors.Errorf("%d ranks can't have at least %d items each: there are %d", ranks, o.MinItems, items)
	}
	if o.MaxItems == nil {
		return nil
	}
	if len(o.MaxItems) != ranks {
		return errors.Errorf("limits of %d ranks were given, but there are %d", len(o.MaxItems), ranks)
	}
	var room int64
	for r, limit := range o.MaxItems {
		if limit < o.MinItems {
			return errors.Errorf("rank %d may hold at most %d items, but at least %d", r, limit, o.MinItems)
		}
		if room += min(limit, math.MaxInt64-room); room == math.MaxInt64 {
			return nil
		}
	}
	if room < items {
		return errors.Errorf("the ranks may hold at most %d items together, but there are %d", room, items)
	}
	return nil
}
