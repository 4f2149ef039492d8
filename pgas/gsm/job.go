// Package gsm is global shared memory: the tasks of a job read, write and atomically update each other's memory, on one
// node at the speed of memory.
//
// A task is a rank of the communicator that the job was joined over. Each has memory of its own that others may reach
// ([Job.Allocate], [Job.AllAllocate]), and shows parts of it in windows ([Job.Open]). A global address is a task, one of its
// windows, and an offset into that. Commands go out through a window of the caller's own, which counts them:
//
//	job, err := gsm.Join(mpi.World, gsm.Options{})
//	array, err := job.AllAllocate(1<<20, 0)          // 1 MiB, an equal part at each task
//	err = array.Put64(array.Address(8*i), value)
//	old, err := array.FetchAndAdd64(array.Address(0), 1)
//	err = job.GlobalFence()
//
// On the same node a command is a check and then a load, a store or an atomic instruction on mapped memory; nothing
// crosses into C. Nothing is written where the check fails: the command returns an [*Error] with its operation, task and
// address.
//
// # Memory order
//
// PUT and GET are relaxed: an aligned word of 4 or 8 bytes is written or read as a whole, and no more is promised. Atomics
// are sequentially consistent among each other. [Window.Fence] has all commands that the window issued before it done, and
// seen by all, before any that it issues after it; [Job.GlobalFence] has those of all tasks. A fence before and one after
// make of a PUT or GET what UPC calls a strict access.
//
// # Concurrency
//
// A window is used by one goroutine at a time; a program opens as many as it likes, one for each goroutine. Join, Leave and
// what else is collective is called by one goroutine of every task, in the same order.
//
// A command checks, and then acts. So one that runs while its target closes the window or frees the memory may still reach
// it until the next global fence. Until then neither the memory nor the window's number is used again.
package gsm

import (
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pkg/errors"

	"evenkeel/mpi"
	"evenkeel/pgas/dgsp/port"
	"evenkeel/pgas/gsm/engine"
	"evenkeel/pgas/gsm/memory"
	"evenkeel/pgas/gsm/wire"
	"evenkeel/runtime/config"
	"evenkeel/runtime/fabric"
)

// Options of a job. The zero value takes what the settings say.
type Options struct {
	// Reserve is how many bytes of addresses each task reserves, half of them for collective allocations; 0:
	// EVENKEEL_GSM_RESERVE. Memory is taken only for what is allocated.
	Reserve uint64

	// Fabric joins the network to other nodes, if there are any; nil: what the settings say (EVENKEEL_FABRIC), or UDP under
	// Apart. Collective.
	Fabric func(fabric.Meeting) (fabric.Fabric, error)
	// Handlers are what active messages call; nil: none. Number LayoutHandler is the job's own.
	Handlers *engine.Handlers
	// Silence is after which time a task that says nothing has failed; 0: EVENKEEL_GSM_SILENCE.
	Silence time.Duration
	// Apart has commands to other tasks of the node take the network too, as if each task were alone on its node, as
	// EVENKEEL_GSM_APART does: to test and measure that.
	Apart bool
}

// Job is a task's part in a job. Its methods may be called from several goroutines, the collective ones by one at a time.
type Job struct {
	comm   *mpi.Comm // a copy of our own
	task   fabric.Task
	number uint32 // of the process's jobs: from 1
	areas  []*memory.Area
	local  []bool // which tasks are on this node
	space  *memory.Space
	engine *engine.Engine // to other nodes; nil: there are none
	port   *port.Port     // for layouts, over the engine
	left   atomic.Bool

	lock    sync.Mutex // over windows
	windows map[wire.Window]*Window

	keys    memory.Keys // narrower ones that the task has
	lastKey wire.Key    // that it was given
}

// Join makes a job of the ranks of a communicator: its tasks, by their ranks. Collective; either all tasks join, or all get
// an error.
func Join(c *mpi.Comm, o Options) (*Job, error) {
	o = o.complete()
	comm, err := c.Dup()
	if err != nil {
		return nil, errors.WithMessage(err, "joining a job")
	}
	if err := comm.SetName("global shared memory"); err != nil { // for the report
		comm.Free()
		return nil, errors.WithMessage(err, "joining a job")
	}
	j := &Job{comm: comm, task: fabric.Task(comm.Rank()), windows: map[wire.Window]*Window{}}
	if err := j.enter(o.Reserve, o.Apart); err != nil {
		comm.Free()
		return nil, errors.WithMessage(err, "joining a job")
	}
	if err := j.connect(o); err != nil {
		j.space.Exit()
		comm.Free()
		return nil, errors.WithMessage(err, "joining a job")
	}
	j.number = jobs.Add(1)
	return j, nil
}

// complete has what the settings say where nothing was chosen.
func (o Options) complete() Options {
	settings, warnings := config.Load(os.Environ())
	config.Tell(warnings, mpi.World.Rank() == 0)
	if o.Reserve == 0 {
		o.Reserve = settings.GsmReserve()
	}
	if o.Silence == 0 {
		o.Silence = settings.GsmSilence()
	}
	o.Apart = o.Apart || settings.GsmApart()
	return o
}

// enter maps the memory of the node and finds out who else is here.
func (j *Job) enter(reserve uint64, apart bool) error {
	node, err := j.comm.SplitType(mpi.Shared, j.comm.Rank())
	if apart && err == nil {
		node.Free()
		node, err = j.comm.Split(j.comm.Rank(), 0)
	}
	if err != nil {
		return err
	}
	defer node.Free()
	var invitation memory.Invitation
	var invited error
	if node.Rank() == 0 {
		invitation, invited = memory.Invite(node.Size(), reserve/2)
		defer invitation.Uninvite()
	}
	mine := invitation
	if err := mpi.Bcast(node, mine[:], 0); err != nil {
		return err
	}
	space, entered := memory.Enter(mine, node.Rank())
	if invited != nil {
		entered = invited
	}
	// All have entered, or all turn back; nobody's descriptor is needed after this.
	if err := j.agree(entered, func() { space.Exit() }); err != nil {
		return err
	}
	j.space = space
	space.Self().SetTask(uint32(j.task))
	return j.meet(node)
}

// meet finds the areas of the tasks of this node.
func (j *Job) meet(node *mpi.Comm) error {
	tasks := make([]int32, node.Size())
	if err := mpi.Allgather(node, []int32{int32(j.comm.Rank())}, tasks); err != nil {
		return err
	}
	j.areas = make([]*memory.Area, j.comm.Size())
	j.local = make([]bool, j.comm.Size())
	for task := range j.areas {
		j.areas[task] = memory.Nowhere
	}
	for local, task := range tasks {
		j.areas[task], j.local[task] = j.space.Area(local), true
	}
	return nil
}

// agree returns nil if no task has an error. Otherwise those that have none undo what they did, and get one too.
func (j *Job) agree(mine error, undo func()) error {
	failed := []int32{0}
	if mine != nil {
		failed[0] = 1
	}
	if err := mpi.AllreduceInPlace(j.comm, failed, mpi.Max); err != nil && mine == nil {
		mine = err
	}
	if failed[0] == 0 || mine != nil {
		return mine
	}
	undo()
	return errors.WithMessage(ErrUnequal, "another task failed")
}

// Leave ends the task's part. All windows and all memory of the job are gone then, and no slice of it may be used.
// Collective.
func (j *Job) Leave() error {
	if j.left.Load() {
		return errors.WithMessagef(ErrClosed, "task %d: leaving a job", j.task)
	}
	first := j.GlobalFence() // others leave also after an error
	j.left.Store(true)
	if j.engine != nil {
		j.port.Close()
		if err := j.engine.Close(); err != nil && first == nil {
			first = err
		}
	}
	j.lock.Lock()
	defer j.lock.Unlock()
	for _, w := range j.windows {
		w.tell()
		w.areas = nil
	}
	j.space.Exit()
	if err := j.comm.Free(); err != nil && first == nil {
		first = err
	}
	return errors.WithMessage(first, "leaving a job")
}

// Task is the caller's number in the job, Tasks how many there are.
func (j *Job) Task() fabric.Task { return j.task }

// Tasks is how many tasks the job has, numbered from 0.
func (j *Job) Tasks() int { return len(j.areas) }

// SameNode says whether a task is on the caller's node, so that its memory is mapped.
func (j *Job) SameNode(task fabric.Task) bool {
	return uint64(task) < uint64(len(j.local)) && j.local[task]
}

// Lives says whether a task of the caller's node still lives: it does not if its process has ended, or has left the job. What
// became of a task on another node is known only by giving it a command. Takes some 100 µs.
func (j *Job) Lives(task fabric.Task) bool { return !j.SameNode(task) || j.space.Lives(j.areas[task]) }

// GlobalFence returns when all commands that any task issued before its own GlobalFence are done, and seen by all. What was
// freed and closed before is used again from then on: no goroutine of the task may have a command under way in it.
// Collective.
func (j *Job) GlobalFence() error {
	if j.left.Load() {
		return errors.WithMessagef(ErrClosed, "task %d: global fence", j.task)
	}
	err := j.settle()
	if failed := j.failure(); err == nil {
		err = failed
	}
	return err
}

// settle is a global fence that leaves the errors of commands without notification to be told by another.
func (j *Job) settle() error {
	j.finish()
	mark := j.space.Mark()
	// A barrier orders what was written before it, on the node as between nodes.
	if err := j.comm.Barrier(); err != nil {
		return errors.WithMessage(err, "global fence")
	}
	j.space.Settle(mark)
	return nil
}

// finish waits for all commands to other nodes.
func (j *Job) finish() {
	j.lock.Lock()
	defer j.lock.Unlock()
	for _, w := range j.windows {
		w.finish()
	}
}

// failure is the first error of a command without notification, of any window.
func (j *Job) failure() error {
	j.lock.Lock()
	defer j.lock.Unlock()
	var first error
	for _, w := range j.windows {
		if err := w.failure(); err != nil && first == nil {
			first = err
		}
	}
	return first
}
