package svd

import (
	"fmt"

	"github.com/pkg/errors"
)

// Kind is what a shared object is to its program.
type Kind uint8

// The kinds.
const (
	Scalar Kind = iota
	Array
	Pointer
	Lock
	kindsOfObject
)

func (k Kind) String() string {
	if k < kindsOfObject {
		return [...]string{"scalar", "array", "pointer", "lock"}[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Spec describes a shared object.
type Spec struct {
	// Address is where the object is at its home; for an object in All, where each
	// task's part of it is there, which is the same everywhere. What it counts is
	// the affair of the memory below (a window's offset).
	Address uint64
	Size    uint64 // bytes at Address; of an object in All, of the largest part
	// Blocking is an array's blocking factor in elements: how many follow each
	// other with affinity to one task; Whole: all. 1 for all that is no array.
	Blocking uint64
	Elements uint64 // of an array, in all tasks together
	Element  uint32 // bytes of an element
	Kind     Kind
}

// Whole is the blocking factor of an array in one block.
const Whole = 1<<64 - 1

// NoAddress is what task 0 gives to AllocateAll if it has no memory for the object.
const NoAddress = 1<<64 - 1

// check says why an object can't be so.
func (s Spec) check() error {
	switch {
	case s.Kind >= kindsOfObject:
		return errors.Errorf("%s is none", s.Kind)
	case s.Size == 0 || s.Element == 0:
		return errors.Errorf("%d bytes with elements of %d: neither may be 0", s.Size, s.Element)
	case s.Blocking == 0:
		return errors.New("a blocking factor of 0: for an array with affinity to one task give Whole, or the number of its elements")
	case s.Size%uint64(s.Element) != 0:
		return errors.Errorf("%d bytes are no multiple of the element's %d", s.Size, s.Element)
	case s.Address+s.Size < s.Address:
		return errors.Errorf("%d bytes at address %d go beyond the end of all addresses", s.Size, s.Address)
	case s.Blocking != Whole && s.Blocking > (1<<64-1)/uint64(s.Element):
		return errors.Errorf("a blocking factor of %d elements of %d bytes is more than can be addressed", s.Blocking, s.Element)
	}
	return nil
}

// difference says what is different in the arguments of task 0 and another.
func (s Spec) difference(other Spec) string {
	for _, field := range []struct {
		name      string
		own, that any
	}{
		{"size", s.Size, other.Size}, {"blocking factor", s.Blocking, other.Blocking},
		{"element size", s.Element, other.Element}, {"number of elements", s.Elements, other.Elements}, {"kind", s.Kind, other.Kind},
	} {
		if field.own != field.that {
			return fmt.Sprintf("its %s is %v, but task 0's is %v", field.name, field.that, field.own)
		}
	}
	return "none"
}

// State is how far an object is in its life.
type State uint8

// The states. Only what is Live may be used.
const (
	Live   State = iota
	Moving       // nobody may use the address until there is a new one
	Freed        // and its users are letting go
	states
)

func (s State) String() string {
	if s < states {
		return [...]string{"live", "moving", "freed"}[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// Entry is what the directory knows of an object. Each change at its home gives it
// the next version.
type Entry struct {
	Spec
	State   State
	Version uint64
}

// loses tells whether who uses an object as it was must let go of something when it
// becomes next.
func (e Entry) loses(next Entry) bool {
	return e.State == Live && (next.State != Live || next.Address != e.Address || next.Size < e.Size)
}

// Reason is why something was refused.
type Reason uint8

// The reasons.
const (
	NoObject    Reason = iota + 1 // never allocated
	WasFreed                      // freed, also if its index is in use again
	IsMoving                      // wait until it has moved
	NotHome                       // only the home may do that
	Unequal                       // arguments of a collective call
	BadSpec                       // no object can be so
	NotKnown                      // not in this replica: call Use and wait
	DeadTask                      // its home is dead, or one that has to take part
	TooMany                       // no index is left
	NoMemory                      // for a collective allocation
	NotMoving                     // Settle without Move
	NotReleased                   // a change like that is still under way
	reasons
)

func (r Reason) String() string {
	if r > 0 && r < reasons {
		return [...]string{"", "there never was such an object", "it was freed before", "it is being moved",
			"only its home may do that", "the tasks gave unequal arguments", "no object can be so",
			"it is not in this task's replica yet", "a task is dead that it needs", "all indices of the partition are in use",
			"there is no memory for it", "it is not being moved",
			"an earlier change of it is not finished"}[r]
	}
	return fmt.Sprintf("reason %d", uint8(r))
}

// Error is a refusal. It names the object and the task that asked.
type Error struct {
	Op     string
	Handle Handle
	Task   Task
	Reason Reason
	Detail string
}

func (e *Error) Error() string {
	text := fmt.Sprintf("%s of %s by task %d: %s", e.Op, e.Handle, e.Task, e.Reason)
	if e.Handle == 0 {
		text = fmt.Sprintf("%s by task %d: %s", e.Op, e.Task, e.Reason)
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}
