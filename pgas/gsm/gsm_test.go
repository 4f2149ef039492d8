package gsm_test

import (
	"fmt"
	"math/rand"
	"runtime"
	"testing"
	"time"

	"github.com/pkg/errors"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/mpi"
	"evenkeel/pgas/dgsp"
	"evenkeel/pgas/gsm"
	"evenkeel/pgas/gsm/wire"
	"evenkeel/runtime/fabric"
)

// apart is set where commands take the network.
var apart bool

func join(t testing.TB) *gsm.Job {
	t.Helper()
	job, err := gsm.Join(mpi.World, gsm.Options{Reserve: 64 << 20, Apart: apart})
	require.NoError(t, err)
	assert.Equal(t, apart && job.Tasks() > 1, job.Engine() != nil, "who needs a network has one")
	return job
}

// bothWays runs a test over mapped memory, and over the network, with fewer rounds.
func bothWays(t *testing.T, rounds int, test func(t *testing.T, rounds int)) {
	t.Run("mapped", func(t *testing.T) { test(t, rounds) })
	t.Run("network", func(t *testing.T) {
		apart = true
		defer func() { apart = false }()
		test(t, rounds/10)
	})
}

// array is memory of so many bytes at every task.
func array(t testing.TB, job *gsm.Job, each uint64) *gsm.Array {
	t.Helper()
	a, err := job.AllAllocate(each*uint64(job.Tasks()), each, gsm.AllowAll)
	require.NoError(t, err)
	return a
}

// at is an offset into the share of a task.
func at(a *gsm.Array, task int, offset uint64) gsm.Address {
	return gsm.Address{Task: fabric.Task(task), Window: a.Number(), Offset: offset}
}

// seed is the same on all tasks; each adds its own number.
func seed(t testing.TB, job *gsm.Job) *rand.Rand {
	t.Helper()
	s := []int64{time.Now().UnixNano()}
	require.NoError(t, mpi.Bcast(mpi.World, s, 0))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d, task %d", s[0], job.Task())
		}
	})
	return rand.New(rand.NewSource(s[0] + int64(job.Task())))
}

// Each task writes into its own part of everybody's share, in every way; what the targets hold in the end is compared.
func TestPutAndGet(t *testing.T) { bothWays(t, 3000, putAndGet) }

func putAndGet(t *testing.T, rounds int) {
	const part = 2*gsm.Page + 40
	job := join(t)
	random := seed(t, job)
	me := int(job.Task())
	a := array(t, job, part*uint64(job.Tasks()))
	mirror := make([][]byte, job.Tasks())
	for task := range mirror {
		mirror[task] = make([]byte, part)
	}
	data := make([]byte, part)
	for range rounds {
		task, offset := random.Intn(job.Tasks()), random.Intn(part-8)
		there := at(a, task, uint64(me*part+offset))
		random.Read(data[:16])
		word := random.Uint64()
		switch random.Intn(4) {
		case 0:
			require.NoError(t, a.Put64(there, word))
			for i := range 8 {
				mirror[task][offset+i] = byte(word >> (8 * i))
			}
			got, err := a.Get64(there)
			require.NoError(t, err)
			require.Equal(t, word, got)
		case 1:
			require.NoError(t, a.Put32(there, uint32(word)))
			for i := range 4 {
				mirror[task][offset+i] = byte(word >> (8 * i))
			}
			got, err := a.Get32(there)
			require.NoError(t, err)
			require.Equal(t, uint32(word), got)
		case 2:
			n := random.Intn(part - offset)
			random.Read(data[:n])
			require.NoError(t, a.Put(there, data[:n]))
			copy(mirror[task][offset:], data[:n])
		case 3:
			n := random.Intn(part - offset)
			require.NoError(t, a.Get(there, data[:n]))
			require.Equal(t, mirror[task][offset:offset+n], data[:n])
		}
	}
	require.NoError(t, job.GlobalFence())
	for from := range job.Tasks() {
		for to := range job.Tasks() {
			theirs := append([]byte(nil), mirror[to]...)
			require.NoError(t, mpi.Bcast(mpi.World, theirs, from))
			if to == me {
				assert.Equal(t, theirs, a.Local()[from*part:(from+1)*part], "from task %d", from)
			}
		}
	}
	require.NoError(t, a.Free())
	require.NoError(t, job.Leave())
}

// atomics are the methods, by operation and width.
func atomics(a *gsm.Window) map[wire.Op]map[int]func(at gsm.Address, operand, compare uint64) (uint64, error) {
	only64 := func(f func(gsm.Address, uint64) error) func(gsm.Address, uint64, uint64) (uint64, error) {
		return func(at gsm.Address, operand, _ uint64) (uint64, error) { return 0, f(at, operand) }
	}
	only32 := func(f func(gsm.Address, uint32) error) func(gsm.Address, uint64, uint64) (uint64, error) {
		return func(at gsm.Address, operand, _ uint64) (uint64, error) { return 0, f(at, uint32(operand)) }
	}
	fetch64 := func(f func(gsm.Address, uint64) (uint64, error)) func(gsm.Address, uint64, uint64) (uint64, error) {
		return func(at gsm.Address, operand, _ uint64) (uint64, error) { return f(at, operand) }
	}
	fetch32 := func(f func(gsm.Address, uint32) (uint32, error)) func(gsm.Address, uint64, uint64) (uint64, error) {
		return func(at gsm.Address, operand, _ uint64) (uint64, error) {
			old, err := f(at, uint32(operand))
			return uint64(old), err
		}
	}
	type widths = map[int]func(gsm.Address, uint64, uint64) (uint64, error)
	return map[wire.Op]widths{
		wire.Add:         {8: only64(a.Add64), 4: only32(a.Add32)},
		wire.And:         {8: only64(a.And64), 4: only32(a.And32)},
		wire.Or:          {8: only64(a.Or64), 4: only32(a.Or32)},
		wire.Xor:         {8: only64(a.Xor64), 4: only32(a.Xor32)},
		wire.Swap:        {8: fetch64(a.Swap64), 4: fetch32(a.Swap32)},
		wire.FetchAndAdd: {8: fetch64(a.FetchAndAdd64), 4: fetch32(a.FetchAndAdd32)},
		wire.FetchAndAnd: {8: fetch64(a.FetchAndAnd64), 4: fetch32(a.FetchAndAnd32)},
		wire.FetchAndOr:  {8: fetch64(a.FetchAndOr64), 4: fetch32(a.FetchAndOr32)},
		wire.FetchAndXor: {8: fetch64(a.FetchAndXor64), 4: fetch32(a.FetchAndXor32)},
		wire.CompareAndSwap: {
			8: func(at gsm.Address, operand, compare uint64) (uint64, error) {
				return a.CompareAndSwap64(at, compare, operand)
			},
			4: func(at gsm.Address, operand, compare uint64) (uint64, error) {
				old, err := a.CompareAndSwap32(at, uint32(compare), uint32(operand))
				return uint64(old), err
			},
		},
	}
}

// Every atomic does what wire.Op.Apply says, whichever way it is called, and touches nothing beside its word.
func TestAtomicsDoWhatTheProtocolSays(t *testing.T) { bothWays(t, 200, atomicsDoWhatTheProtocolSays) }

func atomicsDoWhatTheProtocolSays(t *testing.T, rounds int) {
	job := join(t)
	random := seed(t, job)
	a := array(t, job, 64)
	right := (int(job.Task()) + 1) % job.Tasks()
	for op, byWidth := range atomics(a.Window) {
		for width, method := range byWidth {
			for round := range rounds {
				word, operand, compare := random.Uint64(), random.Uint64(), random.Uint64()
				if random.Intn(2) == 0 {
					compare = word
				}
				mask := ^uint64(0) >> (64 - 8*width)
				offset := uint64(8 + width*random.Intn(2))
				require.NoError(t, a.Put(at(a, right, 0), make([]byte, 64)))
				if width == 8 {
					require.NoError(t, a.Put64(at(a, right, offset), word))
				} else {
					require.NoError(t, a.Put32(at(a, right, offset), uint32(word)))
				}
				var old uint64
				var err error
				switch round % 3 {
				case 0:
					old, err = method(at(a, right, offset), operand, compare)
				case 1:
					old, err = a.Update(op, width, at(a, right, offset), operand, compare)
				case 2:
					var h gsm.Handle
					h, err = a.StartUpdate(op, width, at(a, right, offset), operand, compare, &old, true)
					require.NoError(t, err)
					err = a.Wait(h)
				}
				require.NoError(t, err)
				if op.Fetches() {
					require.Equal(t, word&mask, old, "%v, %d bytes", op, width)
				}
				sum := uint64(0)
				for i := range uint64(8) {
					v, err := a.Get64(at(a, right, 8*i))
					require.NoError(t, err)
					sum += v
				}
				got, err := a.Get64(at(a, right, offset&^7))
				require.NoError(t, err)
				require.Equal(t, op.Apply(width, word, operand, compare), got>>(8*(offset&7))&mask, "%v, %d bytes", op, width)
				require.Equal(t, sum, got, "%v, %d bytes: something else was written", op, width)
			}
		}
	}
	require.NoError(t, a.Free())
	require.NoError(t, job.Leave())
}

// All tasks at the same words, each with several goroutines that have windows of their own: every count is exact.
func TestNoAtomicIsLostOrDoneTwice(t *testing.T) { bothWays(t, 2000, noAtomicIsLostOrDoneTwice) }

func noAtomicIsLostOrDoneTwice(t *testing.T, rounds int) {
	const goroutines = 2
	job := join(t)
	a := array(t, job, 1024)
	total := uint64(rounds * goroutines * job.Tasks())
	failed := make(chan error, goroutines)
	tickets := make(chan map[uint64]bool, goroutines)
	for g := range goroutines {
		go func() {
			mine := map[uint64]bool{}
			failed <- func() error {
				w, err := job.OpenPart(nil, 0, 0, 0)
				if err != nil {
					return err
				}
				bit := uint64(1) << (int(job.Task())*goroutines + g)
				for range rounds {
					ticket, err := w.FetchAndAdd64(at(a, 0, 0), 1)
					if err != nil {
						return err
					}
					mine[ticket] = true
					if err := w.Add32(at(a, 0, 64), 3); err != nil {
						return err
					}
					if err := w.Xor64(at(a, 0, 128), ticket); err != nil {
						return err
					}
					for old, swapped := uint64(0), false; !swapped; {
						was, err := w.CompareAndSwap64(at(a, 0, 192), old, old+1)
						if err != nil {
							return err
						}
						old, swapped = was, was == old
					}
					if old, err := w.FetchAndOr64(at(a, 0, 256), bit); err != nil || old&bit != 0 {
						return errors.Errorf("bit %x was set already in %x: %v", bit, old, err)
					}
					if old, err := w.FetchAndXor64(at(a, 0, 256), bit); err != nil || old&bit == 0 {
						return errors.Errorf("bit %x was not set in %x: %v", bit, old, err)
					}
					// A lock, which guards a count that is no atomic.
					for held := uint64(1); held != 0; {
						if held, err = w.Swap64(at(a, 0, 320), 1); err != nil {
							return err
						}
						if held != 0 {
							runtime.Gosched()
						}
					}
					n, err := w.Get64(at(a, 0, 384))
					if err != nil {
						return err
					}
					if err := errors.WithStack(w.Put64(at(a, 0, 384), n+1)); err != nil {
						return err
					}
					if err := w.Fence(); err != nil {
						return err
					}
					if err := w.And64(at(a, 0, 320), 0); err != nil {
						return err
					}
				}
				return w.Close()
			}()
			tickets <- mine
		}()
	}
	drawn := make([]uint64, total)
	for range goroutines {
		require.NoError(t, <-failed)
		for ticket := range <-tickets {
			require.Less(t, ticket, total)
			drawn[ticket]++
		}
	}
	require.NoError(t, job.GlobalFence())
	require.NoError(t, mpi.AllreduceInPlace(mpi.World, drawn, mpi.Sum))
	var parity uint64
	for ticket, times := range drawn {
		require.Equal(t, uint64(1), times, "ticket %d", ticket)
		parity ^= uint64(ticket)
	}
	for offset, want := range map[uint64]uint64{0: total, 64: 3 * total, 128: parity, 192: total, 256: 0, 384: total} {
		got, err := a.Get64(at(a, 0, offset))
		require.NoError(t, err)
		assert.Equal(t, want, got, "the word at %d", offset)
	}
	require.NoError(t, a.Free())
	require.NoError(t, job.Leave())
}

// With fences, two tasks that each write a word and then read the other's can't both read what was there before.
func TestFencesOrderPutsBeforeGets(t *testing.T) { bothWays(t, 2000, fencesOrderPutsBeforeGets) }

func fencesOrderPutsBeforeGets(t *testing.T, rounds int) {
	if mpi.World.Size() < 2 {
		t.Skip("needs two tasks")
	}
	job := join(t)
	a := array(t, job, 512)
	seen := make([]uint64, rounds)
	if me := int(job.Task()); me < 2 {
		other := 1 - me
		for i := range uint64(rounds) {
			require.NoError(t, a.Put64(at(a, me, 0), i+1))
			require.NoError(t, a.Fence())
			var err error
			seen[i], err = a.Get64(at(a, other, 0))
			require.NoError(t, err)
			require.NoError(t, a.Put64(at(a, other, 128), 3*i)) // a message, and its flag
			require.NoError(t, a.Add64(at(a, other, 256), 1))
			for flag := uint64(0); flag <= i; {
				flag, err = a.FetchAndOr64(at(a, me, 256), 0)
				require.NoError(t, err)
				if flag <= i {
					runtime.Gosched()
				}
			}
			message, err := a.Get64(at(a, me, 128))
			require.NoError(t, err)
			require.GreaterOrEqual(t, message, 3*i)
		}
		others := make([]uint64, rounds)
		_, err := mpi.Sendrecv(mpi.World, seen, other, 0, others, other, 0)
		require.NoError(t, err)
		for i := range seen {
			require.True(t, seen[i] > uint64(i) || others[i] > uint64(i), "round %d", i)
		}
	}
	require.NoError(t, a.Free())
	require.NoError(t, job.Leave())
}

func TestRefusals(t *testing.T) {
	job := join(t)
	me := int(job.Task())
	block, err := job.Allocate(2 * gsm.Page)
	require.NoError(t, err)
	small, err := job.Allocate(10)
	require.NoError(t, err)
	w, err := job.OpenPart(block, 0, 2*gsm.Page-4, gsm.AllowAll)
	require.NoError(t, err)
	readable, err := job.Open(small, gsm.AllowGet)
	require.NoError(t, err)
	var nobody gsm.Address
	nobody.Task = fabric.Task(job.Tasks())
	last, far := w.Address(2*gsm.Page-8), w.Address(^uint64(3))
	layout := func(stride int) *dgsp.Program { return vector(t, 3, 8, stride) }
	before, err := dgsp.Compile(dgsp.Indexed([]int{-8, 0}, []int{8, 16})) // begins before where it is placed
	require.NoError(t, err)

	refusals := 0
	for _, c := range []struct {
		err     error
		op      wire.Op
		address gsm.Address
		bytes   uint64
		why     error
	}{
		{w.Put64(last, 1), wire.Put, last, 8, gsm.ErrRange},
		{second(w.Get64(last)), wire.Get, last, 8, gsm.ErrRange},
		{w.Add64(last, 1), wire.Add, last, 8, gsm.ErrRange},
		{second(w.CompareAndSwap64(last, 0, 1)), wire.CompareAndSwap, last, 8, gsm.ErrRange},
		{w.Put(last, make([]byte, 5)), wire.Put, last, 5, gsm.ErrRange},
		{w.Put64(far, 1), wire.Put, far, 8, gsm.ErrRange},
		{w.Put(far, make([]byte, 8192)), wire.Put, far, 8192, gsm.ErrRange},
		{w.Add64(w.Address(4), 1), wire.Add, w.Address(4), 8, gsm.ErrUnaligned},
		{w.Xor32(w.Address(6), 1), wire.Xor, w.Address(6), 4, gsm.ErrUnaligned},
		{w.Put64(nobody, 1), wire.Put, nobody, 8, gsm.ErrTask},
		{second(w.Swap32(nobody, 1)), wire.Swap, nobody, 4, gsm.ErrTask},
		{w.Put64(gsm.Address{Task: fabric.Task(me)}, 1), wire.Put, gsm.Address{Task: fabric.Task(me)}, 8, gsm.ErrNoWindow},
		{w.Put64(readable.Address(0), 1), wire.Put, readable.Address(0), 8, gsm.ErrProtected},
		{w.And64(readable.Address(0), 1), wire.And, readable.Address(0), 8, gsm.ErrProtected},
		{second(w.Update(wire.Get, 8, last, 0, 0)), wire.Get, last, 8, gsm.ErrOperation},
		{second(w.Update(wire.Op(99), 8, last, 0, 0)), wire.Op(99), last, 8, gsm.ErrOperation},
		{second(w.Update(wire.Add, 2, last, 0, 0)), wire.Add, last, 2, gsm.ErrLength},
		{second(w.StartPut(nobody, make([]byte, 3), true)), wire.Put, nobody, 3, gsm.ErrTask},
		{w.PutLayout(w.Address(0), layout(4096), make([]byte, 24), layout(8)), wire.Put, w.Address(0), 8200, gsm.ErrRange},
		{w.PutLayout(w.Address(0), layout(8), make([]byte, 23), layout(8)), wire.Put, w.Address(0), 23, gsm.ErrLength},
		{w.PutLayout(w.Address(8), before, make([]byte, 24), layout(8)), wire.Put, w.Address(8), 24, gsm.ErrLength},
		{w.GetLayout(w.Address(8), layout(8), make([]byte, 24), before), wire.Get, w.Address(8), 24, gsm.ErrLength},
		{w.PutLayout(w.Address(0), nil, make([]byte, 24), layout(8)), wire.Put, w.Address(0), 24, gsm.ErrLength},
		{w.GetLayout(w.Address(0), layout(8), make([]byte, 24), vector(t, 2, 8, 8)), wire.Get, w.Address(0), 24, gsm.ErrLength},
	} {
		refusals++
		var e *gsm.Error
		require.ErrorAs(t, c.err, &e)
		assert.ErrorIs(t, c.err, c.why)
		assert.Equal(t, c.op, e.Op, c.err)
		assert.Equal(t, c.address, e.Address, c.err)
		assert.Equal(t, c.bytes, e.Bytes, c.err)
		assert.Contains(t, c.err.Error(), fmt.Sprintf("%v of %d bytes at task %d, window %d, offset %d: ",
			c.op, c.bytes, c.address.Task, c.address.Window, c.address.Offset))
	}
	assert.EqualError(t, gsm.ErrRange, "outside of what the window shows: give an offset and a length within what its task opened", "as in C")
	assert.Equal(t, gsm.Counters{Refused: uint64(refusals)}, w.Counters(), "none was issued")
	assert.Equal(t, make([]byte, 2*gsm.Page), block.Bytes(), "nothing was written")

	for _, c := range []struct{ err, why error }{
		{second(job.Allocate(0)), gsm.ErrLength},
		{second(job.Allocate(1 << 60)), gsm.ErrNoMemory},
		{second(job.Open(nil, gsm.AllowAll)), gsm.ErrNotMemory},
		{second(job.OpenPart(nil, 0, 1, gsm.AllowAll)), gsm.ErrNotMemory},
		{second(job.OpenPart(block, 1, 2*gsm.Page, gsm.AllowAll)), gsm.ErrRange},
		{second(job.Open(block, 8)), gsm.ErrOperation},
		{block.Protect(0, 5, gsm.AllowAll), gsm.ErrLength},
		{block.Protect(gsm.Page, 2*gsm.Page, gsm.AllowAll), gsm.ErrRange},
		{block.Free(), gsm.ErrInUse},
		{second(job.AllAllocate(0, 0, gsm.AllowAll)), gsm.ErrLength},
		{second(job.AllAllocate(1<<63, 0, gsm.AllowAll)), gsm.ErrLength},
		{second(job.AllAllocate(1<<61, 0, gsm.AllowAll)), gsm.ErrNoMemory},
		{second(job.AllAllocate(10, 0, 8)), gsm.ErrOperation},
	} {
		assert.ErrorIs(t, c.err, c.why)
		assert.ErrorContains(t, c.err, fmt.Sprintf("task %d: ", me))
	}

	require.NoError(t, block.Protect(gsm.Page, gsm.Page, gsm.AllowGet))
	assert.ErrorIs(t, w.Put64(w.Address(gsm.Page), 1), gsm.ErrProtected)
	require.NoError(t, w.Put64(w.Address(gsm.Page-8), 1))
	require.NoError(t, w.Put(w.Address(0), make([]byte, gsm.Page)))
	assert.ErrorIs(t, w.Put(w.Address(1), make([]byte, gsm.Page)), gsm.ErrProtected)
	assert.ErrorIs(t, w.Add64(w.Address(gsm.Page), 1), gsm.ErrProtected)
	require.NoError(t, second(w.Get64(w.Address(gsm.Page))))

	stale := w.Address(0)
	require.NoError(t, w.Close())
	assert.ErrorIs(t, w.Close(), gsm.ErrClosed)
	assert.ErrorIs(t, w.Put64(readable.Address(0), 1), gsm.ErrClosed)
	assert.ErrorIs(t, w.Fence(), gsm.ErrClosed)
	assert.ErrorIs(t, readable.Put64(stale, 1), gsm.ErrNoWindow)
	require.NoError(t, block.Free())
	assert.ErrorIs(t, block.Free(), gsm.ErrNotMemory)
	require.NoError(t, job.GlobalFence())
	again, err := job.Allocate(2 * gsm.Page)
	require.NoError(t, err)
	reopened, err := job.Open(again, gsm.AllowAll)
	require.NoError(t, err)
	assert.ErrorIs(t, reopened.Put64(stale, 1), gsm.ErrNoWindow, "its slot has another window now")
	require.NoError(t, job.Leave())
	for _, err := range []error{job.Leave(), job.GlobalFence(), second(job.Allocate(1)), second(job.AllAllocate(1, 0, 0)),
		reopened.Put64(stale, 1), again.Free(), again.Protect(0, gsm.Page, 0), second(job.OpenPart(nil, 0, 0, 0))} {
		assert.ErrorIs(t, err, gsm.ErrClosed)
	}
}

func second[T any](_ T, err error) error { return err }

// vector is so many blocks of bytes every so many bytes.
func vector(t testing.TB, count, bytes, stride int) *dgsp.Program {
	t.Helper()
	p, err := dgsp.Compile(dgsp.Strided(count, bytes, stride))
	require.NoError(t, err)
	return p
}

// What a target on another node refuses says the same as what is refused here, and is counted.
func TestRefusalsByTheTarget(t *testing.T) {
	apart = true
	defer func() { apart = false }()
	job := join(t)
	a := array(t, job, 2*gsm.Page)
	me, right := int(job.Task()), (int(job.Task())+1)%job.Tasks()
	hidden, err := job.AllAllocate(uint64(job.Tasks())*64, 64, gsm.AllowGet)
	require.NoError(t, err)
	laid := func(to gsm.Address) error {
		return a.PutLayout(to, vector(t, 3, 8, 16), make([]byte, 24), vector(t, 3, 8, 8))
	}
	for _, c := range []struct {
		err     error
		op      wire.Op
		address gsm.Address
		bytes   uint64
		why     error
	}{
		{a.Put64(at(a, right, 2*gsm.Page-4), 1), wire.Put, at(a, right, 2*gsm.Page-4), 8, gsm.ErrRange},
		{second(a.Get64(at(a, right, ^uint64(7)))), wire.Get, at(a, right, ^uint64(7)), 8, gsm.ErrRange},
		{a.Put(at(a, right, 1), make([]byte, 2*gsm.Page)), wire.Put, at(a, right, 1), 2 * gsm.Page, gsm.ErrRange},
		{a.Add64(at(a, right, 2*gsm.Page), 1), wire.Add, at(a, right, 2*gsm.Page), 8, gsm.ErrRange},
		{a.Add64(at(a, right, 4), 1), wire.Add, at(a, right, 4), 8, gsm.ErrUnaligned},
		{a.Put64(at(hidden, right, 0), 1), wire.Put, at(hidden, right, 0), 8, gsm.ErrProtected},
		{second(a.Swap32(at(hidden, right, 0), 1)), wire.Swap, at(hidden, right, 0), 4, gsm.ErrProtected},
		{second(a.Get32(gsm.Address{Task: fabric.Task(right), Window: 7})), wire.Get, gsm.Address{Task: fabric.Task(right), Window: 7}, 4, gsm.ErrNoWindow},
		{laid(at(a, right, 2*gsm.Page-39)), wire.Put, at(a, right, 2*gsm.Page-39), 40, gsm.ErrRange},
		{laid(at(a, right, ^uint64(0))), wire.Put, at(a, right, ^uint64(0)), 40, gsm.ErrRange},
		{laid(at(a, right, 1<<63-8)), wire.Put, at(a, right, 1<<63-8), 40, gsm.ErrRange},
		{laid(at(hidden, right, 0)), wire.Put, at(hidden, right, 0), 40, gsm.ErrProtected},
		{laid(gsm.Address{Task: fabric.Task(right), Window: 7}), wire.Put, gsm.Address{Task: fabric.Task(right), Window: 7}, 40, gsm.ErrNoWindow},
	} {
		var e *gsm.Error
		require.ErrorAs(t, c.err, &e)
		assert.ErrorIs(t, c.err, c.why)
		assert.Equal(t, gsm.Error{Op: c.op, Address: c.address, Bytes: c.bytes, Err: e.Err}, *e)
	}
	assert.Equal(t, uint64(13), a.Counters().Refused)
	h, err := a.StartPut(at(a, right, 2*gsm.Page), []byte{1}, true)
	if err == nil {
		err = a.Wait(h)
	}
	assert.ErrorIs(t, err, gsm.ErrRange)
	_, err = a.StartPut(at(a, right, 2*gsm.Page), []byte{1}, false)
	if err == nil {
		err = a.Fence()
	}
	assert.ErrorIs(t, err, gsm.ErrRange, "Fence tells what nobody has a handle of")
	require.NoError(t, a.Fence())
	require.NoError(t, job.GlobalFence())
	assert.Equal(t, make([]byte, 2*gsm.Page), a.Local(), "task %d: nothing was written", me)
	assert.Equal(t, make([]byte, 64), hidden.Local())
	require.NoError(t, job.Leave())
}

func TestHandles(t *testing.T) { bothWays(t, 200, handles) }

func handles(t *testing.T, _ int) {
	job := join(t)
	a := array(t, job, 4096)
	other, err := job.OpenPart(nil, 0, 0, 0)
	require.NoError(t, err)
	var all []gsm.Handle
	got := make([]byte, 8*200)
	for i := range 200 {
		h, err := a.StartPut(at(a, int(job.Task()), uint64(8*i)), []byte{1, 2, 3, 4, 5, 6, 7, byte(i)}, true)
		require.NoError(t, err)
		all = append(all, h)
		h, err = a.StartGet(at(a, int(job.Task()), uint64(8*i)), got[8*i:8*i+8], i%2 == 0)
		require.NoError(t, err)
		if i%2 == 0 {
			all = append(all, h)
		} else {
			assert.Zero(t, h, "no notification was wanted")
		}
	}
	require.NoError(t, a.Fence())
	for i, h := range all {
		assert.ErrorIs(t, other.Wait(h), gsm.ErrHandle, "of another window")
		if i%2 == 0 {
			require.NoError(t, a.Wait(h))
		} else {
			done, err := a.Test(h)
			require.NoError(t, err)
			require.True(t, done)
		}
		assert.ErrorIs(t, a.Wait(h), gsm.ErrHandle, "it was freed")
		_, err := a.Test(h)
		assert.ErrorIs(t, err, gsm.ErrHandle)
	}
	assert.ErrorIs(t, a.Wait(gsm.Handle{}), gsm.ErrHandle)
	assert.Equal(t, a.Local()[:len(got)], got)
	h, err := a.StartPut(at(a, 0, 0), got[:1], true)
	require.NoError(t, err)
	assert.NotContains(t, all, h, "a slot is used again under another generation")
	require.NoError(t, a.Wait(h))
	assert.Equal(t, gsm.Counters{Puts: 201, PutBytes: 1601, Gets: 200, GetBytes: 1600, Fences: 1}, a.Counters())
	require.NoError(t, job.Leave())
}

// The error of a command without notification is the fence's, also where the start of another has to wait for it.
func TestStartsReturnNoErrorsOfOthers(t *testing.T) {
	apart = true
	defer func() { apart = false }()
	job := join(t)
	a := array(t, job, 64)
	if right := (int(job.Task()) + 1) % job.Tasks(); job.Tasks() > 1 {
		for i := range 1025 {
			offset := uint64(8)
			if i == 0 {
				offset = 64
			}
			_, err := a.StartPut(at(a, right, offset), []byte{1}, false)
			require.NoError(t, err)
		}
		assert.ErrorIs(t, a.Fence(), gsm.ErrRange)
		assert.NoError(t, a.Fence(), "it is told once")
	}
	require.NoError(t, job.Leave())
}

// What failed of earlier commands is told, but keeps nobody from allocating, freeing and closing.
func TestEarlierErrorsUndoNothing(t *testing.T) {
	apart = true
	defer func() { apart = false }()
	job := join(t)
	fails := func(a *gsm.Array) (told error) {
		if job.Task() == 0 && job.Tasks() > 1 {
			_, err := a.StartPut(at(a, 1, 64), []byte{1}, false)
			require.NoError(t, err)
			return gsm.ErrRange
		}
		return nil
	}
	first := array(t, job, 64)
	told := fails(first)
	second := array(t, job, 64)
	assert.ErrorIs(t, first.Fence(), told)
	told = fails(second)
	assert.ErrorIs(t, second.Free(), told)
	assert.ErrorIs(t, second.Free(), gsm.ErrClosed)
	if told = fails(first); told != nil { // the others' windows stay open
		assert.ErrorIs(t, first.Close(), told)
		assert.ErrorIs(t, first.Close(), gsm.ErrClosed)
	}
	require.NoError(t, job.Leave())
}

// A task may free an array while its last commands are under way: its target keeps its window open for them.
func TestFreeingWithCommandsUnderWay(t *testing.T) {
	apart = true
	defer func() { apart = false }()
	job := join(t)
	data := make([]byte, 1<<20)
	for range 20 {
		a := array(t, job, uint64(len(data)))
		if job.Task() == 0 && job.Tasks() > 1 {
			_, err := a.StartPut(at(a, 1, 0), data, false)
			require.NoError(t, err)
		}
		require.NoError(t, a.Free())
	}
	require.NoError(t, job.Leave())
}

func TestLayouts(t *testing.T) { bothWays(t, 10, layouts) }

func layouts(t *testing.T, _ int) {
	job := join(t)
	a := array(t, job, 1000)
	right := (int(job.Task()) + 1) % job.Tasks()
	data := make([]byte, 300)
	for i := range data {
		data[i] = byte(i + 1)
	}
	require.NoError(t, a.PutLayout(at(a, right, 40), vector(t, 20, 8, 24), data, vector(t, 10, 16, 20)))
	back := make([]byte, 300)
	require.NoError(t, a.GetLayout(at(a, right, 40), vector(t, 20, 8, 24), back, vector(t, 10, 16, 20)))
	require.NoError(t, job.GlobalFence())
	want, wantBack := make([]byte, 1000), make([]byte, 300)
	for i := range 160 {
		from := i/16*20 + i%16
		want[40+i/8*24+i%8], wantBack[from] = data[from], data[from]
	}
	assert.Equal(t, want, a.Local())
	assert.Equal(t, wantBack, back)
	require.NoError(t, job.Leave())
}

// Every byte of an array has one place, in order within its block, and Local shows the task's own.
func TestArrays(t *testing.T) { bothWays(t, 100000, arrays) }

func arrays(t *testing.T, most int) {
	job := join(t)
	for _, shape := range [][2]uint64{{1, 0}, {1000, 0}, {128 * uint64(job.Tasks()), 0}, {1000, 1}, {1000, 24}, {64, 64}, {8192, 4096}, {10000, 4096}, {100000, 96}} {
		bytes, block := min(shape[0], uint64(most)/10), shape[1]
		a, err := job.AllAllocate(bytes, block, gsm.AllowAll)
		require.NoError(t, err)
		if tasks := uint64(job.Tasks()); block == 0 { // one for each, of whole cache lines
			share := (bytes + tasks - 1) / tasks
			assert.True(t, a.Block()%64 == 0 && a.Block() >= share && a.Block() < share+64, "blocks of %d for %d bytes of each", a.Block(), share)
		}
		block = a.Block()
		shares := make([]uint64, job.Tasks()) // by dealing out bytes
		var mine []byte
		for i := range bytes {
			task := i / block % uint64(job.Tasks())
			require.Equal(t, gsm.Address{Task: fabric.Task(task), Window: a.Number(), Offset: shares[task]}, a.Address(i))
			shares[task]++
			if task == uint64(job.Task()) {
				mine = append(mine, byte(i%251))
			}
			if i%uint64(job.Tasks()) == uint64(job.Task()) {
				require.NoError(t, a.Put(a.Address(i), []byte{byte(i % 251)}))
			}
		}
		assert.ErrorIs(t, a.Put(gsm.Address{Task: job.Task(), Window: a.Number(), Offset: shares[job.Task()]}, []byte{1}), gsm.ErrRange)
		require.NoError(t, job.GlobalFence())
		assert.Equal(t, len(mine), len(a.Local()))
		assert.Equal(t, mine, append([]byte(nil), a.Local()...))
		require.NoError(t, job.GlobalFence())
		require.NoError(t, a.Free())
		assert.ErrorIs(t, a.Free(), gsm.ErrClosed)
	}
	require.NoError(t, job.Leave())
}

// Tasks that differ all get an error, and can go on.
func TestUnequalArguments(t *testing.T) {
	if mpi.World.Size() < 2 {
		t.Skip("needs two tasks")
	}
	job := join(t)
	mine := uint64(job.Task())
	_, err := job.AllAllocate(1000+mine, 0, gsm.AllowAll)
	assert.ErrorIs(t, err, gsm.ErrUnequal)
	_, err = job.AllAllocate(1000, 8+mine, gsm.AllowAll)
	assert.ErrorIs(t, err, gsm.ErrUnequal)
	first, second := array(t, job, 100), array(t, job, 100)
	freed := first
	if mine == 1 {
		freed = second
	}
	assert.ErrorIs(t, freed.Free(), gsm.ErrUnequal)
	require.NoError(t, first.Free())
	third := array(t, job, 100)
	numbers := []uint32{uint32(third.Number()), ^uint32(third.Number())}
	require.NoError(t, mpi.AllreduceInPlace(mpi.World, numbers, mpi.Max))
	assert.Equal(t, ^numbers[1], numbers[0], "the tables are still alike")
	require.NoError(t, job.Leave())
}

// What one task has no room for, no task gets, and the heaps stay alike.
func TestNoRoomAtOneTask(t *testing.T) { bothWays(t, 10, noRoomAtOneTask) }

func noRoomAtOneTask(t *testing.T, _ int) {
	job := join(t)
	for range 3 {
		_, err := job.AllAllocate(uint64(job.Tasks())*(64<<20), 0, gsm.AllowAll)
		assert.ErrorIs(t, err, gsm.ErrNoMemory)
	}
	a := array(t, job, 32<<20)
	require.NoError(t, a.Free())
	a = array(t, job, 32<<20)
	require.NoError(t, a.Put64(at(a, 0, 8*uint64(job.Task())), 1))
	require.NoError(t, job.Leave())
}

// Two jobs of the same tasks, and one of each task alone, know nothing of each other.
func TestJobsAreApart(t *testing.T) {
	first, second := join(t), join(t)
	alone, err := gsm.Join(mpi.Self, gsm.Options{Reserve: 1 << 20})
	require.NoError(t, err)
	assert.Equal(t, 1, alone.Tasks())
	a, b := array(t, first, 64), array(t, second, 64)
	assert.Equal(t, a.Number(), b.Number())
	require.NoError(t, a.Put64(at(a, int(first.Task()), 0), 1))
	got, err := b.Get64(at(b, int(second.Task()), 0))
	require.NoError(t, err)
	assert.Zero(t, got)
	for task := range first.Tasks() {
		assert.True(t, first.SameNode(fabric.Task(task)))
	}
	assert.False(t, first.SameNode(fabric.Task(first.Tasks())))
	require.NoError(t, alone.Leave())
	require.NoError(t, second.Leave())
	require.NoError(t, a.Put64(at(a, 0, 8), 1))
	require.NoError(t, first.Leave())
}
