package analysis

const (
	deepest      = 64   // ranks that a chain of waits is followed over
	mostSteps    = 1024 // calls that are looked at to explain one wait
	slicesWalked = 4096 // time slices of one wait that are looked at
)

// chain divides the time of one wait among the ranks that caused it. Where the
// rank waited for was inside MPI and waited for another rank in its turn, that
// one is followed; at all other times it was late itself.
type chain struct {
	*job
	parts []part
	steps int
}

// part is the time for which one rank made another wait, in nanoseconds.
type part struct {
	rank int32
	time float64
}

// explain divides the wait of a call into parts, which together are the time
// from c.enter to c.until.
func (w *chain) explain(c *call) {
	w.parts, w.steps = w.parts[:0], 0
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
		if w.steps++; w.steps > mostSteps || k.leave <= from {
			break
		}
		inside := max(k.enter, from)
		if late := min(k.until, to); k.cause != none && late > inside && depth < deepest {
			w.blame(q, float64(to-late))
			w.walk(k.cause, k.by, inside, late, depth+1)
			to = inside
		}
	}
	if to > from {
		w.blame(q, float64(to-from))
	}
}

func (w *chain) blame(rank int32, time float64) {
	if time <= 0 {
		return
	}
	for i := range w.parts {
		if w.parts[i].rank == rank {
			w.parts[i].time += time
			return
		}
	}
	w.parts = append(w.parts, part{rank, time})
}

// forgive takes away what a rank would have to blame on itself: another of its
// threads was late, or clocks that differ led the chain back.
func (w *chain) forgive(rank int32) {
	for i := range w.parts {
		if w.parts[i].rank == rank {
			w.parts[i].time = 0
		}
	}
}
