package analysis

import (
	"math"
	"path"

	"evenkeel/runtime/history"
)

const wholeRun = "whole run"

// job is a run while it is analysed. Ranks are called by their index in
// run.Ranks throughout.
type job struct {
	run        *history.Run
	start, end int64 // the earliest Start and the latest End
	level      int   // the highest of any rank
	ranks      []rankView
	sites      []site
	grid       grid
	operations operations
}

// rankView is what the analysis knows of a rank beyond its record.
type rankView struct {
	calls    []call  // one for each of its events
	last     int32   // the last of its main thread, or none
	site     []int32 // by account: index into job.sites
	shortest []int64 // by account: ns, the shortest such call of any rank
	world    int32   // index of the first rank of its world
	threaded bool    // more than one thread left events
	hidden   bool    // it made calls that left no event
	first    int64   // operations to which it came first, last, and all
	lastIn   int64
	tookPart int64
}

// call is a timed call while it is analysed.
type call struct {
	enter, leave int64
	// The caller waited for rank `cause` to come, until `until`; that rank's
	// call `by` ended the wait. until is enter if it did not wait, and cause
	// is none if the rank is not known; by is none if it never came.
	until     int64
	cause, by int32
	prev      int32   // the call before it in its thread, or none
	weight    float32 // calls like it, in the sample of those that were looked at
	clock     float32 // ns by which until may be wrong
	verdict   verdict
	widest    bool // of the waits in its operation; those of all other calls count as such
	direct    bool // the rank waited for was outside MPI all the time: it need not be followed
}

const none = -1

// verdict says what could be found out about a call.
type verdict uint8

const (
	unseen     verdict = iota // not part of the sample: others' records are needed and were not kept
	alone                     // waits for nobody
	collective                // until and cause are as the operation's arrivals say
	paired                    // until and cause are as the peers' calls say
	vague                     // part of the sample, but nothing can be said
)

// site is a place in the program that calls MPI.
type site struct {
	call   string
	module string // base name
	offset uint64
}

func newJob(run *history.Run) *job {
	j := &job{run: run, start: math.MaxInt64, end: math.MinInt64, ranks: make([]rankView, len(run.Ranks))}
	sites := map[site]int32{}
	for r := range run.Ranks {
		rank := &run.Ranks[r]
		j.start, j.end = min(j.start, rank.Start), max(j.end, rank.End)
		j.level = max(j.level, rank.Level)
		v := &j.ranks[r]
		v.world = int32(r)
		if r > 0 && run.Ranks[r-1].Task.World == rank.Task.World {
			v.world = j.ranks[r-1].world
		}
		v.site = make([]int32, len(rank.Accounts))
		calls := int64(0)
		for a := range rank.Accounts {
			v.site[a] = j.siteOf(&rank.Accounts[a], sites)
			calls += rank.Accounts[a].Calls
		}
		v.hidden = rank.Lost > 0 || calls > max(rank.Offered, int64(len(rank.Events)))
		v.readCalls(rank.Events)
	}
	j.findShortest()
	j.grid = newGrid(j)
	return j
}

// findShortest finds what a call takes without any waiting: the shortest at
// its call site and on its communicator, on whatever rank. A rank that always
// waits never sees it itself.
func (j *job) findShortest() {
	type place struct {
		site int32
		comm uint64
	}
	placeOf := func(r, a int) place {
		p := place{site: j.ranks[r].site[a]}
		rank := &j.run.Ranks[r]
		if comm := rank.Accounts[a].Comm; comm != noComm {
			p.comm = rank.Comms[comm].ID
		}
		return p
	}
	shortest := map[place]int64{}
	for r := range j.run.Ranks {
		for a := range j.run.Ranks[r].Accounts {
			account := &j.run.Ranks[r].Accounts[a]
			p := placeOf(r, a)
			if known, ok := shortest[p]; account.Timed > 0 && (!ok || account.Shortest < known) {
				shortest[p] = account.Shortest
			}
		}
	}
	for r := range j.run.Ranks {
		v := &j.ranks[r]
		v.shortest = make([]int64, len(j.run.Ranks[r].Accounts))
		for a := range v.shortest {
			v.shortest[a] = shortest[placeOf(r, a)]
		}
	}
}

func (j *job) siteOf(a *history.Account, sites map[site]int32) int32 {
	s := site{a.Function.Name, path.Base(a.Module), a.Offset}
	if a.Module == "" {
		s.module = ""
	}
	index, known := sites[s]
	if !known {
		index = int32(len(j.sites))
		sites[s] = index
		j.sites = append(j.sites, s)
	}
	return index
}

func (v *rankView) readCalls(events []history.Event) {
	v.calls = make([]call, len(events))
	v.last = none
	var latest []int32 // by thread
	for i := range events {
		e := &events[i]
		for len(latest) <= e.Thread {
			latest = append(latest, none)
		}
		v.calls[i] = call{
			enter: e.Enter, leave: e.Leave, until: e.Enter,
			cause: none, by: none, prev: latest[e.Thread], widest: true,
		}
		latest[e.Thread] = int32(i)
		v.threaded = v.threaded || e.Thread != events[0].Thread
	}
	if len(latest) > 0 {
		v.last = latest[0]
	}
}

// find returns the index of a rank of the same world as rank r, or none.
func (j *job) find(r int, peer history.Peer) int {
	if peer < 0 || peer > mostRanks {
		return none
	}
	world := int(j.ranks[r].world)
	task := history.Task{World: j.run.Ranks[r].Task.World, Rank: int(peer)}
	// Where no rank is missing, it stands at its number.
	if i := world + task.Rank; i < len(j.run.Ranks) && j.run.Ranks[i].Task == task {
		return i
	}
	low, high := world, min(world+task.Rank, len(j.run.Ranks))
	for low < high {
		middle := (low + high) / 2
		if compareTasks(j.run.Ranks[middle].Task, task) < 0 {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if low < len(j.run.Ranks) && j.run.Ranks[low].Task == task {
		return low
	}
	return none
}

// comparable says whether times of two ranks are on one clock.
func (j *job) comparable(a, b int) bool {
	n, m := j.run.Ranks[a].Node, j.run.Ranks[b].Node
	return n == m || j.run.Nodes[n].ClockKnown && j.run.Nodes[m].ClockKnown
}

// clockError is by how many nanoseconds the time between events of two ranks
// may be wrong.
func (j *job) clockError(a, b int) int64 {
	n, m := j.run.Ranks[a].Node, j.run.Ranks[b].Node
	if n == m {
		return 0
	}
	return j.run.Nodes[n].ClockError + j.run.Nodes[m].ClockError
}

// open says whether a call was still under way when its rank's recording
// ended.
func (j *job) open(r int, c *call) bool {
	rank := &j.run.Ranks[r]
	return rank.State != history.Finalized && c.leave >= rank.End && c.leave > c.enter
}
