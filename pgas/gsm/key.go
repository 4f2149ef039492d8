package gsm

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
	"sync/atomic"

	"github.com/pkg/errors"

	"evenkeel/mpi"
	"evenkeel/pgas/gsm/credential"
	"evenkeel/pgas/gsm/memory"
	"evenkeel/pgas/gsm/wire"
	"evenkeel/runtime/fabric"
)

// Key is a narrower key than the job's: only a subset of the tasks has it. What goes out through a window that was opened
// under it is sealed with it, and what comes to the window must be; everything else is refused with ErrKey, and counted.
//
// Between nodes that is a credential that nobody else can make. On a node, where all tasks map all memory, it keeps
// mistakes out and not attackers.
type Key struct {
	job     *Job
	number  wire.Key
	token   uint64 // what stands for it in window tables: odd
	members []fabric.Task
	areas   []*memory.Area // of members; of the others, and of all once it was dropped, memory.Nowhere
	dropped atomic.Bool
}

// Narrow makes a key for the tasks of a communicator, each of which is in the job once. Collective over these.
func (j *Job) Narrow(members *mpi.Comm) (*Key, error) {
	failed := func(err error) error { return errors.WithMessagef(err, "task %d: making a narrower key", j.task) }
	k := &Key{job: j, members: make([]fabric.Task, members.Size())}
	tasks := make([]uint32, members.Size())
	if err := mpi.Allgather(members, []uint32{uint32(j.task)}, tasks); err != nil {
		return nil, failed(err)
	}
	for i, task := range tasks {
		k.members[i] = fabric.Task(task)
	}
	// The number is one that none of them has had. Who can't have one says so by the greatest.
	wanted := []uint32{uint32(j.lastKey) + 1}
	if j.left.Load() {
		wanted[0] = math.MaxUint32
	}
	if err := mpi.AllreduceInPlace(members, wanted, mpi.Max); err != nil {
		return nil, failed(err)
	}
	var shared [1 + len(credential.Secret{})]byte // whether there is a secret, and it
	if members.Rank() == 0 {
		if secret, err := credential.Generate(); err == nil {
			shared[0] = 1
			copy(shared[1:], secret[:])
		}
	}
	if err := mpi.Bcast(members, shared[:], 0); err != nil {
		return nil, failed(err)
	}
	switch {
	case j.left.Load():
		return nil, failed(ErrClosed)
	case wanted[0] == math.MaxUint32:
		return nil, failed(errors.WithMessage(ErrUnequal, "another task has left the job"))
	case wanted[0] > math.MaxUint16:
		return nil, failed(errors.WithMessagef(ErrNoMemory, "some task has had %d keys", math.MaxUint16))
	case shared[0] == 0:
		return nil, failed(errors.New("the first task could not make the secret"))
	}
	k.number = wire.Key(wanted[0])
	if err := k.take(credential.Secret(shared[1:])); err != nil {
		return nil, failed(err)
	}
	return k, nil
}

// take has the task use the key.
func (k *Key) take(secret credential.Secret) error {
	derived, err := hkdf.Key(sha256.New, secret[:], nil, "evenkeel gsm windows", 8)
	if err != nil {
		return errors.Wrap(err, "deriving what stands for a key in window tables")
	}
	j := k.job
	k.token = binary.LittleEndian.Uint64(derived) | 1
	if j.engine != nil {
		if err := j.engine.Credential(func(c *credential.Credential) error { return c.Add(k.number, secret) }); err != nil {
			return err
		}
	}
	k.areas = make([]*memory.Area, len(j.areas))
	for task := range k.areas {
		k.areas[task] = memory.Nowhere
		if k.has(fabric.Task(task)) {
			k.areas[task] = j.areas[task]
		}
	}
	j.lastKey = k.number
	j.keys.Set(k.number, &memory.Served{Area: j.space.Self(), Token: k.token})
	return nil
}

// Drop takes the key from the calling task: what is sealed with it finds nothing here any more, and windows that were
// opened under it send nothing. No command may be under way through one of these.
func (k *Key) Drop() error {
	j := k.job
	if j.left.Load() || k.dropped.Swap(true) {
		return errors.WithMessagef(ErrClosed, "task %d: dropping key %d, which it has not", j.task, k.number)
	}
	for task := range k.areas {
		k.areas[task] = memory.Nowhere
	}
	j.keys.Set(k.number, nil)
	j.lock.Lock()
	for _, w := range j.windows {
		if w.key == k {
			j.space.Revoke(w.number)
		}
	}
	j.lock.Unlock()
	if j.engine == nil {
		return nil
	}
	err := j.engine.Credential(func(c *credential.Credential) error {
		c.Remove(k.number)
		return nil
	})
	j.port.Drop(k.number)
	return err
}

// tokenOf, numberOf and has are of a window's key, or of the job's where there is none.
func (k *Key) tokenOf() uint64 {
	if k == nil {
		return 0
	}
	return k.token
}

func (k *Key) numberOf() wire.Key {
	if k == nil {
		return wire.JobKey
	}
	return k.number
}

func (k *Key) has(task fabric.Task) bool {
	return k == nil || !k.dropped.Load() && slices.Contains(k.members, task)
}

// OpenUnder opens a window over a part of a block, as OpenPart does, that only the tasks which have the key can reach, and
// through which their memory, but nobody else's, is reached with it.
func (j *Job) OpenUnder(k *Key, b *Block, offset, bytes uint64, rights Rights) (*Window, error) {
	if k == nil || k.job != j || k.dropped.Load() {
		return nil, errors.WithMessagef(ErrKey, "task %d: opening a window under a key that it has not", j.task)
	}
	return j.open(k, b, offset, bytes, rights)
}
