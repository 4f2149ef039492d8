//go:build ignore

// The input from which `go generate` makes layout_gen.go.

package segment

// #include "segment.h"
import "C"

const (
	magic         = C.EK_SEGMENT_MAGIC
	LayoutVersion = C.EK_LAYOUT_VERSION
	pageSize      = C.EK_PAGE
	maxModules    = C.EK_MODULES
	maxComms      = C.EK_COMMS
	maxRegions    = C.EK_REGIONS
	maxWindows    = C.EK_WINDOWS
	Bins          = C.EK_BINS

	barriers       = C.EK_BARRIERS
	barrierHistory = C.EK_BARRIER_HISTORY

	NoPeer          = C.EK_NO_PEER
	AnyPeer         = C.EK_ANY_PEER
	FarPeer         = C.EK_FAR_PEER
	EventCollective = C.EK_EVENT_COLLECTIVE
	EventGuessed    = C.EK_EVENT_GUESSED

	ClockMonotonic = C.EK_CLOCK_MONOTONIC
	ClockTSC       = C.EK_CLOCK_TSC

	ReportMade  = C.EK_REPORT_MADE
	ReportEarly = C.EK_REPORT_EARLY

	RankEmpty      = C.EK_RANK_EMPTY
	RankRunning    = C.EK_RANK_RUNNING
	RankFinalizing = C.EK_RANK_FINALIZING
	RankFinalized  = C.EK_RANK_FINALIZED
	RankAborted    = C.EK_RANK_ABORTED
	RankExited     = C.EK_RANK_EXITED
	RankKilled     = C.EK_RANK_KILLED

	CommInter      = C.EK_COMM_INTER
	CommFreed      = C.EK_COMM_FREED
	CommOther      = C.EK_COMM_OTHER
	CommForeign    = C.EK_COMM_FOREIGN
	CommTopology   = C.EK_COMM_TOPOLOGY
	CommTopologies = C.EK_COMM_TOPOLOGIES

	CurrentTimed = C.EK_CURRENT_TIMED
	CurrentRank  = C.EK_CURRENT_RANK
	CurrentCalls = C.EK_CURRENT_CALLS

	AttentionCall = C.EK_ATTENTION_CALL
	AttentionNext = C.EK_ATTENTION_NEXT

	ThreadFree = C.EK_THREAD_FREE

	FastBarriers      = C.EK_FAST_BARRIERS
	FastBarriersPlain = C.EK_FAST_BARRIERS_PLAIN
	FastSends         = C.EK_FAST_SENDS
	FastSentBytes     = C.EK_FAST_SENT_BYTES
	FastSendsFull     = C.EK_FAST_SENDS_FULL
	FastTypes         = C.EK_FAST_TYPES
	FastTypesPlain    = C.EK_FAST_TYPES_PLAIN
	FastPacked        = C.EK_FAST_PACKED
	FastPackedBytes   = C.EK_FAST_PACKED_BYTES
	FastUnpacked      = C.EK_FAST_UNPACKED
	FastUnpackedBytes = C.EK_FAST_UNPACKED_BYTES
	FastSleeps        = C.EK_FAST_SLEEPS
	FastSleptNs       = C.EK_FAST_SLEPT_NS
	FastIdleRuns      = C.EK_FAST_IDLE_RUNS
	FastIdleRanNs     = C.EK_FAST_IDLE_RAN_NS
	FastHooks         = C.EK_FAST_HOOKS
	FastHooksOverrun  = C.EK_FAST_HOOKS_OVERRUN
	FastLoans         = C.EK_FAST_LOANS
	FastLentNs        = C.EK_FAST_LENT_NS
	FastMoves         = C.EK_FAST_MOVES
	FastHiddenNs      = C.EK_FAST_HIDDEN_NS
	FastEarly         = C.EK_FAST_EARLY
)

type (
	ClockAnchor C.struct_ek_clock_anchor
	ClockSync   C.struct_ek_clock_sync
	Header      C.struct_ek_header
	Rank        C.struct_ek_rank
	Module      C.struct_ek_module
	Comm        C.struct_ek_comm
	Region      C.struct_ek_region
	Window      C.struct_ek_window
	Bin         C.struct_ek_bin
	Barrier     C.struct_ek_barrier
	Arrivals    C.struct_ek_arrivals
	Account     C.struct_ek_account
	Event       C.struct_ek_event
	Thread      C.struct_ek_thread
)
