package wire

import "strconv"

// Window names a window of the target task: a part of its memory that others may reach. Which ids are open, and what
// they allow, only the target knows.
type Window uint32

// Handler names what runs at the target for an active message, or when all of a PUT has arrived. None is no handler.
type Handler uint32

// None as the handler of a PUT: the target is not told of it.
const None Handler = 0

// Op is what a command does to the target's memory.
type Op uint8

// The operations of global shared memory. PUT and GET have any length and are idempotent: they may run again until
// their one notification. The rest are guaranteed-once deliveries: they run once, and fit into one packet.
const (
	Put Op = iota + 1
	Get
	Add
	And
	Or
	Xor
	Swap
	CompareAndSwap
	FetchAndAdd
	FetchAndAnd
	FetchAndOr
	FetchAndXor
	Message // an active message
	ops
)

var opNames = [ops]string{
	Put: "PUT", Get: "GET", Add: "ADD", And: "AND", Or: "OR", Xor: "XOR", Swap: "SWAP", CompareAndSwap: "COMPARE-AND-SWAP",
	FetchAndAdd: "FETCH-AND-ADD", FetchAndAnd: "FETCH-AND-AND", FetchAndOr: "FETCH-AND-OR", FetchAndXor: "FETCH-AND-XOR",
	Message: "active message",
}

// Valid says whether o is an operation.
func (o Op) Valid() bool { return o >= Put && o < ops }

// Atomic says whether o is an atomic update of one word.
func (o Op) Atomic() bool { return o >= Add && o <= FetchAndXor }

// Fetches says whether the initiator wants the word as it was before.
func (o Op) Fetches() bool { return o >= Swap && o <= FetchAndXor }

func (o Op) String() string {
	if o.Valid() {
		return opNames[o]
	}
	return "operation " + strconv.Itoa(int(o))
}

// Apply is what an atomic operation makes of a word of so many bytes: a pure function, by which memories and tests
// agree. For other operations it returns the word unchanged.
func (o Op) Apply(width int, word, operand, compare uint64) uint64 {
	result := word
	mask := ^uint64(0)
	if width == 4 {
		mask >>= 32
	}
	switch o {
	case Add, FetchAndAdd:
		result = word + operand
	case And, FetchAndAnd:
		result = word & operand
	case Or, FetchAndOr:
		result = word | operand
	case Xor, FetchAndXor:
		result = word ^ operand
	case Swap:
		result = operand
	case CompareAndSwap:
		if word&mask == compare&mask {
			result = operand
		}
	}
	return result & mask
}
