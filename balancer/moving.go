package balancer

import (
	"slices"

	"github.com/pkg/errors"
)

// moving is what it takes to move items: so much each time, and so much for each item
// that the busiest rank gives and takes. It is learnt from the moves that there were.
type moving struct {
	perMove, perItem float64   // seconds
	past             []carried // the last moves, the oldest first
}

// carried is one move.
type carried struct {
	items   int64
	seconds float64
}

const pastMoves = 5

// of is what it takes to move so many items.
func (m *moving) of(items int64) float64 {
	return m.perMove + float64(m.perItem*float64(items))
}

// learn takes over what a move took. Where moves were of much the same size, it can't
// be told what each item takes and what the move itself: half is taken to be either's.
// Where they were not, a line through the smallest and the largest tells. Of what moves
// of a size took, the lower median is believed, as what disturbs a move makes it longer.
func (m *moving) learn(items int64, seconds float64) {
	if len(m.past) == pastMoves {
		m.past = slices.Delete(m.past, 0, 1)
	}
	m.past = append(m.past, carried{items, seconds})
	least, most := m.past[0], m.past[0]
	for _, c := range m.past {
		if c.items < least.items {
			least = c
		}
		if c.items > most.items {
			most = c
		}
	}
	if most.items >= 2*least.items {
		m.perItem = max(0, min((most.seconds-least.seconds)/float64(most.items-least.items), most.seconds/float64(most.items)))
	} else {
		m.perItem = m.usual(func(c carried) float64 { return c.seconds / float64(2*c.items) })
	}
	m.perMove = m.usual(func(c carried) float64 { return max(0, c.seconds-float64(m.perItem*float64(c.items))) })
}

// usual is the lower median of a figure of the moves.
func (m *moving) usual(figure func(carried) float64) float64 {
	figures := make([]float64, len(m.past))
	for i, c := range m.past {
		figures[i] = figure(c)
	}
	slices.Sort(figures)
	return figures[(len(figures)-1)/2]
}

// Moved tells how many seconds it took to move the items of the last change, as
// measured; what moves are expected to take follows from the last ones, and no more
// from the Options. All ranks must tell the same, before the next Step. Where there
// was no change, it is not counted.
func (c *Controller) Moved(seconds float64) error {
	if err := checkSeconds("time of a move", seconds); err != nil {
		return err
	}
	if c.carried > 0 {
		c.moving.learn(c.carried, seconds)
		c.carried = 0
	}
	return nil
}

func checkCosts(perItem, perMove float64) error {
	if err := checkSeconds("cost per item", perItem); err != nil {
		return err
	}
	return checkSeconds("cost of a move", perMove)
}

func checkSeconds(what string, t float64) error {
	if !(t >= 0 && t <= mostSeconds) {
		return errors.Errorf("the %s is %v seconds: it must be a number from 0 to %v", what, t, float64(mostSeconds))
	}
	return nil
}
