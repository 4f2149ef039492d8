package report

import (
	"fmt"
	"math"
	"slices"

	"evenkeel/runtime/history"
)

// stretches is into how many parts a run is cut; of each part the beginning is
// written call by call.
const stretches = 64

// chosen says which calls a trace holds: all that take longer than a limit, and
// all that begin in the first moments of each part of the run. Whole moments
// show how the ranks play together, which a scattering of calls would not.
type chosen struct {
	calls, held int   // how many there are, and how many of them are chosen
	longer      int64 // ns; those that take longer
	start       int64 // of the run, ns
	part        int64 // length of a part, ns
	moment      int64 // of it is held, ns
}

// choose chooses at most the given number of calls.
func choose(run *history.Run, most int) chosen {
	var durations []int64
	first, last := int64(math.MaxInt64), int64(math.MinInt64)
	each := func(yield func(*history.Event)) {
		for r := range run.Ranks {
			for e := range run.Ranks[r].Events {
				if event := &run.Ranks[r].Events[e]; sound(event) {
					yield(event)
				}
			}
		}
	}
	each(func(event *history.Event) {
		durations = append(durations, event.Leave-event.Enter)
		first, last = min(first, event.Enter), max(last, event.Enter)
	})
	c := chosen{calls: len(durations), held: len(durations), longer: -1}
	if len(durations) <= most {
		return c
	}
	// Half of the room is for the longest, the rest for moments.
	slices.Sort(durations)
	c.longer = durations[len(durations)-1-most/2]
	c.start, c.part = first, max((last-first)/stretches, 1)
	for c.moment = c.part; ; c.moment /= 2 {
		c.held = 0
		each(func(event *history.Event) {
			if c.holds(event) {
				c.held++
			}
		})
		if c.held <= most || c.moment == 0 {
			return c
		}
	}
}

// sound says whether a call can be drawn: it ends after it begins, and its
// times are not so far out that sums of them would overflow.
func sound(event *history.Event) bool {
	const far = int64(1) << 61
	return event.Enter <= event.Leave && event.Enter > -far && event.Leave < far
}

// holds says whether a call is chosen.
func (c *chosen) holds(event *history.Event) bool {
	if !sound(event) {
		return false
	}
	return event.Leave-event.Enter > c.longer || (event.Enter-c.start)%c.part < c.moment
}

// words say what was left out.
func (c *chosen) words() string {
	if c.held == c.calls {
		return fmt.Sprintf("all %s that were kept are here", plural(int64(c.calls), "call"))
	}
	return fmt.Sprintf("%s of %s that were kept are here: those longer than %s, and the first %s of each %s; %s left out",
		count(int64(c.held)), plural(int64(c.calls), "call"), seconds(float64(c.longer)/1e9), seconds(float64(c.moment)/1e9), seconds(float64(c.part)/1e9), plural(int64(c.calls-c.held), "call"))
}
