// Package enginetest has what tests and measurements of engines need: a memory,
// and an engine over a fabric that is there.
package enginetest

import (
	"bytes"
	"encoding/binary"
	"sync"

	"evenkeel/pgas/gsm/credential"
	"evenkeel/pgas/gsm/engine"
	"evenkeel/pgas/gsm/epoch"
	"evenkeel/pgas/gsm/wire"
	"evenkeel/runtime/fabric"
)

// Window is the only one of a Store.
const Window = wire.Window(3)

// Store is a memory with one window. It implements epoch.Memory.
type Store struct {
	lock  sync.Mutex
	bytes []byte
}

// NewStore is one of so many bytes.
func NewStore(bytes int) *Store { return &Store{bytes: make([]byte, bytes)} }

// At is what the memory holds there.
func (s *Store) At(offset, length int) []byte {
	s.lock.Lock()
	defer s.lock.Unlock()
	return bytes.Clone(s.bytes[offset : offset+length])
}

// Check lets through what is inside the window.
func (s *Store) Check(w wire.Window, _ wire.Op, offset, length uint64) error {
	switch {
	case w != Window:
		return wire.NoWindow
	case offset > uint64(len(s.bytes)) || length > uint64(len(s.bytes))-offset:
		return wire.Range
	}
	return nil
}

// Write executes a PUT.
func (s *Store) Write(w wire.Window, offset uint64, data []byte) error {
	if err := s.Check(w, wire.Put, offset, uint64(len(data))); err != nil {
		return err
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	copy(s.bytes[offset:], data)
	return nil
}

// Read executes a GET.
func (s *Store) Read(w wire.Window, offset uint64, into []byte) error {
	if err := s.Check(w, wire.Get, offset, uint64(len(into))); err != nil {
		return err
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	copy(into, s.bytes[offset:])
	return nil
}

// Atomic executes an atomic.
func (s *Store) Atomic(w wire.Window, offset uint64, op wire.Op, width int, operand, compare uint64) (uint64, error) {
	if err := s.Check(w, op, offset, uint64(width)); err != nil {
		return 0, err
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	at := s.bytes[offset:]
	if width == 4 {
		old := uint64(binary.LittleEndian.Uint32(at))
		binary.LittleEndian.PutUint32(at, uint32(op.Apply(4, old, operand, compare)))
		return old, nil
	}
	old := binary.LittleEndian.Uint64(at)
	binary.LittleEndian.PutUint64(at, op.Apply(8, old, operand, compare))
	return old, nil
}

// New makes the engine of a task in a job, all of whose memory is a store.
// change, if it is not nil, changes its configuration.
func New(f fabric.Fabric, secret credential.Secret, store *Store, h *engine.Handlers, change func(*engine.Config)) (*engine.Engine, error) {
	const job = 5
	c := engine.Config{Protocol: epoch.Default(), Fabric: f, Handlers: h}
	life, err := credential.NewLife()
	if err != nil {
		return nil, err
	}
	c.Protocol.Job, c.Protocol.Life = job, life
	c.Protocol.Memory = func(fabric.Task, wire.Key) epoch.Memory { return store }
	if c.Credential, err = credential.New(job, f.Self(), life, secret); err != nil {
		return nil, err
	}
	if change != nil {
		change(&c)
	}
	return engine.New(c)
}
