package job

import (
	"evenkeel/runtime/history"
	"evenkeel/runtime/segment"
)

// OpenCall is the MPI call that a thread is in.
type OpenCall struct {
	Account  uint16 // its account in the thread
	Since    uint64 // ticks when it began; of a call that is not timed, when the drainer first saw it; 0: not known
	Exact    bool   // Since is from the call itself
	Sequence uint64 // of a collective on its communicator
	Peers    []history.Peer
	Joined   bool // it completes a nonblocking collective, the one with that Sequence
}

// OpenCallOf returns the call that the t-th thread is in, if it is in one. The
// thread may be running: what changes under our eyes is looked at again.
func OpenCallOf(area segment.Area, t int) (OpenCall, bool) {
	thread := area.Threads[t].Thread
	for range 100 {
		current := segment.Load(&thread.Current)
		if current == 0 {
			return OpenCall{}, false
		}
		call := OpenCall{
			Account:  uint16(current - 1),
			Sequence: segment.Load(&thread.CurrentSequence),
			Peers:    peers(thread.CurrentPeer[:]),
			Joined:   segment.Load(&thread.Joined) == current,
		}
		if current&segment.CurrentTimed != 0 {
			call.Since, call.Exact = segment.Load(&thread.CurrentEnter), true
		} else if segment.Load(&thread.SeenCurrent) == current {
			call.Since = segment.Load(&thread.FirstSeen)
		}
		if segment.Load(&thread.Current) == current {
			return call, true
		}
	}
	return OpenCall{}, false
}
