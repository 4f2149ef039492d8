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
			Peers:    appendPeers(nil, thread.CurrentPeer[:]),
			Joined:   segment.Load(&thread.Joined) == current,
		}
		if current&segment.CurrentRank != 0 {
			call.Peers = peerOf(area, t, int(call.Account), int(int32(call.Sequence)))
			call.Sequence = 0
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

// peerOf is the rank that an account's call may wait for, which its thread only
// named as a rank of the account's communicator.
func peerOf(area segment.Area, t, account, rank int) []history.Peer {
	const anySource = -1
	switch {
	case rank == anySource:
		return []history.Peer{history.AnyPeer}
	case rank < 0 || account >= len(area.Threads[t].Accounts):
		return nil
	}
	comm := int(uint16(area.Threads[t].Accounts[account].Key >> 16))
	if comm == 0 || comm >= len(area.Comms) {
		return []history.Peer{history.FarPeer}
	}
	c := area.Comms[comm]
	place := int(c.Members) + rank
	if rank >= int(c.MemberCount) || place >= len(area.Members) || segment.Load(&c.Flags)&segment.CommForeign != 0 {
		return []history.Peer{history.FarPeer}
	}
	return []history.Peer{history.Peer(area.Members[place])}
}
