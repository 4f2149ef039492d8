package analysis

import (
	"math"
	"slices"

	"evenkeel/runtime/history"
)

// Functions that the tests call.
var (
	barrier   = history.Function{Name: "MPI_Barrier", Class: history.AllToAll}
	allreduce = history.Function{Name: "MPI_Allreduce", Class: history.AllToAll}
	bcast     = history.Function{Name: "MPI_Bcast", Class: history.FromRoot}
	reduce    = history.Function{Name: "MPI_Reduce", Class: history.ToRoot}
	scan      = history.Function{Name: "MPI_Scan", Class: history.Prefix}
	neighbour = history.Function{Name: "MPI_Neighbor_alltoall", Class: history.Neighbour}
	ibcast    = history.Function{Name: "MPI_Ibcast", Class: history.Begin}
	ibarrier  = history.Function{Name: "MPI_Ibarrier", Class: history.Begin}
	send      = history.Function{Name: "MPI_Send", Class: history.Send}
	recv      = history.Function{Name: "MPI_Recv", Class: history.Recv}
	isend     = history.Function{Name: "MPI_Isend", Class: history.Local}
	waitall   = history.Function{Name: "MPI_Waitall", Class: history.Wait}
	lock      = history.Function{Name: "ek_upc_lock", Class: history.Held}
	get       = history.Function{Name: "ek_gsm_get", Class: history.Access}
	sendrecv  = history.Function{Name: "MPI_Sendrecv", Class: history.SendRecv}
)

const worldID = 77

// builder puts a run together as a recorder would leave it.
type builder struct {
	run      history.Run
	accounts []map[accountKey]int // by rank
}

type accountKey struct {
	thread   int
	function string
	comm     int
	region   int
	offset   uint64
}

// made is one call, as the program makes it.
type made struct {
	function     history.Function
	enter, leave int64
	comm         int
	collective   bool
	sequence     uint64
	peers        []history.Peer
	thread       int
	region       int
	offset       uint64
	weight       int64 // of the call among those that are timed; 0 for 1
	eventWeight  int64 // of its event, if that is another
	bytes        int64
	untimed      bool
	guessed      bool // enter is a guess
	noEvent      bool
}

// newBuilder begins a run of so many ranks on one node, from start to end.
func newBuilder(ranks int, start, end int64) *builder {
	b := &builder{}
	b.run = history.Run{Job: "test", Complete: true, Nodes: []history.Node{{World: 1, Host: "a", ClockKnown: true}}}
	for r := range ranks {
		b.addRank(history.Task{World: 1, Rank: r}, start, end)
	}
	return b
}

func (b *builder) addRank(task history.Task, start, end int64) *history.Rank {
	b.run.Ranks = append(b.run.Ranks, history.Rank{
		Task: task, State: history.Finalized, Command: "app", CPUs: 1, Start: start, End: end, Threads: 1,
		Regions: []history.Region{{Name: "whole run", Time: end - start}},
	})
	b.accounts = append(b.accounts, map[accountKey]int{})
	return &b.run.Ranks[len(b.run.Ranks)-1]
}

// comm adds a communicator over world ranks, and returns its index on each
// member; world is the first made.
func (b *builder) comm(id uint64, name string, members ...int) int {
	index := 0
	for place, r := range members {
		rank := &b.run.Ranks[r]
		index = len(rank.Comms)
		rank.Comms = append(rank.Comms, history.Comm{ID: id, Name: name, Size: len(members), Rank: place, Members: members})
	}
	return index
}

func (b *builder) world() int {
	members := make([]int, len(b.run.Ranks))
	for r := range members {
		members[r] = r
	}
	return b.comm(worldID, "MPI_COMM_WORLD", members...)
}

// call records one call of a rank.
func (b *builder) call(r int, m made) {
	rank := &b.run.Ranks[r]
	key := accountKey{m.thread, m.function.Name, m.comm, m.region, m.offset}
	i, known := b.accounts[r][key]
	if !known {
		i = len(rank.Accounts)
		b.accounts[r][key] = i
		rank.Accounts = append(rank.Accounts, history.Account{
			Thread: m.thread, Function: m.function, Comm: m.comm, Region: m.region,
			Module: "/bin/app", Offset: m.offset, Shortest: math.MaxInt64,
		})
		rank.Threads = max(rank.Threads, m.thread+1)
	}
	a := &rank.Accounts[i]
	a.Calls++
	if m.collective && m.function.Class != history.Wait {
		comm := &rank.Comms[m.comm]
		comm.Next = max(comm.Next, m.sequence+1)
	}
	if m.untimed {
		return
	}
	w := max(m.weight, 1)
	d := m.leave - m.enter
	a.Timed++
	a.Time += w * d
	a.Variance += float64(w*(w-1)) * float64(d) * float64(d)
	a.Shortest, a.Longest = min(a.Shortest, d), max(a.Longest, d)
	if m.noEvent {
		return
	}
	rank.Offered++
	rank.Events = append(rank.Events, history.Event{
		Enter: m.enter, Leave: m.leave, Guessed: m.guessed, Account: i, Comm: m.comm, Sequence: m.sequence, Collective: m.collective,
		Thread: m.thread, Weight: max(w, m.eventWeight), Bytes: m.bytes, Peers: m.peers,
	})
}

// done returns the run, in the order that a recorder gives.
func (b *builder) done() *history.Run {
	for r := range b.run.Ranks {
		rank := &b.run.Ranks[r]
		slices.SortStableFunc(rank.Events, func(x, y history.Event) int { return int(min(max(x.Enter-y.Enter, -1), 1)) })
		for a := range rank.Accounts {
			if rank.Accounts[a].Timed == 0 {
				rank.Accounts[a].Shortest = 0
			}
		}
		if rank.Bins == nil {
			rank.BinWidth = max((rank.End-rank.Start+63)/64, 1)
			rank.Bins = make([]int64, 64)
			for _, e := range rank.Events {
				if e.Thread == 0 {
					addBins(rank, e.Enter, e.Leave)
				}
			}
		}
	}
	return &b.run
}

func addBins(rank *history.Rank, enter, leave int64) {
	for t := max(enter, rank.Start); t < leave; {
		bin := (t - rank.Start) / rank.BinWidth
		if bin >= int64(len(rank.Bins)) {
			return
		}
		next := min(rank.Start+(bin+1)*rank.BinWidth, leave)
		rank.Bins[bin] += next - t
		t = next
	}
}

// peers lists ranks as peers.
func peers(ranks ...int) []history.Peer {
	var list []history.Peer
	for _, r := range ranks {
		list = append(list, history.Peer(r))
	}
	return list
}
