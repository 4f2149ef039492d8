package shared

import (
	"context"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/pkg/errors"
	"golang.org/x/sys/unix"

	"evenkeel/collectives"
	"evenkeel/collectives/carrier"
	"evenkeel/collectives/measure"
	"evenkeel/mpi"
	"evenkeel/pgas/courier"
	"evenkeel/pgas/gsm"
	"evenkeel/pgas/gsm/engine"
	"evenkeel/pgas/gsm/wire"
	"evenkeel/pgas/shared/affinity"
	"evenkeel/pgas/shared/heap"
	"evenkeel/pgas/svd"
	"evenkeel/pgas/svd/directory"
	"evenkeel/runtime/fabric"
	overmpi "evenkeel/runtime/fabric/mpi"
	"evenkeel/runtime/fabric/shm"
)

// The arithmetic of shared arrays and pointers to shared, under the names that programs use.
type (
	// Pointer is a pointer to shared: thread, phase and address.
	Pointer = affinity.Pointer
	// Layout says which thread each element has affinity to.
	Layout = affinity.Layout
	// Tiling is an array of several dimensions in blocks of as many.
	Tiling = affinity.Tiling
	// Ref names a shared object in the whole job: its handle in the shared variable
	// directory. It is a number, which can be kept in shared memory and sent to others
	// (OpenArray, OpenLock).
	Ref = svd.Handle
)

// Indefinite is the block size of UPC's [] and [0].
const Indefinite = affinity.Indefinite

// ThreadOf is upc_threadof.
func ThreadOf(p Pointer) int { return affinity.ThreadOf(p) }

// PhaseOf is upc_phaseof.
func PhaseOf(p Pointer) int { return affinity.PhaseOf(p) }

// AddrField is upc_addrfield.
func AddrField(p Pointer) int { return affinity.AddrField(p) }

// ResetPhase is upc_resetphase.
func ResetPhase(p Pointer) Pointer { return affinity.ResetPhase(p) }

// World is a thread's part in a group of threads that share objects: UPC's THREADS and MYTHREAD. It
// belongs to one goroutine. What is collective is called by all threads in the same order, with equal
// arguments; where they differ, all get an error.
//
// Each thread has a part of the shared heap, at the same place. Its lower half is for objects that
// are spread over all threads, and lie at the same offset on each; thread 0 keeps the books of all
// lower halves. Its upper half is for objects of that thread alone.
//
// Every object is an entry of the shared variable directory: what all threads allocate together one of
// the partition All, what one thread allocates one of that thread's. A thread that opens an object by its
// Ref is told of what becomes of it, and memory is given back when everyone has let go.
type World struct {
	job       *gsm.Job
	comm      *mpi.Comm
	memory    *gsm.Array
	local     []byte // this thread's part
	thread    int
	threads   int
	half      uint64
	network   collectives.Network
	directory *directory.Server
	reader    *directory.Reader // of the goroutine that the World belongs to
	barrier   barrier
	ended     bool

	// What follows is also used when memory is given back, by another goroutine.
	keeping sync.Mutex     // over books and locks of the heap, and the window
	door    *gsm.Window    // of commands to them
	spread  *Lock          // over the books of the lower halves
	own     []*Lock        // over those of each thread's upper half; their places in the queue are one, for none is held while another is taken
	giving  sync.WaitGroup // goroutines that give memory back
	starts  sync.Mutex     // over their start
	over    bool           // no more of them
}

// Options of a World.
type Options struct {
	Heap int         // bytes of each thread's part of the shared heap; 0: 64 MiB. Memory is taken only for what is used.
	Job  gsm.Options // of the job that the world makes: how other nodes are reached, and how long a silent one is waited for
}

// Each half begins with the part of its lock; the heap follows.
const (
	lockBytes = 2 * heap.Unit
	heapBegin = lockBytes
)

// Start makes a world of the ranks of a communicator: its threads. Where Go would run on one processor alone, as in a rank
// that mpirun has bound to a core, it raises GOMAXPROCS to two. Collective.
func Start(c *mpi.Comm, o Options) (*World, error) {
	if o.Heap == 0 {
		o.Heap = 64 << 20
	}
	bytes := uint64(o.Heap) / (2 * heap.Unit) * (2 * heap.Unit)
	if o.Job.Handlers == nil {
		o.Job.Handlers = &engine.Handlers{}
	}
	if err := meetThreads(c, uint64(o.Heap)); err != nil {
		return nil, errors.WithMessagef(err, "thread %d: starting to share objects", c.Rank())
	}
	if o.Heap < 1<<12 {
		return nil, errors.Errorf("a shared heap of %d bytes for each thread: it takes 4096 at least", o.Heap)
	}
	job, err := gsm.Join(c, o.Job)
	if err != nil {
		return nil, err
	}
	w := &World{job: job, thread: int(job.Task()), threads: job.Tasks(), half: bytes / 2}
	if err := w.enter(c, bytes, o); err != nil {
		job.Leave()
		return nil, errors.WithMessage(err, "starting to share objects")
	}
	return w, nil
}

// meetThreads says whether all threads mean the same world: before anything else, as C's do it.
func meetThreads(c *mpi.Comm, heap uint64) error {
	const language = 2 // C's is 1
	all := []uint64{language, ^uint64(language), heap, ^heap}
	if err := mpi.AllreduceInPlace(c, all, mpi.Max); err != nil {
		return err
	}
	switch {
	case all[0] != ^all[1]:
		return errors.New("threads in C and threads in Go can't share one world")
	case all[2] != ^all[3]:
		return errors.Errorf("a shared heap must be as large on all threads; they ask for %d to %d bytes", ^all[3], all[2])
	}
	return nil
}

// The numbers of the handlers of active messages that a world has for its directory, and while it starts.
const (
	DirectoryHandler wire.Handler = gsm.LayoutHandler - 1 - iota
	MeasureHandler
)

func (w *World) enter(c *mpi.Comm, bytes uint64, o Options) (err error) {
	if w.comm, err = c.Dup(); err != nil {
		return err
	}
	if err = w.comm.SetName("shared objects"); err != nil { // for the report
		return err
	}
	if w.barrier, err = newBarrier(w.comm); err != nil {
		return err
	}
	if w.memory, err = w.job.AllAllocate(bytes*uint64(w.threads), bytes, gsm.AllowAll); err != nil {
		return err
	}
	if w.door, err = w.job.OpenPart(nil, 0, 0, 0); err != nil {
		return err
	}
	w.local = w.memory.Local()
	w.spread = &Lock{w: w, door: w.door, what: "the lock over what is spread"}
	for t := range w.threads {
		w.own = append(w.own, &Lock{w: w, door: w.door, place: w.half, home: t, what: "the lock over what one thread has"})
	}
	if w.thread == 0 {
		if err := heap.Format(books{w, 0, heapBegin}, w.half-heapBegin); err != nil {
			return err
		}
	}
	if err := heap.Format(books{w, w.thread, w.half + heapBegin}, w.half-heapBegin); err != nil {
		return err
	}
	if err := w.register(o); err != nil {
		return err
	}
	return w.job.GlobalFence()
}

// register makes the thread's part of the directory. Its messages go through the job's engine, or, where all
// threads are on one node, which has none, over shared memory.
func (w *World) register(o Options) error {
	nodes, err := w.nodes()
	if err != nil {
		return err
	}
	var by carrier.Carrier
	e := w.job.Engine()
	if e != nil {
		silent := func(silent fabric.Task) { go w.directory.Gone(silent) }
		by = courier.New(e, o.Job.Handlers, DirectoryHandler, silent)
		probe, err := measure.Through(courier.New(e, o.Job.Handlers, MeasureHandler, nil), w.threads)
		if err == nil {
			err = w.job.GlobalFence() // all have their handlers
		}
		if err == nil {
			w.measure(probe, nodes)
			err = probe.Close()
		}
		if err != nil {
			return err
		}
	} else {
		const messages = 1024 // bytes of the longest
		network, err := shm.Join(overmpi.Meet(w.comm), shm.Options{Buffer: messages})
		if err != nil {
			return err
		}
		w.measure(network, nodes)
		by = carrier.Over(network)
	}
	// What carries the messages repeats what is lost.
	const retry, most = time.Second, 8 * time.Second
	if w.threads > 1 { // a thread that computes, or waits in C, must not keep the directory's messages from being taken in
		runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0)))
	}
	w.directory, err = directory.Serve(by, directory.Config{Released: w.released, Copy: w.copy,
		Config: svd.Config{Tasks: w.threads, Nodes: nodes, Network: w.network, Retry: retry, RetryMax: most}})
	if err != nil {
		return err
	}
	w.reader = w.directory.NewReader()
	return nil
}

// measure finds out what messages cost here, some milliseconds long. Where that fails it does so on all threads, and
// who is told something is told directly.
func (w *World) measure(f fabric.Fabric, nodes collectives.Nodes) {
	w.network, _ = measure.Network(overmpi.Meet(w.comm), f, nodes)
}

// Network is what messages of the directory cost, as it was measured when the world was started: what the schedules of its
// changes are chosen from.
func (w *World) Network() collectives.Network { return w.network }

// nodes says on which node each thread is: by the number of the node's first one.
func (w *World) nodes() (collectives.Nodes, error) {
	first := w.thread
	for t := range w.thread {
		if w.job.SameNode(fabric.Task(t)) {
			first = t
			break
		}
	}
	of := make([]int32, w.threads)
	if err := mpi.Allgather(w.comm, []int32{int32(first)}, of); err != nil {
		return nil, err
	}
	return func(t collectives.Task) uint32 { return uint32(of[t]) }, nil
}

// End ends the thread's part. All objects are gone then. Collective.
func (w *World) End() error {
	if w.ended {
		return errors.Errorf("thread %d: the world has ended before", w.thread)
	}
	w.ended = true
	w.keeping.Lock() // the fence is of all windows, also of that which memory is given back by
	err := w.job.GlobalFence()
	w.keeping.Unlock()
	if err != nil {
		return err
	}
	if err := w.directory.Close(); err != nil {
		return err
	}
	w.starts.Lock()
	w.over = true
	w.starts.Unlock()
	w.giving.Wait() // others do so before they free their memory too, which is collective
	if err := w.memory.Free(); err != nil {
		return err
	}
	w.barrier.free()
	if err := w.comm.Free(); err != nil {
		return err
	}
	return w.job.Leave()
}

// MyThread is MYTHREAD.
func (w *World) MyThread() int { return w.thread }

// Threads is THREADS.
func (w *World) Threads() int { return w.threads }

// Fence is upc_fence: all shared accesses before it are done before any after it.
func (w *World) Fence() error {
	if w.ended {
		return errors.Errorf("thread %d: fence: the world has ended", w.thread)
	}
	return w.memory.Fence()
}

// address is a byte of a thread's part of the heap.
func (w *World) address(thread int, offset uint64) gsm.Address {
	return gsm.Address{Task: fabric.Task(thread), Window: w.memory.Number(), Offset: offset}
}

// word is a word of the calling thread's own part, which others change with atomics.
func (w *World) word(offset uint64) *uint64 { return (*uint64)(unsafe.Pointer(&w.local[offset])) }

// forever is the context of what ends when all threads have come, or with the job.
var forever = context.Background()

// argument is what all threads must give alike to a collective call: an object, or a number.
type argument struct {
	name   string
	value  uint64
	object bool
}

func (a argument) show(value uint64) string {
	if a.object {
		return Ref(value).String()
	}
	return strconv.FormatInt(int64(value), 10)
}

func object(name string, r Ref) argument { return argument{name, uint64(r), true} }
func number(name string, n int) argument { return argument{name, uint64(n), false} }

// same fails on all threads unless all give the same arguments, of which the first is the object that it is about.
func (w *World) same(what string, arguments ...argument) error {
	if err := w.usable(what); err != nil {
		return err
	}
	both := make([]uint64, 0, 2*len(arguments))
	for _, a := range arguments {
		both = append(both, a.value, ^a.value)
	}
	if err := mpi.AllreduceInPlace(w.comm, both, mpi.Max); err != nil {
		return errors.WithMessage(err, what)
	}
	for i, a := range arguments {
		most, least := both[2*i], ^both[2*i+1]
		if most == least {
			continue
		}
		other := most
		if a.value == most {
			other = least
		}
		return errors.Errorf("thread %d: %s %s: %s must be the same on all threads; it is %s here, and %s elsewhere",
			w.thread, what, arguments[0].show(arguments[0].value), a.name, a.show(a.value), a.show(other))
	}
	return nil
}

// usable says whether something collective can be done.
func (w *World) usable(what string) error {
	switch {
	case w.ended:
		return errors.Errorf("thread %d: %s: the world has ended", w.thread, what)
	case w.barrier.notified:
		return errors.Errorf("thread %d: %s: nothing collective can be done between Notify and Wait", w.thread, what)
	}
	return nil
}

// agree returns an error on all threads if one has one.
func (w *World) agree(what string, about Ref, mine error) error {
	failed := []int32{0}
	if mine != nil {
		failed[0] = int32(w.thread) + 1
	}
	if err := mpi.AllreduceInPlace(w.comm, failed, mpi.Max); err != nil {
		return errors.WithMessage(err, what)
	}
	if mine == nil && failed[0] > 0 {
		return errors.Errorf("thread %d: %s %s: thread %d failed in it", w.thread, what, about, failed[0]-1)
	}
	return mine
}

// books are those of a heap, in a thread's memory.
type books struct {
	w      *World
	thread int
	base   uint64
}

func (b books) Load(offset uint64) (uint64, error) {
	return b.w.door.Get64(b.w.address(b.thread, b.base+offset))
}

func (b books) Store(offset, value uint64) error {
	return b.w.door.Put64(b.w.address(b.thread, b.base+offset), value)
}

// wait spins until a word of the thread's own part is what is wanted; when that takes long it lets
// others have the processor, and then sleeps.
func wait(word *uint64, done func(uint64) bool) uint64 {
	const spins, yields = 1000, 200
	for i := 0; ; i++ {
		if v := atomic.LoadUint64(word); done(v) {
			return v
		}
		switch {
		case i < spins:
		case i < spins+yields:
			runtime.Gosched()
			unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
		default:
			time.Sleep(20 * time.Microsecond)
		}
	}
}
