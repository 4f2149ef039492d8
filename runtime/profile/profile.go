// Package profile is the schema of profile.json: everything that evenkeel
// concluded about one job, in the form that the report, the HTML page and
// other people's scripts read. docs/profile.md describes it for them.
//
// All times are seconds, all shares and efficiencies between 0 and 1. A figure
// that could not be had is null, never 0. Fields are added within a version;
// a change of meaning raises Version.
package profile

// Format and Version stand at the head of each profile.json.
const (
	Format  = "evenkeel-profile"
	Version = 1
)

// Profile is one job.
type Profile struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	Job     string `json:"job"`
	Command string `json:"command"`
	Created string `json:"created"` // RFC 3339: when MPI_Init made the segment
	// Complete is false when something is missing; Notes say what, why and
	// what to do, one sentence each.
	Complete bool     `json:"complete"`
	Notes    []string `json:"notes"`

	Total Scope  `json:"total"`
	Nodes []Node `json:"nodes"`
	Ranks []Rank `json:"ranks"`
	// Regions, Communicators and CallSites divide Total in three ways; each
	// list is ordered by waiting time, the largest first.
	Regions       []Region       `json:"regions"`
	Communicators []Communicator `json:"communicators"`
	CallSites     []CallSite     `json:"call_sites"`
	// Culprits are the ranks that made others wait, the costliest first;
	// WaitsFor the pairs, the costliest first, at most 1024.
	Culprits []Culprit `json:"culprits"`
	WaitsFor []Pair    `json:"waits_for"`
	// Worst are the synchronising operations with the widest spread of
	// arrival that were seen, the widest first, at most 64.
	Worst    []Operation `json:"worst_operations"`
	Balance  Balance     `json:"balance"`
	Timeline Timeline    `json:"timeline"`
	Quality  Quality     `json:"quality"`
	Fast     Fast        `json:"fast"`
	Idle     Idle        `json:"idle"`
	// Windows are those of global shared memory through which something went out, by rank, at most MostWindows.
	Windows []Window `json:"windows"`
}

// MostWindows is how many windows a profile lists; those through which most commands went.
const MostWindows = 1024

// Window is what went out through one rank's window of global shared memory, as of its last fence.
type Window struct {
	World    int   `json:"world"`
	Rank     int   `json:"rank"`
	Job      int   `json:"job"`    // of the process: from 1; 0: of several
	Number   int   `json:"number"` // 0: of several windows
	Puts     int64 `json:"puts"`
	PutBytes int64 `json:"put_bytes"`
	Gets     int64 `json:"gets"`
	GetBytes int64 `json:"get_bytes"`
	Atomics  int64 `json:"atomics"`
	Refused  int64 `json:"refused"` // commands that were not issued, or failed
	Fences   int64 `json:"fences"`
}

// Idle is what ranks did while they waited, over all ranks.
type Idle struct {
	Sleeps       int64   `json:"sleeps"` // of waiting threads (EVENKEEL_WAIT)
	Slept        float64 `json:"slept"`
	Runs         int64   `json:"runs"` // times that an idle program was let run (EVENKEEL_IDLE_RUN)
	Ran          float64 `json:"ran"`
	Hooks        int64   `json:"hooks"`         // housekeeping: hooks of the program, and our own
	HooksOverrun int64   `json:"hooks_overrun"` // those that took longer than was declared
	Loans        int64   `json:"loans"`         // times that a rank lent its cores (EVENKEEL_LEND)
	Lent         float64 `json:"lent"`
}

// Fast is what evenkeel did in MPI's place (EVENKEEL_FAST), over all ranks.
type Fast struct {
	Barriers      int64 `json:"barriers"`       // calls of MPI_Barrier that went over the node's memory
	BarriersPlain int64 `json:"barriers_plain"` // that were left to MPI though the way was open
	Sends         int64 `json:"sends"`          // sends that returned with their message in a shadow buffer
	SentBytes     int64 `json:"sent_bytes"`
	SendsFull     int64 `json:"sends_full"`  // sends left to MPI because no slot was free
	Types         int64 `json:"types"`       // derived datatypes that were compiled
	TypesPlain    int64 `json:"types_plain"` // derived datatypes left to MPI
	Packed        int64 `json:"packed"`      // times that data of a compiled type was gathered
	PackedBytes   int64 `json:"packed_bytes"`
	Unpacked      int64 `json:"unpacked"` // times that it was scattered
	UnpackedBytes int64 `json:"unpacked_bytes"`
	Moves         int64 `json:"moves"`           // times that a partition's items went to new owners
	Hidden        int64 `json:"setup_hidden_ns"` // set-up for that while slower ranks computed, nanoseconds
	Early         int64 `json:"setup_receives"`  // messages whose receives were begun then
}

// Split is where the core time of some ranks went. Useful + MPI is the
// elapsed time of these ranks; Late + Transfer + Own + Unsplit is MPI.
type Split struct {
	Useful   float64 `json:"useful"`   // outside MPI
	MPI      float64 `json:"mpi"`      // inside MPI
	Late     float64 `json:"late"`     // waiting for a rank that had not arrived yet
	Transfer float64 `json:"transfer"` // everybody there, data or notice on its way
	Own      float64 `json:"own"`      // MPI's own work: what the call takes without any waiting
	Unsplit  float64 `json:"unsplit"`  // not attributable from what was recorded
	// Error is the standard error of MPI (and, with the sign turned, of
	// Useful) from timing a sample of the calls; LateError that of Late, the
	// uncertainty of the clocks across hosts included.
	Error     float64 `json:"error"`
	LateError float64 `json:"late_error"`
}

// Efficiencies are the POP metrics (pop-coe.eu). Parallel = LoadBalance ×
// Communication, Communication = Serialisation × Transfer.
type Efficiencies struct {
	Parallel      *float64 `json:"parallel"`
	LoadBalance   *float64 `json:"load_balance"`
	Communication *float64 `json:"communication"`
	Serialisation *float64 `json:"serialisation"`
	Transfer      *float64 `json:"transfer"`
}

// Scope is the whole run or a part of it, over all ranks.
type Scope struct {
	Elapsed float64 `json:"elapsed"` // the longest of any rank
	Ranks   int     `json:"ranks"`
	Split
	Efficiencies Efficiencies `json:"efficiencies"`
	Calls        int64        `json:"calls"`
}

// Node is one host of one world.
type Node struct {
	World  int    `json:"world"`
	Number int    `json:"number"`
	Host   string `json:"host"`
	Ranks  int    `json:"ranks"`
	// ClockOffset is this host's clock minus that of node 0; the truth is
	// within ±ClockError. Null where it was not measured.
	ClockOffset *float64 `json:"clock_offset"`
	ClockError  *float64 `json:"clock_error"`
}

// Rank is one rank.
type Rank struct {
	World   int     `json:"world"`
	Rank    int     `json:"rank"`
	Node    int     `json:"node"`  // index into Nodes
	State   string  `json:"state"` // finalized, running, aborted, exited, killed
	Elapsed float64 `json:"elapsed"`
	Split
	Calls int64 `json:"calls"`
	Bytes int64 `json:"bytes"`
	// Caused is the core time that other ranks waited for this one.
	Caused float64 `json:"caused"`
	// Last and First count the synchronising operations to which this rank
	// came last or first, out of Operations that were looked at.
	Last       int64 `json:"last"`
	First      int64 `json:"first"`
	Operations int64 `json:"operations"`
}

// Region is a marked part of the program; "whole run" is the rest.
type Region struct {
	Name    string `json:"name"`
	Parent  string `json:"parent"`
	Entries int64  `json:"entries"`
	Scope
}

// Communicator is one communicator, over all its members.
type Communicator struct {
	ID    string `json:"id"` // hexadecimal
	Name  string `json:"name"`
	Size  int    `json:"size"`
	Calls int64  `json:"calls"`
	// Of Split, Useful is 0: useful time belongs to no communicator.
	Split
	Operations int64   `json:"operations"` // synchronising operations looked at
	Spread     float64 `json:"spread"`     // median of last arrival − first
	// LastRank is the member (its world rank, -1 if unknown) that came last most often, in
	// LastShare of the operations.
	LastRank  int     `json:"last_rank"`
	LastShare float64 `json:"last_share"`
}

// CallSite is one place in the program that calls MPI, over all ranks: a line, where it is known.
type CallSite struct {
	Call     string  `json:"call"`     // MPI_Allreduce
	Module   string  `json:"module"`   // base name of the program or library
	Offset   string  `json:"offset"`   // hexadecimal, in the module's file
	Function string  `json:"function"` // empty where symbols do not tell
	File     string  `json:"file"`
	Line     int     `json:"line"` // 0 where not known
	Calls    int64   `json:"calls"`
	Timed    int64   `json:"timed"`
	Bytes    int64   `json:"bytes"`
	Longest  float64 `json:"longest"`
	Split
}

// Culprit is a rank that others waited for.
type Culprit struct {
	World  int     `json:"world"`
	Rank   int     `json:"rank"`
	Cost   float64 `json:"cost"`   // core-seconds that others waited for it
	Share  float64 `json:"share"`  // of all Late time
	Times  int64   `json:"times"`  // operations in which it was waited for
	Victim int     `json:"victim"` // the rank that lost most to it
}

// Pair says that Waiter waited Cost core-seconds for Culprit.
type Pair struct {
	World   int     `json:"world"`
	Waiter  int     `json:"waiter"`
	Culprit int     `json:"culprit"`
	Cost    float64 `json:"cost"`
	Times   int64   `json:"times"`
}

// Operation is one synchronising operation.
type Operation struct {
	Call         string    `json:"call"`
	Communicator string    `json:"communicator"` // name
	Sequence     uint64    `json:"sequence"`
	Begin        float64   `json:"begin"`  // first arrival, since the start of the run
	Spread       float64   `json:"spread"` // last arrival − first
	First        int       `json:"first"`  // world rank
	Last         int       `json:"last"`
	Cost         float64   `json:"cost"`     // core-seconds waited for the last
	Error        float64   `json:"error"`    // of Spread, from the clocks
	Arrivals     []Arrival `json:"arrivals"` // in order of arrival, at most 64: the first 32 and the last 32
}

// Arrival is one rank's coming to an operation.
type Arrival struct {
	Rank int     `json:"rank"`
	At   float64 `json:"at"` // after the first arrival
}

// Balance says how the load is spread and how steadily, and what would help.
type Balance struct {
	// Imbalance is max(useful) / mean(useful) − 1 over the ranks.
	Imbalance float64 `json:"imbalance"`
	// Kind: "balanced", "constant" (the same ranks are always slow),
	// "drifting" (who is slow changes slowly), "random" (it changes from one
	// cycle to the next), or "unknown" (too little was seen).
	Kind string `json:"kind"`
	// Constant, Drifting and Random divide the variance of useful time
	// between ranks and cycles; they sum to 1, or are all 0.
	Constant float64 `json:"constant"`
	Drifting float64 `json:"drifting"`
	Random   float64 `json:"random"`
	// Advice: "nothing", "repartition" or "split"; Why is one sentence with
	// the figures that it rests on. Gain is the share of elapsed time that
	// perfect balance would save at most.
	Advice string  `json:"advice"`
	Why    string  `json:"why"`
	Gain   float64 `json:"gain"`
	// Slowest are up to 8 ranks with the most useful time, the most first.
	Slowest []int `json:"slowest"`
}

// Timeline is the run cut into bins of equal width.
type Timeline struct {
	BinWidth float64 `json:"bin_width"`
	// MPI[r][b] is the share of bin b that rank Ranks[r] spent in MPI, -1 where
	// the rank was not running; Late[r][b] the share it waited for a late rank,
	// as far as it is known. At most 256 rows: beyond, a row is the mean of
	// Group neighbouring ranks.
	MPI   [][]float64 `json:"mpi"`
	Late  [][]float64 `json:"late"`
	Group int         `json:"group"`
	// Efficiency and LoadBalance per bin, over all ranks.
	Efficiency  []float64 `json:"efficiency"`
	LoadBalance []float64 `json:"load_balance"`
}

// Quality says what the figures rest on.
type Quality struct {
	Calls       int64   `json:"calls"`
	TimedCalls  int64   `json:"timed_calls"`
	Events      int64   `json:"events"`       // kept
	EventsSeen  int64   `json:"events_seen"`  // kept or not
	EventsLost  int64   `json:"events_lost"`  // overwritten before they were looked at
	Unrecorded  int64   `json:"unrecorded"`   // calls by threads without room
	Operations  int64   `json:"operations"`   // matched on all their members
	ClockError  float64 `json:"clock_error"`  // largest between any two ranks
	SampleLevel int     `json:"sample_level"` // 0: everything was kept
}
