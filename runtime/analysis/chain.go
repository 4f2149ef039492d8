package analysis

const (
	deepest      = 64   // ranks that a chain of waits is followed over
	mostSteps    = 1024 // calls that are looked at to explain one wait
	slicesWalked = 4096 // time slices of one wait that are looked at
)

// chain divides the time of one wait among the ranks that caused it: at each
// moment the rank waited for is either outside MPI, and then it is late
// itself, or inside, waiting for another rank in its turn, which is then
// followed; or neither.
type chain struct {
	*job
	parts []part  // the time, by rank
	idle  float64 // ns in which the rank at the end of the chain was inside MPI and waited for nobody
	steps int
}

// part is the time for which one rank made another wait, in nanoseconds.
type part struct {
	rank int32
	time float64
}

// explain divides the wait of a call: into parts and idle, which together are
// the time from c.enter to c.until.
func (w *chain) explain(c *call) {
	w.parts, w.idle, w.steps = w.parts[:0], 0, 0
	if w.level == 0 {
		w.walk(c.cause, c.by, c.enter, c.until, 0)
		return
	}
	// Only where the calls of all ranks were kept is it known who was inside
	// MPI; that part of the wait stands for the rest.
	walked := int64(0)
	to := c.until
	for n := 0; n < slicesWalked && to > c.enter; n++ {
		from := max((to-1)&^(sliceWidth-1), c.enter)
		if sliceKept(to-1, w.level) {
			w.walk(c.cause, c.by, from, to, 0)
			walked += to - from
		}
		to = from
	}
	if walked == 0 {
		w.blame(c.cause, float64(c.until-c.enter))
		return
	}
	scale := float64(c.until-c.enter) / float64(walked)
	for i := range w.parts {
		w.parts[i].time *= scale
	}
	w.idle *= scale
}

// walk divides the time between from and to, in which rank q was waited for
// until its call `by` began (none: until after its last).
func (w *chain) walk(q, by int32, from, to int64, depth int) {
	calls := w.ranks[q].calls
	i := w.ranks[q].last
	if by != none {
		i = calls[by].prev
	}
	for ; i != none && to > from; i = calls[i].prev {
		k := &calls[i]
		if w.steps++; w.steps > mostSteps {
			break
		}
		if outside := max(k.leave, from); outside < to {
			w.blame(q, float64(to-outside))
			to = outside
		}
		inside := max(k.enter, from)
		if inside >= to {
			continue
		}
		if late := min(k.until, to); k.cause != none && late > inside && depth < deepest {
			w.idle += float64(to - late)
			w.walk(k.cause, k.by, inside, late, depth+1)
		} else {
			w.idle += float64(to - inside)
		}
		to = inside
	}
	if to > from {
		w.blame(q, float64(to-from))
	}
}

func (w *chain) blame(rank int32, time float64) {
	for i := range w.parts {
		if w.parts[i].rank == rank {
			w.parts[i].time += time
			return
		}
	}
	w.parts = append(w.parts, part{rank, time})
}

// forgive takes what a rank would have to blame on itself out of the parts:
// clocks that differ can lead a chain back to where it began.
func (w *chain) forgive(rank int32) {
	for i := range w.parts {
		if w.parts[i].rank == rank {
			w.idle += w.parts[i].time
			w.parts[i].time = 0
		}
	}
}
