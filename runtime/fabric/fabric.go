// Package fabric moves packets between the tasks of a job: one interface, and
// an implementation for each way that a packet can take.
//
// A fabric promises little. A packet may be lost, repeated, reordered or
// changed on its way, and may come from somebody who is no task of the job,
// unless an implementation says otherwise; what is made of that is the affair
// of the protocol above (pgas/gsm). It promises that Send and Receive never
// block, so that one thread can serve everything that a task has under way, and
// that Wait sleeps no longer than it is told to.
//
// The idea of one small interface that moves batches, behind which all tricks of
// a platform stay, is that of wireguard-go's conn.Bind.
package fabric

import (
	"time"

	"github.com/pkg/errors"
)

// Task is the number of a task in its job, from 0.
type Task uint32

// Class says which packets may overtake others.
type Class uint8

// Control packets (answers, confirmations, atomics, active messages) go before
// Bulk ones (the data of long transfers) wherever packets have to queue.
const (
	Control Class = iota
	Bulk
	Classes = 2
)

// Static is the path of packets that all take the same way, one after the
// other (static routing). Any other path stands for one of the ways that the
// fabric has, and packets of different paths may overtake each other (dynamic
// routing).
const Static uint8 = 0

// Packet is one packet: a slot for it in a batch.
type Packet struct {
	// Peer is the destination in Send, and in Receive the source as the packet
	// claims it; only its credential proves it.
	Peer  Task
	Class Class
	Path  uint8
	Data  []byte
}

// Fabric is one task's end of a network. Send, Receive and Wait are called by
// one goroutine at a time; Self, MTU and Wake may be called by any, at any time,
// Wake also after Close.
type Fabric interface {
	// Self is the task whose end this is.
	Self() Task

	// MTU is the length in bytes of the longest Data that Send takes to a peer.
	MTU(peer Task) int

	// Send takes as many packets, in their order, as there is room for now, and
	// says how many. Data may be used again when it returns. The error is about
	// the packet after those: it can't be sent, now or later (ErrPeer, ErrLength,
	// ErrClosed). A packet that the network refuses for reasons of its own is
	// lost, not an error.
	Send(packets []Packet) (int, error)

	// Receive fills packets with what has arrived, at most len(packets), and says
	// how many. Data is valid until the next Receive, and is the caller's to
	// overwrite.
	Receive(packets []Packet) (int, error)

	// Wait returns when something may have arrived, after a Wake that no Wait has
	// answered yet, or when the time has passed; it may return early. It looks at
	// the network for a short time first, which is fastest, and then sleeps.
	Wait(timeout time.Duration)

	// Wake has the Wait that is under way, or else the next one, return at once.
	Wake()

	// Close gives back what the fabric holds. Packets that were not received are
	// lost. Afterwards Send and Receive return ErrClosed.
	Close() error
}

// What a fabric refuses.
var (
	ErrPeer   = errors.New("this fabric leads to no such task")
	ErrLength = errors.New("a packet is longer than the fabric takes to that task")
	ErrClosed = errors.New("the fabric is closed")
)

// Meeting is how the tasks of a job find each other before the first packet:
// what MPI does for them while the job starts. Its calls are collective.
type Meeting interface {
	// Self is the calling task, Tasks how many there are.
	Self() Task
	Tasks() int
	// Exchange gives every task's bytes to every task, in the order of tasks. The
	// lengths may differ.
	Exchange(mine []byte) ([][]byte, error)
}

// Lossless is a fabric, or one over several, that knows of peers to which
// packets of a class arrive once, in order and unchanged, and to which nobody
// can send who is no task of the job.
type Lossless interface {
	Lossless(peer Task) bool
}

// Foreign is a fabric that counts the packets that it dropped itself, as no task of
// the job can have sent them so. It is asked by who calls Receive.
type Foreign interface {
	Foreign() uint64
}
