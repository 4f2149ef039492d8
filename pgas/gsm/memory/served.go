package memory

import (
	"unsafe"

	"evenkeel/pgas/gsm/wire"
)

// Served is what commands that come from other nodes may touch: the caller's own memory, checked again. It is an
// epoch.Memory. Any goroutine may call it. On an error nothing was written or read.
type Served struct{ *Area }

// Check says whether a PUT or GET is allowed as a whole.
func (s Served) Check(w wire.Window, op wire.Op, offset, length uint64) error {
	kind := Putting
	if op == wire.Get {
		kind = Getting
	}
	if _, why := s.Admit(kind, w, offset, length); why != wire.OK {
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
	return Apply(op, word, operand, compare), nil
}

// Reach returns the memory that a command goes to, if that is allowed.
func (s Served) Reach(kind Kind, w wire.Window, offset uint64, bytes int) ([]byte, error) {
	place, why := s.Admit(kind, w, offset, uint64(bytes))
	if why != wire.OK {
		return nil, why
	}
	return unsafe.Slice((*byte)(place), bytes), nil
}
