package wire

import (
	"strconv"

	"github.com/pkg/errors"
)

// Reason says why a packet was dropped, a command refused, or an operation given up. It is an error; OK is none.
// Reasons travel in answers: their numbers are part of the protocol.
type Reason uint8

// Why a packet was dropped. Whoever sent it hears nothing.
const (
	OK          Reason = iota
	Short              // it ends before its header or tag does
	Version            // of another version of the protocol
	UnknownType        // of a type that there is none of
	Malformed          // its fields contradict each other or its length
	Job                // of another job
	Misrouted          // for another task
	UnknownKey         // under a key that this task has not
	Forged             // its tag is wrong
	EarlierLife        // from or for an earlier life of a task that has started again
	Stale              // of an epoch that is over, or was never confirmed
	Repeated           // it has been here before
	Late               // of an operation whose notification has been given
	Beyond             // further ahead than the windows allow
	Overload           // there is no room for what it asks for; it will be asked again

	// Why the target refused a command. The initiator gets it as the operation's error, and nothing was written.
	NoWindow   // no such window is open
	Range      // outside what the window or its registered ranges cover
	Protection // the window or its pages do not allow it
	Alignment  // an atomic on an address that is no multiple of its width
	Operation  // the target does not do that
	Length     // a length that can't be
	NoHandler  // the target has no such handler
	Credential // the window wants a narrower key than the command came under
	Fault      // the target failed while it did it

	// Why the initiator gave an operation up. Whether it was done is not known.
	Silent    // nothing was heard from the target for the configured time
	Dead      // the target is known to have ended
	Exhausted // the pair's epochs or sequences are used up; they never start again
	Closed    // the initiator itself has ended its part in the job

	reasons
)

// Reasons is how many there are: the length of an array of counters by reason.
const Reasons = int(reasons)

var reasonTexts = [reasons]string{
	OK: "no error", Short: "packet too short", Version: "another version of the protocol", UnknownType: "unknown type of packet",
	Malformed: "malformed packet", Job: "packet of another job", Misrouted: "packet for another task", UnknownKey: "unknown key",
	Forged: "wrong authentication tag", EarlierLife: "packet of an earlier life of a task", Stale: "packet of an old epoch",
	Repeated: "repeated packet", Late: "packet of a finished operation", Beyond: "packet beyond the windows",
	Overload: "no room for the request", NoWindow: "no such window is open", Range: "outside of what the window shows: give an offset and a length within what its task opened",
	Protection: "not allowed by the window's protection", Alignment: "address not aligned to the width",
	Operation: "operation not supported", Length: "wrong length", NoHandler: "no such handler",
	Credential: "the window wants a narrower key", Fault: "failed at the target",
	Silent: "the target stays silent", Dead: "the target has ended", Exhausted: "epochs are used up", Closed: "this task has left the job",
}

// Error says it in words. OK has some too, since counters are listed by reason.
func (r Reason) Error() string {
	if int(r) < Reasons {
		return reasonTexts[r]
	}
	return "reason " + strconv.Itoa(int(r))
}

// Refusal says whether a target answers with r.
func (r Reason) Refusal() bool { return r >= NoWindow && r <= Fault }

// ReasonOf is the reason that an error of a target's memory or handler has in its chain; Fault if it has none that a
// target may give, OK for nil.
func ReasonOf(err error) Reason {
	if err == nil {
		return OK
	}
	var r Reason
	if errors.As(err, &r) && r.Refusal() {
		return r
	}
	return Fault
}
