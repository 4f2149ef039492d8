package report

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"evenkeel/runtime/profile"
)

// Shares of core time from which words change. Below quiet, waiting is not
// worth a sentence of its own; from loud on, MPI itself is.
const (
	quiet = 0.02
	loud  = 0.10
)

// names says how ranks are called: by number, and with their world where the
// job has several.
type names struct{ worlds bool }

func namesOf(p *profile.Profile) names {
	for _, rank := range p.Ranks {
		if rank.World != p.Ranks[0].World {
			return names{worlds: true}
		}
	}
	return names{}
}

// short is "3", or "2:3" for rank 3 of world 2.
func (n names) short(world, rank int) string {
	if n.worlds {
		return strconv.Itoa(world) + ":" + strconv.Itoa(rank)
	}
	return strconv.Itoa(rank)
}

func (n names) rank(world, rank int) string { return "rank " + n.short(world, rank) }

// place is where a call stands in the program: "energy (forces.c:212)", or the
// module and offset where symbols do not tell.
func place(site *profile.CallSite) string {
	source := ""
	if site.File != "" {
		source = path.Base(site.File)
		if site.Line > 0 {
			source += ":" + strconv.Itoa(site.Line)
		}
	}
	switch {
	case site.Function != "" && source != "":
		return clean(site.Function + " (" + source + ")")
	case site.Function != "":
		return clean(site.Function + " (" + site.Module + ")")
	case source != "":
		return clean(source)
	default:
		return clean(site.Module + "+" + site.Offset)
	}
}

// coreTime is the time of all cores together, in seconds.
func coreTime(s *profile.Split) float64 { return s.Useful + s.MPI }

// verdict answers in a sentence or two who waits for whom, where, and what it
// costs.
func verdict(p *profile.Profile) string {
	total := &p.Total
	core := coreTime(&total.Split)
	late := part(total.Late, core)
	mpi := part(total.MPI, core)
	unsplit := part(total.Unsplit, core)
	switch {
	case core <= 0:
		return "Nothing was recorded."
	case late >= quiet:
		return blame(p)
	case unsplit >= loud || unsplit >= quiet && unsplit > mpi/2:
		return fmt.Sprintf("MPI takes %s of the core time; for %s of that it was not recorded who waited for whom.", percent(mpi), percent(part(unsplit, mpi)))
	case mpi >= loud:
		return fmt.Sprintf("The ranks hardly wait for late ones (%s of the core time), but communication itself takes %s.", percent(late), percent(mpi-late))
	default:
		return fmt.Sprintf("The ranks keep pace: waiting for late ones takes %s of the core time, all of MPI %s.%s", percent(late), percent(mpi), besides(p))
	}
}

// ofOthers is how long other threads than the main ones waited, which is in the call
// sites and not in the ranks' time; 0 if that is little.
func ofOthers(p *profile.Profile) float64 {
	waited := -p.Total.Late
	for i := range p.CallSites {
		waited += p.CallSites[i].Late
	}
	if waited < quiet*coreTime(&p.Total.Split) {
		return 0
	}
	return waited
}

// besides tells of that in a sentence.
func besides(p *profile.Profile) string {
	waited := ofOthers(p)
	if waited == 0 {
		return ""
	}
	return fmt.Sprintf(" Their other threads waited for %s, all together.", seconds(waited))
}

// blame is the verdict on a run with waiting: who is late, the cost, the place.
func blame(p *profile.Profile) string {
	cost := fmt.Sprintf("%s of the core time (%s)", percent(part(p.Total.Late, coreTime(&p.Total.Split))), seconds(p.Total.Late))
	if others := ofOthers(p); others > 0 {
		cost += fmt.Sprintf(" and other threads %s", seconds(others))
	}
	cost += lateIn(p)
	n := namesOf(p)
	// As many names as it takes to explain half of the waiting, but at most 3.
	var who []string
	explained := 0.0
	for _, culprit := range p.Culprits[:min(3, len(p.Culprits))] {
		if explained < 0.5 {
			explained += culprit.Share
			who = append(who, n.short(culprit.World, culprit.Rank))
		}
	}
	last := len(who) - 1
	switch {
	case len(who) == 0:
		return fmt.Sprintf("Waiting for late ranks costs %s.", cost)
	case explained < 0.5:
		return fmt.Sprintf("Waiting for late ranks costs %s. No rank stands out: the worst (%s) caused %s.", cost, who[0], percent(p.Culprits[0].Share))
	case len(who) == 1:
		return fmt.Sprintf("Rank %s makes the others wait: it caused %s of the waiting, which costs %s.", who[0], percent(explained), cost)
	default:
		return fmt.Sprintf("Ranks %s and %s make the others wait: they caused %s of the waiting, which costs %s.", strings.Join(who[:last], ", "), who[last], percent(explained), cost)
	}
}

// lateIn names the call in which most of the waiting happens.
func lateIn(p *profile.Profile) string {
	if len(p.CallSites) == 0 {
		return ""
	}
	site := slices.MaxFunc(p.CallSites, func(a, b profile.CallSite) int { return cmp.Compare(a.Late, b.Late) })
	where := clean(site.Call)
	if site.Function != "" {
		where += " of " + snip(clean(site.Function), 48)
	}
	return fmt.Sprintf(", %s in %s", mostly(part(site.Late, p.Total.Late+ofOthers(p))), where)
}

func mostly(share float64) string {
	switch {
	case share >= 0.95:
		return "all of it"
	case share >= 0.5:
		return "most of it"
	default:
		return "first of all"
	}
}

// lastRank names the member of a communicator that came last most often.
func lastRank(c *profile.Communicator) string {
	if c.LastRank < 0 { // no operation was looked at
		return "–"
	}
	return "rank " + strconv.Itoa(c.LastRank)
}

// steadiness says in words how the load is spread over ranks and time.
func steadiness(b *profile.Balance) string {
	words := map[string]string{
		"balanced": "the ranks have even work",
		"constant": "the same ranks are always slow",
		"drifting": "who is slow changes slowly",
		"random":   "who is slow changes from cycle to cycle",
	}[b.Kind]
	if words == "" {
		return "how steady the imbalance is cannot be said: too little was seen"
	}
	if b.Constant+b.Drifting+b.Random <= 0 {
		return words
	}
	return fmt.Sprintf("%s (constant %s, drifting %s, random %s)", words, percent(b.Constant), percent(b.Drifting), percent(b.Random))
}

// advice says what would help and how much it would bring at most.
func advice(p *profile.Profile) string {
	words := map[string]string{
		"repartition": "give the slow ranks less of the data (repartition)",
		"split":       "cut the work into more tasks than ranks (split)",
		"nothing":     "balancing would bring nothing",
	}[p.Balance.Advice]
	switch {
	case p.Balance.Kind == "unknown":
		return "too little was seen to say; a longer run tells"
	case words == "":
		return "no advice"
	case p.Balance.Advice == "nothing" || p.Balance.Gain <= 0:
		return words
	default:
		return fmt.Sprintf("%s; this saves %s of the run (%s) at most", words, percent(p.Balance.Gain), seconds(p.Balance.Gain*p.Total.Elapsed))
	}
}

// basis says what the figures rest on: how much was timed, and the errors that
// follow. It is empty when everything was timed on one clock.
func basis(p *profile.Profile) string {
	var parts []string
	q := &p.Quality
	if q.TimedCalls < q.Calls {
		parts = append(parts, fmt.Sprintf("MPI ±%s, waiting ±%s (%s of calls timed)", seconds(p.Total.Error), seconds(p.Total.LateError), percent(part(float64(q.TimedCalls), float64(q.Calls)))))
	}
	if q.ClockError > 0 {
		parts = append(parts, "clocks ±"+seconds(q.ClockError))
	}
	return strings.Join(parts, "; ")
}

// idle says what was done in waits. It is empty if nothing was.
func idle(i *profile.Idle) string {
	var parts []string
	if i.Sleeps > 0 {
		parts = append(parts, "slept "+seconds(i.Slept))
	}
	if i.Runs > 0 {
		parts = append(parts, "idle program "+seconds(i.Ran))
	}
	if i.Hooks > 0 {
		parts = append(parts, brief(i.Hooks)+" hooks")
	}
	if i.Loans > 0 {
		parts = append(parts, "lent cores "+seconds(i.Lent))
	}
	return strings.Join(parts, ", ")
}

// fast says what was done in MPI's place. It is empty if nothing was.
func fast(f *profile.Fast) string {
	var parts []string
	if f.Barriers > 0 {
		parts = append(parts, brief(f.Barriers)+" barriers")
	}
	if f.Sends > 0 {
		parts = append(parts, fmt.Sprintf("%s shadow sends (%s)", brief(f.Sends), volume(f.SentBytes)))
	}
	if f.Packed+f.Unpacked > 0 {
		parts = append(parts, volume(f.PackedBytes+f.UnpackedBytes)+" of derived data")
	}
	if f.Moves > 0 {
		parts = append(parts, brief(f.Moves)+" moves of partitions")
	}
	if f.Hidden > 0 {
		parts = append(parts, seconds(float64(f.Hidden)*1e-9)+" of set-up hidden in waits")
	}
	return strings.Join(parts, ", ")
}
