package shared

import (
	"fmt"
	"iter"
	"reflect"
	"unsafe"

	"github.com/pkg/errors"

	"evenkeel/mpi/own"
	"evenkeel/pgas/gsm"
	"evenkeel/pgas/shared/affinity"
	"evenkeel/pgas/svd"
	"evenkeel/pgas/svd/directory"
	"evenkeel/runtime/fabric"
)

// Array is a shared array of elements of a type without Go pointers. Like its World it belongs to one
// goroutine of each thread. Get, Put and the bulk operations are relaxed; GetStrict and PutStrict are
// strict: in the order of the program for all threads, and fences for the relaxed ones around them.
//
// An element is found by what the directory said when the array was opened. Each access looks whether that
// is out of date: then the array has moved, has another size, or is freed.
type Array[T any] struct {
	w       *World
	reader  *directory.Reader // the world's
	window  *gsm.Window       // as well
	line    *directory.Line
	handle  Ref
	layout  Layout
	locator affinity.Locator
	first   int // the thread of an array with one block, which the locator takes for thread 0
	mine    int // what the locator takes this thread for
	place   uint64
	local   []T    // this thread's elements
	one     T      // what is read or written at another thread, if it is no word
	gone    string // why this thread has it no longer
}

// plain says whether values of a type are the same bytes for every process.
func plain(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8,
		reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return true
	case reflect.Array:
		return plain(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if !plain(t.Field(i).Type) {
				return false
			}
		}
		return true
	}
	return false
}

// planned is an array without memory.
func planned[T any](w *World, what string, block, elements int) (*Array[T], error) {
	t := reflect.TypeFor[T]()
	if !plain(t) {
		return nil, errors.Errorf("thread %d: %s: elements of type %v mean something in one process alone", w.thread, what, t)
	}
	l, err := affinity.NewLayout(w.threads, block, elements, int(t.Size()))
	return &Array[T]{w: w, reader: w.reader, window: w.memory.Window, layout: l}, errors.WithMessagef(err, "thread %d: %s", w.thread, what)
}

// Target is a pointer to shared that is kept in shared memory itself: an element of some array, which is found by its Ref
// wherever it has moved. An array of Targets is UPC's `shared T *shared p[N]`, and of kind pointer in the directory. The
// zero value is the null pointer.
type Target struct {
	Ref     Ref
	Pointer Pointer
}

// Target is a pointer to element i, to be kept in shared memory: who reads it there opens Ref, and loads by Pointer.
func (a *Array[T]) Target(i int) Target { return Target{a.handle, a.Pointer(i)} }

// kind is what arrays of a type are in the directory.
func kind[T any](elements int) svd.Kind {
	switch {
	case reflect.TypeFor[T]() == reflect.TypeFor[Target]():
		return svd.Pointer
	case elements == 1:
		return svd.Scalar
	}
	return svd.Array
}

// at makes the array that of an entry.
func (a *Array[T]) at(line *directory.Line) error {
	e := &line.Entry
	block := int(e.Blocking)
	if e.Blocking == svd.Whole {
		block = Indefinite
	}
	var one T
	size := int(unsafe.Sizeof(one))
	if e.Kind != svd.Scalar && e.Kind != kind[T](0) || int(e.Element) != size {
		return errors.Errorf("thread %d: opening a shared array of %T of %d bytes: %s is of kind %s, with elements of %d bytes",
			a.w.thread, one, size, a.handle, e.Kind, e.Element)
	}
	l, err := affinity.NewLayout(a.w.threads, block, int(e.Elements), size)
	if err == nil && (e.Address+e.Size > 2*a.w.half || e.Address < a.w.half && e.Address+e.Size > a.w.half) {
		err = errors.New("it does not fit the shared heap")
	}
	if err != nil {
		return errors.WithMessagef(err, "thread %d: opening %s", a.w.thread, a.handle)
	}
	a.layout, a.locator, a.place, a.line, a.first, a.local = l, l.Locator(), e.Address, line, 0, nil
	if e.Address >= a.w.half {
		a.first = int(a.handle.Home())
	}
	a.mine = a.w.thread - a.first
	if elements := a.part(a.w.thread); elements > 0 {
		a.local = unsafe.Slice((*T)(unsafe.Pointer(&a.w.local[a.place])), elements)
	}
	return nil
}

// partBytes is what every thread gives that has elements: as much as the first, which has most, and at least
// one element.
func partBytes(l Layout) uint64 { return uint64(max(l.LocalElements(0), 1) * l.Size) }

// spec is the entry of an array without memory.
func spec(l Layout, kind svd.Kind) svd.Spec {
	s := svd.Spec{Size: partBytes(l), Blocking: uint64(l.Block), Elements: uint64(l.Elements), Element: uint32(l.Size), Kind: kind}
	if l.Block == Indefinite {
		s.Blocking = svd.Whole
	}
	return s
}

// AllAlloc is upc_all_alloc: an array of so many elements in blocks of so many, that all threads get.
// Blocks of 0 elements are one block, on thread 0. Its memory holds whatever was there before.
// Collective.
func AllAlloc[T any](w *World, block, elements int) (*Array[T], error) {
	const what = "allocating a shared array"
	if err := w.usable(what); err != nil {
		return nil, err
	}
	a, planned := planned[T](w, what, block, elements)
	var s svd.Spec // what no object can have, by which all others learn of it
	if planned == nil {
		s = spec(a.layout, kind[T](elements))
	}
	r, err := w.allocateAll(allAllocCall, what, s, func() (uint64, error) { return w.allocateSpread(s.Size) })
	if err := failure(planned, err); err != nil {
		return nil, err
	}
	return a, a.open(what, r)
}

// open looks an array up by its handle.
func (a *Array[T]) open(what string, r Ref) error {
	a.handle = r
	line, err := a.w.find(r)
	if err != nil {
		return errors.WithMessagef(err, "thread %d: %s", a.w.thread, what)
	}
	return a.at(line)
}

// GlobalAlloc is upc_global_alloc: the same, called by one thread, which gets an array of its own and
// hands it on with Ref.
func GlobalAlloc[T any](w *World, block, elements int) (*Array[T], error) {
	const what = "allocating a global shared array"
	a, err := planned[T](w, what, block, elements)
	if err != nil {
		return nil, err
	}
	return a, a.allocate(what, w.allocateSpread)
}

// Alloc is upc_alloc: an array all of which has affinity to the calling thread. Others reach it by its
// Ref.
func Alloc[T any](w *World, elements int) (*Array[T], error) {
	const what = "allocating a shared array of one thread"
	a, err := planned[T](w, what, Indefinite, elements)
	if err != nil {
		return nil, err
	}
	return a, a.allocate(what, w.allocateOwn)
}

// allocate enters an array in the thread's own partition of the directory.
func (a *Array[T]) allocate(what string, take func(bytes uint64) (uint64, error)) error {
	s := spec(a.layout, kind[T](a.layout.Elements))
	var err error
	if s.Address, err = take(s.Size); err != nil {
		return errors.WithMessagef(err, "thread %d: %s of %d elements of %d bytes", a.w.thread, what, a.layout.Elements, a.layout.Size)
	}
	r, err := a.w.directory.Allocate(s)
	if err != nil {
		return errors.WithMessagef(err, "thread %d: %s", a.w.thread, what)
	}
	return a.open(what, r)
}

// Ref names the array for others.
func (a *Array[T]) Ref() Ref { return a.handle }

// OpenArray is the array that another thread allocated, with the same element type. From then on the thread
// is told of what becomes of it.
func OpenArray[T any](w *World, r Ref) (*Array[T], error) {
	const what = "opening a shared array"
	a, err := planned[T](w, what, Indefinite, 0)
	if err != nil {
		return nil, err
	}
	if w.ended {
		return nil, errors.Errorf("thread %d: %s: the world has ended", w.thread, what)
	}
	if err := a.open(what, r); err != nil {
		return nil, err
	}
	return a, nil
}

// Free is upc_free: one thread frees the array for all, whichever thread allocated it. It waits until all have heard of
// that and accesses under way have ended: whoever uses it from then on gets an error.
func (a *Array[T]) Free() error {
	if err := a.renew("freeing"); err != nil {
		return err
	}
	if err := a.w.discard(a.handle, a.place); err != nil {
		return a.failed("freeing", err.Error())
	}
	a.forget(wasFreed)
	return nil
}

// Close has the thread let go of the array without freeing it: from now on its home tells the thread nothing of it. Of an
// array that all have allocated together, which is everyone's, it is told all the same.
func (a *Array[T]) Close() error {
	if err := a.renew("closing"); err != nil {
		return err
	}
	a.w.directory.Forget(a.handle)
	a.forget("it was closed before")
	return nil
}

// AllFree is upc_all_free: the same, called by all threads; the array is freed when all have come.
// Collective.
func (a *Array[T]) AllFree() error {
	const what = "freeing"
	defer allFreeCall.Begin(a.w.comm, own.Nobody).End()
	if err := a.w.same(what, object("the array", a.handle)); err != nil {
		return err
	}
	var err error
	if a.w.thread == 0 {
		err = a.Free()
	} else if a.gone != "" {
		err = a.failed("freeing", a.gone)
	}
	if err := a.w.agree(what, a.handle, err); err != nil {
		return err
	}
	a.forget(wasFreed)
	return nil
}

const wasFreed = "it was freed before"

// forget has the array lead nowhere on this thread.
func (a *Array[T]) forget(gone string) { a.gone, a.local, a.line = gone, nil, &directory.Line{} }

// Resize gives the array another number of elements, in blocks of the same size; those that it has before and
// after stay as they are, and others hold what was in memory. Only the thread may do it whose object it is: who
// called GlobalAlloc or Alloc, or thread 0. It waits until no access of any thread is under way, and other
// threads find the array so at their next one. Slices of Local must be asked for again.
func (a *Array[T]) Resize(elements int) error {
	const what = "resizing"
	if err := a.renew(what); err != nil {
		return err
	}
	l, err := affinity.NewLayout(a.w.threads, a.layout.Block, elements, a.layout.Size)
	if err != nil {
		return a.failed(what, err.Error())
	}
	if home := int(a.handle.Home()); home != a.w.thread {
		return a.failed(what, fmt.Sprintf("only thread %d may do that, whose object it is", home))
	}
	if err := a.w.resize(a.handle, a.place, partBytes(l), uint64(elements)); err != nil {
		return a.failed(what, err.Error())
	}
	return a.renew(what)
}

// AllResize is Resize by all threads together. Collective.
func (a *Array[T]) AllResize(elements int) error {
	const what = "resizing"
	defer allResizeCall.Begin(a.w.comm, own.Nobody).End()
	if err := a.w.same(what, object("the array", a.handle), number("the number of elements", elements)); err != nil {
		return err
	}
	var err error
	if int(a.handle.Home()) == a.w.thread {
		err = a.Resize(elements)
	}
	if err := a.w.agree(what, a.handle, err); err != nil {
		return err
	}
	return a.renew(what)
}

// named is an error as the thread's, of what it did with the array.
func (a *Array[T]) named(what string, why error) error {
	if why == nil {
		return nil
	}
	return a.failed(what, why.Error())
}

func (a *Array[T]) failed(what, why string) error {
	return errors.Errorf("thread %d: %s %s: %s", a.w.thread, what, a.handle, why)
}

// current says whether the array is as this thread knows it. It is asked inside a reader's section.
func (a *Array[T]) current() bool { return a.line.Current(a.handle) }

// renew finds out how the array is now, if what is known of it is out of date. The error says that it is gone.
func (a *Array[T]) renew(what string) error { return a.named(what, a.refresh()) }

func (a *Array[T]) refresh() error {
	if a.gone != "" {
		return errors.New(a.gone)
	}
	if a.w.ended {
		return errors.New("the world has ended")
	}
	if a.current() {
		return nil
	}
	line, err := a.w.find(a.handle)
	if err != nil {
		return err
	}
	return a.at(line)
}

// Layout says which thread each element has affinity to. That of an array of one thread names thread 0;
// ThreadOf knows better. This and what else is only arithmetic goes by what the thread knew at its last access.
func (a *Array[T]) Layout() Layout { return a.layout }

// Len is the number of elements.
func (a *Array[T]) Len() int { return a.layout.Elements }

// ThreadOf is upc_threadof of element i.
func (a *Array[T]) ThreadOf(i int) int { return a.first + a.layout.ThreadOf(i) }

// Local is the calling thread's elements, one after the other, without copying: element i of the array
// is at Layout().LocalOf(i). It must not be used after the array is
// freed or resized, which it does not see.
func (a *Array[T]) Local() []T { return a.local }

// Pointer points at element i.
func (a *Array[T]) Pointer(i int) Pointer {
	p := a.layout.Pointer(i)
	p.Thread += a.first
	return p
}

// Add is p + i.
func (a *Array[T]) Add(p Pointer, i int) Pointer { return a.layout.Type().Add(p, i) }

// Sub is p - q.
func (a *Array[T]) Sub(p, q Pointer) (int, error) { return a.layout.Type().Sub(p, q) }

// ---- elements -----------------------------------------------------------------------------------

// bytes are those of some values.
func bytes[T any](values []T) []byte {
	var one T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), len(values)*int(unsafe.Sizeof(one)))
}

func (a *Array[T]) check(what string, i, n int) error { return a.named(what, a.has(i, n)) }

// has says with an error that the array has not n elements from i on.
func (a *Array[T]) has(i, n int) error {
	if err := a.refresh(); err != nil {
		return err
	}
	if i >= 0 && n >= 0 && i <= a.layout.Elements-n {
		return nil
	}
	has := "it has none"
	if a.layout.Elements > 0 {
		has = fmt.Sprintf("stay within 0 to %d", a.layout.Elements-1)
	}
	if n == 1 {
		return errors.Errorf("element %d is not in it: %s", i, has)
	}
	return errors.Errorf("%d elements from element %d on are not in it: %s", n, i, has)
}

// use calls f, which reads or writes n elements from i on, while they stay where they are.
func (a *Array[T]) use(what string, i, n int, f func() error) error {
	for {
		if err := a.check(what, i, n); err != nil {
			return err
		}
		a.reader.Enter()
		if a.current() {
			err := f()
			a.reader.Exit()
			return err
		}
		a.reader.Exit()
	}
}

// address is where a local element of a thread is.
func (a *Array[T]) address(thread, local int) gsm.Address {
	return gsm.Address{Task: fabric.Task(thread), Window: a.window.Number(), Offset: a.place + uint64(local*a.layout.Size)}
}

// Get reads element i.
func (a *Array[T]) Get(i int) (v T, err error) {
	a.reader.Enter()
	if uint(i) < uint(a.layout.Elements) && a.current() {
		if thread, local := locate(&a.locator, i); thread == a.mine {
			v = a.local[local]
		} else {
			v, err = a.fetch(thread, local)
		}
		a.reader.Exit()
		return v, err
	}
	a.reader.Exit()
	return a.getAnew(i)
}

// locate is l.Locate. The compiler makes a function of another package a part of generic code, which is compiled where
// it is used, only if some function here that is not generic has it as its part.
func locate(l *affinity.Locator, i int) (thread, local int) { return l.Locate(i) }

// getAnew is Get of what was freed, moved or resized. By itself, since what a function
// that is handed on uses lies in memory that has to be allocated.
func (a *Array[T]) getAnew(i int) (v T, err error) {
	err = a.use("reading", i, 1, func() error {
		thread, local := locate(&a.locator, i)
		v, err = a.load(thread, local)
		return err
	})
	return v, err
}

// load reads an element where locate has found it.
func (a *Array[T]) load(thread, local int) (v T, err error) {
	if thread == a.mine {
		return a.local[local], nil
	}
	return a.fetch(thread, local)
}

// fetch reads an element of another thread: at once where it is a word.
func (a *Array[T]) fetch(thread, local int) (v T, err error) {
	at := a.address(a.first+thread, local)
	switch unsafe.Sizeof(v) {
	case 8:
		word, err := a.window.Get64(at)
		return *(*T)(unsafe.Pointer(&word)), err
	case 4:
		word, err := a.window.Get32(at)
		return *(*T)(unsafe.Pointer(&word)), err
	}
	err = a.window.Get(at, bytes(unsafe.Slice(&a.one, 1)))
	return a.one, err
}

// Put writes element i.
func (a *Array[T]) Put(i int, v T) (err error) {
	a.reader.Enter()
	if uint(i) < uint(a.layout.Elements) && a.current() {
		if thread, local := locate(&a.locator, i); thread == a.mine {
			a.local[local] = v
		} else {
			err = a.send(thread, local, v)
		}
		a.reader.Exit()
		return err
	}
	a.reader.Exit()
	return a.putAnew(i, v)
}

// putAnew is to Put what getAnew is to Get.
func (a *Array[T]) putAnew(i int, v T) error {
	return a.use("writing", i, 1, func() error {
		thread, local := locate(&a.locator, i)
		return a.store(thread, local, v)
	})
}

// store is to Put what load is to Get.
func (a *Array[T]) store(thread, local int, v T) error {
	if thread == a.mine {
		a.local[local] = v
		return nil
	}
	return a.send(thread, local, v)
}

// send is to Put what fetch is to Get.
func (a *Array[T]) send(thread, local int, v T) error {
	at := a.address(a.first+thread, local)
	switch unsafe.Sizeof(v) {
	case 8:
		return a.window.Put64(at, *(*uint64)(unsafe.Pointer(&v)))
	case 4:
		return a.window.Put32(at, *(*uint32)(unsafe.Pointer(&v)))
	}
	a.one = v
	return a.window.Put(at, bytes(unsafe.Slice(&a.one, 1)))
}

// GetStrict is a strict shared read.
func (a *Array[T]) GetStrict(i int) (v T, err error) {
	if err := a.w.Fence(); err != nil {
		return v, err
	}
	if v, err = a.Get(i); err != nil {
		return v, err
	}
	return v, a.w.Fence()
}

// PutStrict is a strict shared write.
func (a *Array[T]) PutStrict(i int, v T) error {
	if err := a.w.Fence(); err != nil {
		return err
	}
	if err := a.Put(i, v); err != nil {
		return err
	}
	return a.w.Fence()
}

// At is where a pointer points in the array: the thread, and its element's local place. The error says
// that it does not point into it.
func (a *Array[T]) At(p Pointer) (thread, local int, err error) {
	return a.follow("following a pointer into", p)
}

func (a *Array[T]) follow(what string, p Pointer) (thread, local int, err error) {
	local = p.Address / a.layout.Size
	thread = p.Thread
	has := a.layout.LocalElements(thread)
	if a.layout.Block == Indefinite && thread == a.first {
		has = a.layout.Elements
	} else if a.layout.Block == Indefinite {
		has = 0
	}
	if p.Address < 0 || p.Address%a.layout.Size != 0 || local >= has {
		return 0, 0, a.failed(what, fmt.Sprintf("{thread %d, phase %d, address %d} points at none of its elements",
			p.Thread, p.Phase, p.Address))
	}
	return thread, local, nil
}

// Load reads what p points at.
func (a *Array[T]) Load(p Pointer) (v T, err error) {
	err = a.use("reading", 0, 0, func() error {
		thread, local, err := a.follow("reading", p)
		if err != nil {
			return err
		}
		v, err = a.load(thread-a.first, local)
		return err
	})
	return v, err
}

// Store writes what p points at.
func (a *Array[T]) Store(p Pointer, v T) error {
	return a.use("writing", 0, 0, func() error {
		thread, local, err := a.follow("writing", p)
		if err != nil {
			return err
		}
		return a.store(thread-a.first, local, v)
	})
}

// ---- many elements ------------------------------------------------------------------------------

// runs calls f for stretches of elements [i, i+n) that lie in one piece: so many, from the done-th on.
func (a *Array[T]) runs(i, n int, f func(thread, local, done, count int) error) error {
	for done := 0; done < n; {
		count := a.layout.Run(i+done, n-done)
		if err := f(a.ThreadOf(i+done), a.layout.LocalOf(i+done), done, count); err != nil {
			return err
		}
		done += count
	}
	return nil
}

func (a *Array[T]) getRun(thread, local int, into []T) error {
	if thread == a.w.thread {
		copy(into, a.local[local:])
		return nil
	}
	return a.w.memory.Get(a.address(thread, local), bytes(into))
}

func (a *Array[T]) putRun(thread, local int, from []T) error {
	if thread == a.w.thread {
		copy(a.local[local:], from)
		return nil
	}
	return a.w.memory.Put(a.address(thread, local), bytes(from))
}

// Memget reads elements from i on, whichever threads they are with. (upc_memget knows one thread's only.)
func (a *Array[T]) Memget(into []T, i int) error {
	return a.use("reading", i, len(into), func() error {
		return a.runs(i, len(into), func(thread, local, done, count int) error {
			return a.getRun(thread, local, into[done:done+count])
		})
	})
}

// Memput writes elements from i on.
func (a *Array[T]) Memput(i int, from []T) error {
	return a.use("writing", i, len(from), func() error {
		return a.runs(i, len(from), func(thread, local, done, count int) error {
			return a.putRun(thread, local, from[done:done+count])
		})
	})
}

// Memset writes n elements from i on.
func (a *Array[T]) Memset(i, n int, v T) error {
	some := make([]T, min(max(n, 0), 512))
	for k := range some {
		some[k] = v
	}
	return a.use("writing", i, n, func() error {
		return a.runs(i, n, func(thread, local, _, count int) error {
			for count > 0 {
				now := min(count, len(some))
				if err := a.putRun(thread, local, some[:now]); err != nil {
					return err
				}
				local, count = local+now, count-now
			}
			return nil
		})
	})
}

// Memcpy copies n elements of one array to another, or between places of one array that do not overlap.
func Memcpy[T any](to *Array[T], i int, from *Array[T], j, n int) error {
	if err := failure(from.check("copying from", j, n), to.check("copying into", i, n)); err != nil {
		return err
	}
	some := make([]T, min(max(n, 0), 4096))
	for done := 0; done < n; {
		now := some[:min(len(some), n-done)]
		if err := from.Memget(now, j+done); err != nil {
			return err
		}
		if err := to.Memput(i+done, now); err != nil {
			return err
		}
		done += len(now)
	}
	return nil
}

// ---- upc_forall ---------------------------------------------------------------------------------

// ForAll are those elements from begin to before end with affinity to the calling thread: upc_forall (i =
// begin; i < end; i++; &a[i]). Each is found from the one before it; those of others cost nothing.
func (a *Array[T]) ForAll(begin, end int) iter.Seq[int] {
	begin, end = max(begin, 0), min(end, a.layout.Elements)
	return func(yield func(int) bool) {
		l, me := a.layout, a.w.thread
		if l.Block == Indefinite {
			if me != a.first {
				return
			}
			for i := begin; i < end; i++ {
				if !yield(i) {
					return
				}
			}
			return
		}
		round := l.Block * l.Threads
		for block := begin/round*round + me*l.Block; block < end; block += round {
			for i := max(block, begin); i < min(block+l.Block, end); i++ {
				if !yield(i) {
					return
				}
			}
		}
	}
}

// ForAll are the numbers from begin to before end that leave the calling thread's number when divided
// by the number of threads: upc_forall (i = begin; i < end; i++; i).
func (w *World) ForAll(begin, end int) iter.Seq[int] {
	return func(yield func(int) bool) {
		apart := (w.thread - begin) % w.threads
		if apart < 0 {
			apart += w.threads
		}
		for i := begin + apart; i < end; i += w.threads {
			if !yield(i) {
				return
			}
		}
	}
}
