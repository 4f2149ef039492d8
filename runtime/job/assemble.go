// Package job turns the node segments of a job into a Run, and a Run into the
// files of its profile. It also finds the segments of running jobs.
package job

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"evenkeel/c/tables"
	"evenkeel/runtime/drain"
	"evenkeel/runtime/history"
	"evenkeel/runtime/segment"
	"github.com/pkg/errors"
)

// Assemble brings the recordings of a job's nodes onto one clock. Their rings
// are drained already, and nothing writes to them any more.
func Assemble(nodes []*segment.Segment) (*history.Run, error) {
	if len(nodes) == 0 {
		return nil, errors.New("no node of the job has left a recording")
	}
	functions, _, err := tables.MPI()
	if err != nil {
		return nil, err
	}
	nodes = slices.SortedFunc(slices.Values(nodes), func(a, b *segment.Segment) int {
		return cmp.Or(cmp.Compare(a.Header.World, b.Header.World), cmp.Compare(a.Header.Node, b.Header.Node))
	})
	a := assembly{run: &history.Run{Job: segment.Text(nodes[0].Header.Job[:]), Complete: true}}
	for _, f := range functions {
		a.functions = append(a.functions, history.Function{Name: f.Name, Class: classes[f.Class]})
	}
	for _, n := range nodes {
		if n.Header.TableHash != tables.Hash(functions) {
			return nil, errors.Errorf("node %d was recorded by another version of evenkeel, whose MPI functions are numbered differently: use that version to read it",
				n.Header.Node)
		}
		a.addNode(n)
	}
	a.ends()
	a.missing(nodes)
	a.unrecorded()
	slices.SortStableFunc(a.run.Ranks, func(x, y history.Rank) int {
		return cmp.Or(cmp.Compare(x.Task.World, y.Task.World), cmp.Compare(x.Task.Rank, y.Task.Rank))
	})
	return a.run, nil
}

// classes are the words of mpi.table.
var classes = map[string]history.Class{
	"local": history.Local, "hand": history.Local, "send": history.Send, "recv": history.Recv,
	"sendrecv": history.SendRecv, "wait": history.Wait, "alltoall": history.AllToAll,
	"fromroot": history.FromRoot, "toroot": history.ToRoot, "prefix": history.Prefix,
	"neighbour": history.Neighbour, "create": history.Create, "sync": history.Sync, "begin": history.Begin,
	"held": history.Held, "access": history.Access,
}

type assembly struct {
	run         *history.Run
	functions   []history.Function
	lastSeen    time.Time // of a rank that still ran
	threadSlots uint32    // in each rank
	peers       []history.Peer
	endings     []ending // in which ranks did not reach MPI_Finalize
}

// ending is what ranks did instead of MPI_Finalize: "called MPI_Abort(6)".
type ending struct {
	what  string
	ranks []int
}

// threadFunneled is MPI_THREAD_FUNNELED in Open MPI, as in others: above it several
// threads may call MPI.
const threadFunneled = 1

// note adds a sentence about what is missing.
func (a *assembly) note(format string, args ...any) {
	a.run.Complete = false
	a.run.Notes = append(a.run.Notes, fmt.Sprintf(format, args...))
}

func (a *assembly) addNode(n *segment.Segment) {
	h := n.Header
	a.threadSlots = h.ThreadSlots
	number := len(a.run.Nodes)
	longest := int64(0)
	for i := range int(h.LocalRanks) {
		r, ok := a.rank(h, n.Area(i))
		if !ok {
			a.note("A rank on %s had not left MPI_Init; nothing of it was recorded.", segment.Text(h.Host[:]))
			continue
		}
		r.Node = number
		longest = max(longest, r.End-r.Start)
		a.run.Ranks = append(a.run.Ranks, r)
	}
	node := history.Node{
		World: int(h.World), Number: int(h.Node), Host: segment.Text(h.Host[:]),
		ClockOffset: h.Sync[0].OffsetNs,
		ClockError:  drain.ClockError(h, longest),
		ClockKnown:  h.Node == 0 || h.Sync[0].MonotonicNs != 0,
	}
	if h.Sync[1].MonotonicNs != 0 {
		node.ClockDrift = h.Sync[1].OffsetNs - h.Sync[0].OffsetNs
	}
	if !node.ClockKnown {
		a.note("The clock of %s was not measured against the others (the job ended within MPI_Init): times of different hosts do not compare.", node.Host)
	}
	a.run.Nodes = append(a.run.Nodes, node)
}

// rank reads one rank's area; false if it had not started.
func (a *assembly) rank(h *segment.Header, area segment.Area) (history.Rank, bool) {
	w := area.Rank
	if w.State == segment.RankEmpty || w.InitLeave == 0 {
		return history.Rank{}, false
	}
	c := drain.ClockOf(h)
	r := history.Rank{
		Task:    history.Task{World: int(h.World), Rank: int(w.Rank)},
		PID:     int(w.Pid),
		Command: segment.Text(w.Command[:]),
		CPUs:    int(w.Cpus),
		Start:   c.Time(w.InitLeave),
		Threads: len(area.Threads),
		OneOnly: w.ThreadLevel <= threadFunneled,
		Level:   int(min(w.HistoryLevel, history.MaxLevel)), Offered: int64(w.HistoryOffered),
		Unrecorded: int64(w.CallsUnrecorded),
		BinWidth:   c.Nanoseconds(w.BinTicks),
		Fast:       fastOf(w),
		Idle:       idleOf(w),
		Windows:    WindowsOf(area),
		Foreign:    int64(segment.Load(&w.Foreign)),
	}
	r.State = a.state(w, r.Task.Rank)
	if seen := time.Unix(0, int64(h.CreatedRealtimeNs)+c.Nanoseconds(w.DrainedTicks-h.Anchor[0].Ticks)); r.State == history.Running && seen.After(a.lastSeen) {
		a.lastSeen = seen
	}
	a.regions(&r, area, c.Nanoseconds)
	a.comms(&r, area)

	end := w.FinalizeEnter
	if end == 0 {
		end = w.DrainedTicks
	}
	kept := eventsOf(area)
	for i := range kept {
		if w.FinalizeEnter == 0 {
			end = max(end, kept[i].Leave)
		}
	}
	places := make([]map[uint16]int, len(area.Threads)) // account in the segment -> in r.Accounts
	for t := range area.Threads {
		places[t] = a.accounts(&r, area, t, c.Nanoseconds)
		r.Lost += int64(area.Threads[t].RingLost)
	}
	r.Events = make([]history.Event, 0, len(kept))
	for i := range kept {
		a.event(&r, &kept[i], places, c.Time)
	}
	if w.FinalizeEnter == 0 {
		for t := range area.Threads {
			a.openCall(&r, area, t, end, places[t], c.Time)
		}
	}
	r.End = max(c.Time(end), r.Start)
	settleRegions(&r, int(w.Region))
	byEnter := func(x, y history.Event) int { return cmp.Compare(x.Enter, y.Enter) }
	if !slices.IsSortedFunc(r.Events, byEnter) {
		slices.SortStableFunc(r.Events, byEnter)
	}
	for _, b := range area.Bins {
		r.Bins = append(r.Bins, c.Nanoseconds(b.Ticks))
	}
	return r, true
}

func fastOf(w *segment.Rank) history.Fast {
	n := func(counter int) int64 { return int64(w.Fast[counter]) }
	return history.Fast{
		Barriers: n(segment.FastBarriers), BarriersPlain: n(segment.FastBarriersPlain),
		Sends: n(segment.FastSends), SentBytes: n(segment.FastSentBytes), SendsFull: n(segment.FastSendsFull),
		Types: n(segment.FastTypes), TypesPlain: n(segment.FastTypesPlain),
		Packed: n(segment.FastPacked), PackedBytes: n(segment.FastPackedBytes),
		Unpacked: n(segment.FastUnpacked), UnpackedBytes: n(segment.FastUnpackedBytes),
		Moves: n(segment.FastMoves), Hidden: n(segment.FastHiddenNs), Early: n(segment.FastEarly),
	}
}

// WindowsOf are the windows of global shared memory that a rank has had.
func WindowsOf(area segment.Area) []history.Window {
	var all []history.Window
	for i := range area.Windows {
		w := &area.Windows[i]
		n := func(counter *uint64) int64 { return int64(segment.Load(counter)) }
		all = append(all, history.Window{Job: int(segment.Load(&w.Job)), Number: int(segment.Load(&w.Number)),
			Puts: n(&w.Puts), PutBytes: n(&w.PutBytes), Gets: n(&w.Gets), GetBytes: n(&w.GetBytes), Atomics: n(&w.Atomics),
			Refused: n(&w.Refused), Fences: n(&w.Fences)})
	}
	return all
}

func idleOf(w *segment.Rank) history.Idle {
	n := func(counter int) int64 { return int64(w.Fast[counter]) }
	return history.Idle{
		Sleeps: n(segment.FastSleeps), SleptNs: n(segment.FastSleptNs),
		Runs: n(segment.FastIdleRuns), RanNs: n(segment.FastIdleRanNs),
		Hooks: n(segment.FastHooks), HooksOverrun: n(segment.FastHooksOverrun),
		Loans: n(segment.FastLoans), LentNs: n(segment.FastLentNs),
	}
}

// settleRegions adds the time since the last begin or end of a region to the
// one that was open when the recording ended. MPI_Finalize does so itself.
func settleRegions(r *history.Rank, open int) {
	if r.State == history.Finalized || open >= len(r.Regions) {
		return
	}
	left := r.End - r.Start
	for _, region := range r.Regions {
		left -= region.Time
	}
	r.Regions[open].Time += max(left, 0)
	if open == regionOff {
		r.Paused = r.Regions[open].Time
	}
}

// eventsOf are the events of a rank's history. One that died, or was looked at,
// while it thinned its history out has some of them twice.
func eventsOf(area segment.Area) []segment.Event {
	kept := slices.Clone(area.History[:min(area.Rank.HistoryCount, uint64(len(area.History)))])
	slices.SortFunc(kept, func(x, y segment.Event) int {
		return cmp.Or(cmp.Compare(x.Thread, y.Thread), cmp.Compare(x.Stamp, y.Stamp))
	})
	return slices.CompactFunc(kept, func(x, y segment.Event) bool {
		return x.Thread == y.Thread && x.Stamp == y.Stamp
	})
}

func (a *assembly) state(w *segment.Rank, rank int) history.State {
	switch w.State {
	case segment.RankFinalizing, segment.RankFinalized:
		return history.Finalized
	case segment.RankAborted:
		a.ended(rank, fmt.Sprintf("called MPI_Abort(%d)", w.AbortCode))
		return history.Aborted
	case segment.RankExited:
		a.ended(rank, "left through exit() without MPI_Finalize")
		return history.Exited
	case segment.RankKilled:
		a.ended(rank, "ended without MPI_Finalize, killed or crashed")
		return history.Killed
	}
	return history.Running
}

func (a *assembly) ended(rank int, what string) {
	i := slices.IndexFunc(a.endings, func(e ending) bool { return e.what == what })
	if i < 0 {
		i = len(a.endings)
		a.endings = append(a.endings, ending{what: what})
	}
	a.endings[i].ranks = append(a.endings[i].ranks, rank)
}

// named is how many ranks are told by their numbers.
const named = 4

// ends tells of each ending in one sentence, however many ranks had it.
func (a *assembly) ends() {
	for _, e := range a.endings {
		slices.Sort(e.ranks)
		numbers := strings.Trim(fmt.Sprint(e.ranks[:min(len(e.ranks), named)]), "[]")
		numbers = strings.ReplaceAll(numbers, " ", ", ")
		switch more := len(e.ranks) - named; {
		case more > 0:
			a.note("Ranks %s and %d more %s.", numbers, more, e.what)
		case len(e.ranks) > 1:
			a.note("Ranks %s %s.", numbers, e.what)
		default:
			a.note("Rank %s %s.", numbers, e.what)
		}
	}
}

func (a *assembly) regions(r *history.Rank, area segment.Area, ns func(uint64) int64) {
	for i := range area.Regions {
		region := &area.Regions[i]
		r.Regions = append(r.Regions, history.Region{
			Name: segment.Text(region.Name[:]), Parent: min(int(region.Parent), len(area.Regions)-1),
			Entries: int64(region.Entries), Time: ns(region.Ticks), Off: i == regionOff,
		})
		if i == regionOff {
			r.Paused = ns(region.Ticks)
		}
	}
}

// regionOff is the entry of the time with recording off, as in c/regions.h.
const regionOff = 1

func (a *assembly) comms(r *history.Rank, area segment.Area) {
	twins := map[uint64]int{}
	for i := range area.Comms {
		c := &area.Comms[i]
		comm := history.Comm{
			ID: c.Id, Name: segment.Text(c.Name[:]), Size: int(c.Size), Rank: int(c.Rank), Next: c.Sequence,
			Inter: c.Flags&segment.CommInter != 0, Other: c.Flags&segment.CommOther != 0,
		}
		if c.MemberCount != 0 && c.Flags&segment.CommForeign == 0 {
			comm.Members = ranksOf(area, c.Members, c.MemberCount)
		}
		// Events of those that had the entry before are judged by the same neighbours.
		if c.Flags&(segment.CommTopology|segment.CommTopologies) == segment.CommTopology {
			comm.Neighbours = ranksOf(area, c.Neighbours, c.NeighbourCount)
		}
		comm.Twin = twins[c.Id]
		twins[c.Id]++
		r.Comms = append(r.Comms, comm)
	}
}

// ranksOf are so many words in the table of members; nil where it has not so many.
func ranksOf(area segment.Area, first, count uint32) []int {
	end := uint64(first) + uint64(count)
	if end > uint64(len(area.Members)) {
		return nil
	}
	ranks := make([]int, 0, count)
	for _, rank := range area.Members[first:end] {
		ranks = append(ranks, int(rank))
	}
	return ranks
}

func (a *assembly) accounts(r *history.Rank, area segment.Area, t int, ns func(uint64) int64) map[uint16]int {
	places := map[uint16]int{}
	accounts := area.Threads[t].Accounts
	for i := range accounts {
		w := &accounts[i]
		function, comm, region := int(uint16(w.Key)), int(uint16(w.Key>>16)), int(uint16(w.Key>>32))
		if w.Site == 0 || w.Calls == 0 || function >= len(a.functions) ||
			comm >= len(area.Comms) || region >= len(area.Regions) {
			continue
		}
		called := a.functions[function]
		if w.Site == math.MaxUint64 { // account 0 takes what found no place
			called = history.Function{Name: "other calls", Class: history.Local}
		}
		account := history.Account{
			Thread: t, Function: called, Comm: comm, Region: region, Offset: w.Offset,
			Calls: int64(w.Calls), Timed: int64(w.Timed), Time: ns(w.Ticks),
			Variance: w.Variance * nsPerTickSquared(ns), Longest: ns(w.Longest), Bytes: int64(w.Bytes),
		}
		if w.Timed > 0 {
			account.Shortest = ns(w.Shortest)
		}
		if w.Module < uint64(len(area.Modules)) {
			account.Module = segment.Text(area.Modules[w.Module].Path[:])
		}
		places[uint16(i)] = len(r.Accounts)
		r.Accounts = append(r.Accounts, account)
	}
	return places
}

// nsPerTickSquared turns ticks² into ns².
func nsPerTickSquared(ns func(uint64) int64) float64 {
	perTick := float64(ns(1<<40)) / (1 << 40)
	return perTick * perTick
}

func (a *assembly) event(r *history.Rank, e *segment.Event, places []map[uint16]int, at func(uint64) int64) {
	if int(e.Thread) >= len(places) || int(e.Comm) >= len(r.Comms) {
		return
	}
	account, ok := places[e.Thread][e.Account]
	if !ok {
		return
	}
	r.Events = append(r.Events, history.Event{
		Enter: at(e.Enter), Leave: max(at(e.Leave), at(e.Enter)), Guessed: e.Weight&segment.EventGuessed != 0,
		Account: account, Comm: int(e.Comm), Sequence: e.Sequence, Collective: e.Weight&segment.EventCollective != 0,
		Thread: int(e.Thread), Weight: 1 << min(e.Weight&63, 32), Bytes: int64(e.Bytes), Peers: a.peersOf(e),
	})
}

// peersOf are the peers of an event. There are as many short lists as events:
// they lie behind each other in large pieces of memory.
func (a *assembly) peersOf(e *segment.Event) []history.Peer {
	if cap(a.peers)-len(a.peers) < len(e.Peer) {
		a.peers = make([]history.Peer, 0, 1<<14)
	}
	first := len(a.peers)
	a.peers = appendPeers(a.peers, e.Peer[:])
	if len(a.peers) == first {
		return nil
	}
	return a.peers[first:len(a.peers):len(a.peers)]
}

// appendPeers appends those of a list of peers in the segment that are in use.
func appendPeers(p []history.Peer, words []uint16) []history.Peer {
	for _, w := range words {
		switch w {
		case segment.NoPeer:
		case segment.AnyPeer:
			p = append(p, history.AnyPeer)
		case segment.FarPeer:
			p = append(p, history.FarPeer)
		default:
			p = append(p, history.Peer(w))
		}
	}
	return p
}

// openCall makes an event of the call that a thread had not left when the
// recording ended, and adds it to its account.
func (a *assembly) openCall(r *history.Rank, area segment.Area, t int, end uint64, places map[uint16]int, at func(uint64) int64) {
	call, ok := OpenCallOf(area, t)
	if !ok || call.Since == 0 || call.Since >= end {
		return
	}
	account, ok := places[call.Account]
	if !ok {
		return
	}
	w := &r.Accounts[account]
	length := at(end) - at(call.Since)
	w.Timed++
	w.Time += length
	w.Longest = max(w.Longest, length)
	r.Events = append(r.Events, history.Event{
		Enter: at(call.Since), Leave: at(end), Account: account, Comm: w.Comm, Sequence: call.Sequence,
		Collective: call.Joined || collective(w.Function.Class), Thread: t, Weight: 1, Peers: call.Peers,
	})
}

func collective(c history.Class) bool {
	switch c {
	case history.AllToAll, history.FromRoot, history.ToRoot, history.Prefix, history.Neighbour, history.Create, history.Begin:
		return true
	}
	return false
}

// unrecorded notes the calls of threads for which there was no room.
func (a *assembly) unrecorded() {
	calls := int64(0)
	for _, r := range a.run.Ranks {
		calls += r.Unrecorded
	}
	if calls > 0 {
		a.note("%d calls are not recorded: EVENKEEL_THREADS=%d is too few threads at once.", calls, a.threadSlots)
	}
}

// missing notes the nodes that a world had and that left nothing.
func (a *assembly) missing(nodes []*segment.Segment) {
	seen := map[uint32]uint32{}
	had := map[uint32]uint32{}
	for _, n := range nodes {
		seen[n.Header.World]++
		had[n.Header.World] = n.Header.Nodes
	}
	for world, count := range had {
		if seen[world] < count {
			a.note("%d of %d nodes are missing: their recordings were not written to a directory that can be read here.", count-seen[world], count)
		}
	}
	running, ended := 0, 0
	for _, r := range a.run.Ranks {
		switch r.State {
		case history.Running:
			running++
		case history.Aborted, history.Exited, history.Killed:
			ended++
		}
	}
	at := a.lastSeen.Format(time.TimeOnly)
	switch {
	case running > 0 && ended > 0:
		a.note("The other ranks still ran at %s: the report goes up to then.", at)
	case running > 0:
		a.note("The job is still running; this is how it stood at %s.", at)
	}
}
