package gsm_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/mpi"
	"evenkeel/pgas/dgsp"
	"evenkeel/pgas/gsm"
	"evenkeel/pgas/gsm/wire"
	"evenkeel/runtime/fabric"
)

// Some tasks have a narrower key. Windows under it do for them what others do, and refuse everybody else, who learns why;
// the target counts it.
func TestNarrowerKeys(t *testing.T) { bothWays(t, 10, narrowerKeys) }

func narrowerKeys(t *testing.T, _ int) {
	job := join(t)
	me, tasks := int(job.Task()), job.Tasks()
	members := max(1, tasks/2) // tasks 0 to members-1
	color := 0
	if me >= members {
		color = 1
	}
	subset, err := mpi.World.Split(color, 0)
	require.NoError(t, err)
	key, err := job.Narrow(subset) // the others have one of their own, under the same number
	require.NoError(t, err)

	block, err := job.Allocate(2 * gsm.Page)
	require.NoError(t, err)
	narrow, err := job.OpenUnder(key, block, 0, gsm.Page, gsm.AllowPut|gsm.AllowAtomic)
	require.NoError(t, err)
	wide, err := job.OpenPart(block, gsm.Page, gsm.Page, gsm.AllowAll)
	require.NoError(t, err)
	numbers := make([]uint32, 2*tasks)
	require.NoError(t, mpi.Allgather(mpi.World, []uint32{uint32(narrow.Number()), uint32(wide.Number())}, numbers))
	in := func(task, which int, offset uint64) gsm.Address {
		return gsm.Address{Task: fabric.Task(task), Window: wire.Window(numbers[2*task+which]), Offset: offset}
	}
	strided := vector(t, 3, 8, 16)
	packed, err := dgsp.Compile(dgsp.Block(24))
	require.NoError(t, err)

	mine := uint64(me) * 64
	for task := range tasks {
		friend := (task < members) == (me < members)
		said := map[string]error{
			"a PUT through the narrow window":    narrow.Put64(in(task, 0, mine), 7),
			"an atomic":                          narrow.Add64(in(task, 0, mine+8), 1),
			"a layout":                           narrow.PutLayout(in(task, 0, mine+16), strided, make([]byte, 24), packed),
			"what an ordinary window allows too": narrow.Put64(in(task, 1, mine), 8),
			"a layout of an ordinary window":     narrow.GetLayout(in(task, 1, 0), strided, make([]byte, 24), packed),
		}
		for what, err := range said {
			switch {
			case friend:
				assert.NoError(t, err, "%s to task %d", what, task)
			case job.Engine() == nil: // who has not the key is nowhere for the window
				assert.Error(t, err, "%s to task %d", what, task)
			default:
				assert.ErrorIs(t, err, gsm.ErrKey, "%s to task %d", what, task)
			}
		}
		if task != me || job.Engine() == nil {
			assert.ErrorIs(t, wide.Put64(in(task, 0, 8*mine), 9), gsm.ErrKey, "under the job's key, to task %d", task)
			assert.ErrorIs(t, second(wide.FetchAndAdd64(in(task, 0, 0), 1)), gsm.ErrKey)
			assert.ErrorIs(t, wide.PutLayout(in(task, 0, 8*mine), strided, make([]byte, 24), packed), gsm.ErrKey)
		}
		if friend {
			assert.ErrorIs(t, second(narrow.Get64(in(task, 0, mine))), gsm.ErrProtected, "the window's rights hold too")
			assert.ErrorIs(t, narrow.Put64(in(task, 0, gsm.Page), 1), gsm.ErrRange)
			refused := narrow.Counters().Refused
			assert.ErrorIs(t, narrow.PutLayout(in(task, 0, gsm.Page-32), strided, bytes.Repeat([]byte{1}, 24), packed), gsm.ErrRange,
				"a layout whose last block is beyond the window")
			assert.Equal(t, refused+1, narrow.Counters().Refused, "one command")
		}
		require.NoError(t, wide.Put64(in(task, 1, 8*uint64(me)), 5), "ordinary windows are for all")
	}
	require.NoError(t, job.GlobalFence())
	for task := range tasks {
		want := []byte{0, 0}
		if (task < members) == (me < members) {
			want = []byte{7, 1}
		}
		assert.Equal(t, want, []byte{block.Bytes()[64*task], block.Bytes()[64*task+8]}, "what task %d wrote", task)
	}
	assert.Equal(t, make([]byte, 32), block.Bytes()[gsm.Page-32:gsm.Page], "of a layout that is refused nothing is written")
	if job.Engine() != nil && tasks > 1 {
		assert.GreaterOrEqual(t, job.Engine().Counters().Dropped[wire.Credential], uint64(2*(tasks-1)), "of each of the others")
	}
	require.NoError(t, job.GlobalFence())

	// Pages hold what was said of them; a key that was dropped is worth nothing.
	require.NoError(t, block.Protect(0, gsm.Page, gsm.AllowGet))
	assert.ErrorIs(t, narrow.Put64(in(me, 0, 0), 1), gsm.ErrProtected)
	require.NoError(t, block.Protect(0, gsm.Page, gsm.AllowAll))
	require.NoError(t, job.GlobalFence())
	if me == 0 {
		require.NoError(t, key.Drop())
		assert.ErrorIs(t, narrow.Put64(in(0, 0, 0), 1), gsm.ErrKey)
	}
	require.NoError(t, job.GlobalFence())
	if me > 0 {
		if me < members && job.SameNode(0) {
			assert.ErrorIs(t, narrow.Put64(in(0, 0, 0), 1), gsm.ErrKey)
		}
		require.NoError(t, key.Drop())
	}
	require.NoError(t, job.GlobalFence())
	assert.ErrorIs(t, key.Drop(), gsm.ErrClosed)
	_, err = job.OpenUnder(key, block, 0, gsm.Page, gsm.AllowAll)
	assert.ErrorIs(t, err, gsm.ErrKey)
	require.NoError(t, narrow.Close())
	again, err := job.Narrow(subset)
	require.NoError(t, err)
	assert.NotEqual(t, key, again)
	require.NoError(t, subset.Free())
	require.NoError(t, job.Leave())
}

// Tasks with different keys under one number, which is what a forger has: the tag is wrong, nothing is written, and the
// target counts it.
func TestAWrongKeyIsDropped(t *testing.T) {
	if mpi.World.Size() < 2 {
		t.Skip("needs two tasks")
	}
	job, err := gsm.Join(mpi.World, gsm.Options{Reserve: 64 << 20, Apart: true, Silence: 300e6})
	require.NoError(t, err)
	me := int(job.Task())
	right := (me + 1) % job.Tasks()
	single, err := mpi.World.Split(me, 0)
	require.NoError(t, err)
	key, err := job.Narrow(single) // each task has one of its own
	require.NoError(t, err)
	block, err := job.Allocate(64)
	require.NoError(t, err)
	window, err := job.OpenUnder(key, block, 0, 64, gsm.AllowAll)
	require.NoError(t, err)
	numbers := make([]uint32, job.Tasks())
	require.NoError(t, mpi.Allgather(mpi.World, []uint32{uint32(window.Number())}, numbers))
	require.NoError(t, job.GlobalFence())

	gsm.Believe(key, fabric.Task(right)) // as if it were that task's key too
	err = window.Put64(gsm.Address{Task: fabric.Task(right), Window: wire.Window(numbers[right])}, 1)
	assert.ErrorIs(t, err, wire.Silent)
	require.NoError(t, job.GlobalFence())
	assert.Equal(t, make([]byte, 64), block.Bytes())
	assert.Positive(t, job.Engine().Counters().Dropped[wire.Forged])
	require.NoError(t, single.Free())
	require.NoError(t, job.Leave())
}
