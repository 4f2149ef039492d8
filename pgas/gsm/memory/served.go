package memory

import (
	"maps"
	"sync"
	"sync/atomic"
	"unsafe"

	"evenkeel/pgas/gsm/epoch"
	"evenkeel/pgas/gsm/wire"
	"evenkeel/runtime/fabric"
)

// Served is what commands that come from other nodes may touch: the caller's own memory, checked again. It is an
// epoch.Memory. Any goroutine may call it. On an error nothing was written or read.
type Served struct {
	*Area
	Token uint64 // of the narrower key under which the commands came; 0: the job's
}

// Check says whether a PUT or GET is allowed as a whole.
func (s Served) Check(w wire.Window, op wire.Op, offset, length uint64) error {
	kind := Putting
	if op == wire.Get {
		kind = Getting
	}
	if _, why := s.AdmitNarrow(kind, w, offset, length, s.Token); why != wire.OK {
		return why
	}
	return nil
}

// Write executes a PUT.
func (s Served) Write(w wire.Window, offset uint64, data []byte) error {
	there, err := s.Reach(Putting, w, offset, len(data))
	copy(there, data)
	return err
}

// Read executes a GET.
func (s Served) Read(w wire.Window, offset uint64, into []byte) error {
	there, err := s.Reach(Getting, w, offset, len(into))
	copy(into, there)
	return err
}

// Atomic executes an atomic on a word of 4 or 8 bytes, and returns what it was.
func (s Served) Atomic(w wire.Window, offset uint64, op wire.Op, width int, operand, compare uint64) (old uint64, err error) {
	switch {
	case !op.Atomic():
		return 0, wire.Operation
	case width != 4 && width != 8:
		return 0, wire.Length
	case offset%uint64(width) != 0:
		return 0, wire.Alignment
	}
	word, err := s.Reach(Updating, w, offset, width)
	if err != nil {
		return 0, err
	}
	if !Aligned(word) {
		return 0, wire.Alignment
	}
	return Apply(op, word, operand, compare), nil
}

// Reach returns the memory that a command goes to, if that is allowed.
func (s Served) Reach(kind Kind, w wire.Window, offset uint64, bytes int) ([]byte, error) {
	place, why := s.AdmitNarrow(kind, w, offset, uint64(bytes), s.Token)
	if why != wire.OK {
		return nil, why
	}
	return unsafe.Slice((*byte)(place), bytes), nil
}

// Keys are the narrower keys that a task has, and what commands may touch that come under each. They are looked up for each
// packet. The zero Keys are none.
type Keys struct {
	lock sync.Mutex // over changes of
	all  atomic.Pointer[map[wire.Key]*Served]
}

// Memory is an epoch.Config's: commands under the job's key may touch what job serves, those under a narrower one what is
// set for it.
func (k *Keys) Memory(job Served) func(fabric.Task, wire.Key) epoch.Memory {
	all := epoch.Memory(job) // made once, as it is asked for with each packet
	return func(_ fabric.Task, key wire.Key) epoch.Memory {
		if key == wire.JobKey {
			return all
		}
		if under := k.Under(key); under != nil {
			return under
		}
		return nil
	}
}

// Under is what commands under a narrower key may touch; nil: the task has it not.
func (k *Keys) Under(key wire.Key) *Served {
	if all := k.all.Load(); all != nil {
		return (*all)[key]
	}
	return nil
}

// Set gives the task a key, or with nil takes it away.
func (k *Keys) Set(number wire.Key, s *Served) {
	k.lock.Lock()
	defer k.lock.Unlock()
	all := map[wire.Key]*Served{}
	if old := k.all.Load(); old != nil {
		maps.Copy(all, *old)
	}
	if all[number] = s; s == nil {
		delete(all, number)
	}
	k.all.Store(&all)
}
