// Package history holds what the ranks of a job recorded, on one aligned
// clock, and the pure functions over it: which events to keep in a long run,
// and in which order the ranks arrived at each synchronising operation.
//
// It knows no MPI, no shared memory and no clock. runtime/job fills a Run from
// node segments; runtime/analysis reads it.
package history

import "math"

// Task names one rank of a job: its world (1 is the one that mpirun started,
// spawned ones follow) and its rank in that world's MPI_COMM_WORLD.
type Task struct {
	World int `json:"world"`
	Rank  int `json:"rank"`
}

// Run is everything recorded of one job. Times are nanoseconds on the clock
// of the first world's node 0; they are comparable between ranks to within
// the sum of the two nodes' ClockError.
type Run struct {
	Job   string
	Nodes []Node
	Ranks []Rank // ordered by Task
	// Complete is false when a rank has not reached MPI_Finalize or a node's
	// data is missing; Notes then say what and why, in words.
	Complete bool
	Notes    []string
}

// Node is one node of one world.
type Node struct {
	World       int
	Number      int
	Host        string
	ClockOffset int64 // ns: its CLOCK_MONOTONIC minus that of node 0, at the start
	ClockDrift  int64 // ns: how much the offset had changed at the end
	ClockError  int64 // ns: the truth is within ± this of the aligned time
	ClockKnown  bool  // false: several nodes and no measurement; times are not comparable
}

// Rank is what one rank recorded.
type Rank struct {
	Task    Task
	Node    int // index into Run.Nodes
	PID     int
	State   State
	Command string
	CPUs    int // cores in its affinity mask
	// Start is when MPI_Init returned; End when MPI_Finalize was called, or,
	// for a rank that never did, its last recorded moment.
	Start, End int64
	Paused     int64 // ns with recording switched off, within Start..End

	Accounts []Account
	Comms    []Comm   // Account.Comm and Event.Comm index it
	Regions  []Region // Account.Region indexes it; 0 is the whole run
	Threads  int      // that called MPI
	OneOnly  bool     // MPI granted no more than MPI_THREAD_FUNNELED: its main thread alone may call
	// Events are the timed calls that were kept, by Enter. Level says which:
	// at 0 all of them, at n those that Keep lets through.
	Events []Event
	Level  int
	// Offered is how many timed calls left an event, kept or not; Lost how
	// many of them were overwritten before they could be looked at.
	Offered, Lost int64
	Unrecorded    int64   // calls by threads for which there was no room
	Bins          []int64 // ns in MPI of the main thread, per bin
	BinWidth      int64   // ns; bin 0 begins at Start
	Fast          Fast
	Idle          Idle
	Windows       []Window // of global shared memory
	Foreign       int64    // packets that no task of a job had sent, if there were many
}

// Window is what went out through a window of global shared memory, as of its last fence.
type Window struct {
	Job    int // of the process: from 1
	Number int // 0: of several windows
	Puts, PutBytes, Gets, GetBytes, Atomics,
	Refused, Fences int64
}

// Idle is what a rank did while it waited.
type Idle struct {
	Sleeps, SleptNs     int64 // EVENKEEL_WAIT
	Runs, RanNs         int64 // EVENKEEL_IDLE_RUN
	Hooks, HooksOverrun int64 // housekeeping; of which took longer than declared
	Loans, LentNs       int64 // EVENKEEL_LEND
}

// Add adds what another rank did.
func (i *Idle) Add(j Idle) {
	i.Sleeps += j.Sleeps
	i.SleptNs += j.SleptNs
	i.Runs += j.Runs
	i.RanNs += j.RanNs
	i.Hooks += j.Hooks
	i.HooksOverrun += j.HooksOverrun
	i.Loans += j.Loans
	i.LentNs += j.LentNs
}

// Fast is what the ways of EVENKEEL_FAST did in a rank.
type Fast struct {
	Barriers, BarriersPlain     int64 // over the node's memory; left to MPI
	Sends, SentBytes, SendsFull int64 // through shadow buffers; left to MPI as no slot was free
	Types, TypesPlain           int64 // datatypes compiled; left to MPI
	Packed, PackedBytes         int64 // times that such data was gathered
	Unpacked, UnpackedBytes     int64 // and scattered
	Moves, Hidden               int64 // of a partition's items; ns of set-up for them while others computed
	Early                       int64 // messages whose receives were begun then
}

// Add adds what another rank's did.
func (f *Fast) Add(g Fast) {
	f.Barriers += g.Barriers
	f.BarriersPlain += g.BarriersPlain
	f.Sends += g.Sends
	f.SentBytes += g.SentBytes
	f.SendsFull += g.SendsFull
	f.Types += g.Types
	f.TypesPlain += g.TypesPlain
	f.Packed += g.Packed
	f.PackedBytes += g.PackedBytes
	f.Unpacked += g.Unpacked
	f.UnpackedBytes += g.UnpackedBytes
	f.Moves += g.Moves
	f.Hidden += g.Hidden
	f.Early += g.Early
}

// State is how a rank's recording ended.
type State int

// The states of a rank.
const (
	Running   State = iota // alive, or killed where nobody could tell
	Finalized              // reached MPI_Finalize
	Aborted                // called MPI_Abort
	Exited                 // left through exit() without MPI_Finalize
	Killed                 // its process is gone without any of these
)

// Class is the kind of an MPI function, as far as waiting goes; each function
// in mpi.table has one.
type Class int

// The classes.
const (
	Local     Class = iota // cannot wait for another rank: posting, testing, freeing
	Send                   // blocking send: may wait for its receiver
	Recv                   // blocking receive or probe: waits for its sender
	SendRecv               // both
	Wait                   // completes requests: waits for their peers
	AllToAll               // collective in which every rank needs every other: barrier, allreduce...
	FromRoot               // collective in which all need the root: bcast, scatter
	ToRoot                 // collective in which the root needs all: reduce, gather
	Prefix                 // rank r needs the ranks below it: scan, exscan
	Neighbour              // collective over the neighbours of a topology
	Create                 // creates or frees a communicator, window or file collectively
	Sync                   // one-sided synchronisation between some ranks: lock, PSCW, flush
	Begin                  // starts a nonblocking collective; a Wait completes it
	Held                   // waits for the rank that it names, from begin to end: a lock that has an owner
	Access                 // moves data of another rank, which need not do anything for it
)

// Function is one function of the table: MPI's, or evenkeel's own.
type Function struct {
	Name  string // "MPI_Allreduce"
	Class Class
}

// Account is what one thread did at one call site on one communicator in one
// region. Times of calls that were not timed are estimated from the random
// sample that was; Variance is that estimate's variance.
type Account struct {
	Thread   int
	Function Function
	Comm     int
	Region   int
	Module   string // path of the program or library that made the call
	Offset   uint64 // of the return address in Module's file
	Calls    int64
	Timed    int64
	Time     int64   // ns, estimate of the sum over all Calls
	Variance float64 // ns²
	Shortest int64   // ns, of the timed calls
	Longest  int64
	Bytes    int64 // estimate over all Calls
}

// Event is one timed call.
type Event struct {
	Enter, Leave int64
	Guessed      bool // Enter is about when it began: the call was not timed at first
	Account      int  // index into Rank.Accounts
	// Comm and Sequence identify a collective operation: the Sequence-th on
	// the communicator. For a Wait that completes a nonblocking collective they
	// are that operation's. Elsewhere Sequence is the tag.
	Comm       int
	Sequence   uint64
	Collective bool
	Thread     int
	Weight     int64 // this call stands for that many
	Bytes      int64
	// Peers are the ranks that it may wait for: source or destination, root,
	// or the peers of the requests. AnyPeer and FarPeer may stand among them.
	Peers []Peer
}

// Number is the number of an operation on its communicator. In the upper half
// of a Sequence stands which of several communicators of the same identity it
// is, by the order in which they were made.
func Number(sequence uint64) uint64 { return sequence & math.MaxUint32 }

// Peer is a rank of the same world, or AnyPeer or FarPeer.
type Peer int

// AnyPeer stands for MPI_ANY_SOURCE where the sender is not known, FarPeer for
// a rank of another world.
const (
	AnyPeer Peer = -1
	FarPeer Peer = -2
)

// Comm is a communicator as one rank saw it.
type Comm struct {
	ID      uint64 // equal on all members; its twins, of the same identity, share it
	Twin    int    // how many before it in Rank.Comms have the same ID
	Name    string
	Size    int    // both groups of an intercommunicator
	Rank    int    // in its own group of an intercommunicator
	Members []int  // world ranks in order; nil if not recorded
	Next    uint64 // Sequence of the first operation that the rank has not begun
	// Neighbours are the world ranks whose data this rank waits for in the neighbourhood
	// collectives of its topology; nil if not recorded.
	Neighbours []int
	Inter      bool
	Other      bool // stands for all communicators beyond those recorded singly; never matched
}

// Own is a number of its own: equal on all members, and not that of a twin.
func (c *Comm) Own() uint64 {
	if c.Twin == 0 {
		return c.ID
	}
	return Mix(c.ID + uint64(c.Twin))
}

// Region is a part of the program between a begin and an end mark.
type Region struct {
	Name    string
	Parent  int // index; 0's is 0
	Entries int64
	Time    int64 // ns spent in it, without regions inside it
	Off     bool  // not the program's: where recording was switched off
}
