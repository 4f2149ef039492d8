package gsm

import (
	"unsafe"

	"evenkeel/pgas/gsm/memory"
	"evenkeel/pgas/gsm/wire"
)

// served is what commands that come from other nodes may touch: the caller's own memory, checked again. It is an
// epoch.Memory. Any goroutine may call it. On an error nothing was written or read.
type served struct{ area *memory.Area }

// Check says whether a PUT or GET is allowed as a whole.
func (s served) Check(w wire.Window, op wire.Op, offset, length uint64) error {
	kind := memory.Putting
	if op == wire.Get {
		kind = memory.Getting
	}
	if _, why := s.area.Admit(kind, w, offset, length); why != wire.OK {
		return why
	}
	return nil
}

// Write executes a PUT.
func (s served) Write(w wire.Window, offset uint64, data []byte) error {
	there, err := s.reach(memory.Putting, w, offset, len(data))
	copy(there, data)
	return err
}

// Read executes a GET.
func (s served) Read(w wire.Window, offset uint64, into []byte) error {
	there, err := s.reach(memory.Getting, w, offset, len(into))
	copy(into, there)
	return err
}

// Atomic executes an atomic on a word of 4 or 8 bytes, and returns what it was.
func (s served) Atomic(w wire.Window, offset uint64, op wire.Op, width int, operand, compare uint64) (old uint64, err error) {
	switch {
	case !op.Atomic():
		return 0, wire.Operation
	case width != 4 && width != 8:
		return 0, wire.Length
	case offset%uint64(width) != 0:
		return 0, wire.Alignment
	}
	word, err := s.reach(memory.Updating, w, offset, width)
	if err != nil {
		return 0, err
	}
	return apply(op, word, operand, compare), nil
}

func (s served) reach(kind memory.Kind, w wire.Window, offset uint64, bytes int) ([]byte, error) {
	place, why := s.area.Admit(kind, w, offset, uint64(bytes))
	if why != wire.OK {
		return nil, why
	}
	return unsafe.Slice((*byte)(place), bytes), nil
}
