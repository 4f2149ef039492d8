package shared

import (
	"iter"
	"reflect"
	"unsafe"

	"github.com/pkg/errors"

	"evenkeel/mpi"
	"evenkeel/pgas/gsm"
	"evenkeel/pgas/shared/affinity"
)

// Array is a shared array of elements of a type without Go pointers. Like its World it belongs to one
// goroutine of each thread. Get, Put and the bulk operations are relaxed; GetStrict and PutStrict are
// strict: in the order of the program for all threads, and fences for the relaxed ones around them.
type Array[T any] struct {
	w      *World
	layout Layout
	first  int // the thread of an array with one block
	place  uint64
	local  []T // this thread's elements
	freed  bool
}

// Ref is an array in a form that other threads make an Array of (OpenArray), and that can be kept in
// shared memory.
type Ref struct {
	Place, Block, Elements, Thread int64
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
	return &Array[T]{w: w, layout: l}, errors.WithMessagef(err, "thread %d: %s", w.thread, what)
}

// at gives the array its memory.
func (a *Array[T]) at(place uint64) *Array[T] {
	a.place = place
	elements := a.layout.LocalElements(a.w.thread)
	if a.layout.Block == Indefinite {
		elements = 0
		if a.w.thread == a.first {
			elements = a.layout.Elements
		}
	}
	if elements > 0 {
		a.local = unsafe.Slice((*T)(unsafe.Pointer(&a.w.local[place])), elements)
	}
	return a
}

// spreadBytes is what every thread gives: as much as the first, which has most.
func (a *Array[T]) spreadBytes() uint64 { return uint64(a.layout.LocalElements(0) * a.layout.Size) }

// AllAlloc is upc_all_alloc: an array of so many elements in blocks of so many, that all threads get.
// Blocks of 0 elements are one block, on thread 0. Its memory holds whatever was there before.
// Collective.
func AllAlloc[T any](w *World, block, elements int) (*Array[T], error) {
	const what = "allocating a shared array"
	a, err := planned[T](w, what, block, elements)
	if err := w.agree(what, err); err != nil {
		return nil, err
	}
	if err := w.same(what, uint64(block), uint64(elements), uint64(a.layout.Size)); err != nil {
		return nil, err
	}
	place := []uint64{0}
	if w.thread == 0 {
		place[0], err = w.allocateSpread(a.spreadBytes())
		err = errors.WithMessagef(err, "thread %d: %s of %d elements of %d bytes", w.thread, what, elements, a.layout.Size)
	}
	if err := w.agree(what, err); err != nil {
		return nil, err
	}
	if err := mpi.Bcast(w.comm, place, 0); err != nil {
		return nil, err
	}
	return a.at(place[0]), nil
}

// GlobalAlloc is upc_global_alloc: the same, called by one thread, which gets an array of its own and
// hands it on with Ref.
func GlobalAlloc[T any](w *World, block, elements int) (*Array[T], error) {
	const what = "allocating a global shared array"
	a, err := planned[T](w, what, block, elements)
	if err != nil {
		return nil, err
	}
	place, err := w.allocateSpread(a.spreadBytes())
	if err != nil {
		return nil, errors.WithMessagef(err, "thread %d: %s of %d elements of %d bytes", w.thread, what, elements, a.layout.Size)
	}
	return a.at(place), nil
}

// Alloc is upc_alloc: an array all of which has affinity to the calling thread. Others reach it by its
// Ref.
func Alloc[T any](w *World, elements int) (*Array[T], error) {
	const what = "allocating a shared array of one thread"
	a, err := planned[T](w, what, Indefinite, elements)
	if err != nil {
		return nil, err
	}
	a.first = w.thread
	place, err := w.allocateOwn(w.thread, uint64(elements*a.layout.Size))
	if err != nil {
		return nil, errors.WithMessagef(err, "thread %d: %s, of %d elements of %d bytes", w.thread, what, elements, a.layout.Size)
	}
	return a.at(place), nil
}

// Ref is the array in a form that can be handed on.
func (a *Array[T]) Ref() Ref {
	return Ref{int64(a.place), int64(a.layout.Block), int64(a.layout.Elements), int64(a.first)}
}

// OpenArray is the array that another thread allocated, with the same element type.
func OpenArray[T any](w *World, r Ref) (*Array[T], error) {
	const what = "opening a shared array"
	a, err := planned[T](w, what, int(r.Block), int(r.Elements))
	if err != nil {
		return nil, err
	}
	if r.Thread < 0 || r.Thread >= int64(w.threads) || r.Thread > 0 && r.Block != Indefinite {
		return nil, errors.Errorf("thread %d: %s: %+v is no array", w.thread, what, r)
	}
	if err := w.allocated(what, int(r.Thread), uint64(r.Place)); err != nil {
		return nil, err
	}
	bytes := a.spreadBytes()
	if uint64(r.Place)+bytes > 2*w.half || uint64(r.Place) < w.half && uint64(r.Place)+bytes > w.half {
		return nil, errors.Errorf("thread %d: %s: %+v does not fit the shared heap", w.thread, what, r)
	}
	a.first = int(r.Thread)
	return a.at(uint64(r.Place)), nil
}

// Free is upc_free: one thread frees the array for all, whichever thread allocated it. Nobody may use it
// any more; on the calling thread that gives an error.
func (a *Array[T]) Free() error {
	if err := a.alive("freeing"); err != nil {
		return err
	}
	if err := a.w.release(a.first, a.place); err != nil {
		return a.failed("freeing", err.Error())
	}
	a.freed, a.local = true, nil
	return nil
}

// AllFree is upc_all_free: the same, called by all threads; the array is freed when all have come.
// Collective.
func (a *Array[T]) AllFree() error {
	if err := a.w.same("freeing a shared array", a.place, uint64(a.first)); err != nil {
		return err
	}
	err := a.alive("freeing")
	if err == nil && a.w.thread == 0 {
		if err = a.w.release(a.first, a.place); err != nil {
			err = a.failed("freeing", err.Error())
		}
	}
	if err := a.w.agree("freeing a shared array", err); err != nil {
		return err
	}
	a.freed, a.local = true, nil
	return nil
}

func (a *Array[T]) failed(what, why string) error {
	return errors.Errorf("thread %d: %s the shared array of %d elements at offset %d: %s", a.w.thread, what, a.layout.Elements, a.place, why)
}

func (a *Array[T]) alive(what string) error {
	if a.freed {
		return a.failed(what, "it was freed before")
	}
	if a.w.ended {
		return a.failed(what, "the world has ended")
	}
	return nil
}

// Layout says which thread each element has affinity to. That of an array of one thread names thread 0;
// ThreadOf knows better.
func (a *Array[T]) Layout() Layout { return a.layout }

// Len is the number of elements.
func (a *Array[T]) Len() int { return a.layout.Elements }

// ThreadOf is upc_threadof of element i.
func (a *Array[T]) ThreadOf(i int) int { return a.first + a.layout.ThreadOf(i) }

// Local is the calling thread's elements, one after the other, without copying: element i of the array
// is at Layout().LocalOf(i). It must not be used after the array is freed.
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

func (a *Array[T]) check(what string, i, n int) error {
	if err := a.alive(what); err != nil {
		return err
	}
	if i < 0 || n < 0 || i > a.layout.Elements-n {
		return a.failed(what, errors.Errorf("elements %d to %d are not in it", i, i+n).Error())
	}
	return nil
}

// address is where a local element of a thread is.
func (a *Array[T]) address(thread, local int) gsm.Address {
	return a.w.address(thread, a.place+uint64(local*a.layout.Size))
}

// Get reads element i.
func (a *Array[T]) Get(i int) (v T, err error) {
	if uint(i) >= uint(a.layout.Elements) || a.freed || a.w.ended {
		return v, a.check("reading", i, 1)
	}
	thread, local := a.layout.Locate(i)
	if thread += a.first; thread == a.w.thread {
		return a.local[local], nil
	}
	return v, a.load(thread, local, &v)
}

// load reads a word at once where the element is one.
func (a *Array[T]) load(thread, local int, v *T) (err error) {
	if thread == a.w.thread {
		*v = a.local[local]
		return nil
	}
	at := a.address(thread, local)
	switch unsafe.Sizeof(*v) {
	case 8:
		*(*uint64)(unsafe.Pointer(v)), err = a.w.memory.Get64(at)
	case 4:
		*(*uint32)(unsafe.Pointer(v)), err = a.w.memory.Get32(at)
	default:
		err = a.w.memory.Get(at, bytes(unsafe.Slice(v, 1)))
	}
	return err
}

// Put writes element i.
func (a *Array[T]) Put(i int, v T) error {
	if uint(i) >= uint(a.layout.Elements) || a.freed || a.w.ended {
		return a.check("writing", i, 1)
	}
	thread, local := a.layout.Locate(i)
	if thread += a.first; thread == a.w.thread {
		a.local[local] = v
		return nil
	}
	return a.store(thread, local, &v)
}

func (a *Array[T]) store(thread, local int, v *T) error {
	if thread == a.w.thread {
		a.local[local] = *v
		return nil
	}
	at := a.address(thread, local)
	switch unsafe.Sizeof(*v) {
	case 8:
		return a.w.memory.Put64(at, *(*uint64)(unsafe.Pointer(v)))
	case 4:
		return a.w.memory.Put32(at, *(*uint32)(unsafe.Pointer(v)))
	}
	return a.w.memory.Put(at, bytes(unsafe.Slice(v, 1)))
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
	local = p.Address / a.layout.Size
	thread = p.Thread
	has := a.layout.LocalElements(thread)
	if a.layout.Block == Indefinite && thread == a.first {
		has = a.layout.Elements
	} else if a.layout.Block == Indefinite {
		has = 0
	}
	if p.Address < 0 || p.Address%a.layout.Size != 0 || local >= has {
		return 0, 0, a.failed("following a pointer into", errors.Errorf("%+v points at none of its elements", p).Error())
	}
	return thread, local, nil
}

// Load reads what p points at.
func (a *Array[T]) Load(p Pointer) (v T, err error) {
	if err := a.alive("reading"); err != nil {
		return v, err
	}
	thread, local, err := a.At(p)
	if err != nil {
		return v, err
	}
	return v, a.load(thread, local, &v)
}

// Store writes what p points at.
func (a *Array[T]) Store(p Pointer, v T) error {
	if err := a.alive("writing"); err != nil {
		return err
	}
	thread, local, err := a.At(p)
	if err != nil {
		return err
	}
	return a.store(thread, local, &v)
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
	if err := a.check("reading", i, len(into)); err != nil {
		return err
	}
	return a.runs(i, len(into), func(thread, local, done, count int) error {
		return a.getRun(thread, local, into[done:done+count])
	})
}

// Memput writes elements from i on.
func (a *Array[T]) Memput(i int, from []T) error {
	if err := a.check("writing", i, len(from)); err != nil {
		return err
	}
	return a.runs(i, len(from), func(thread, local, done, count int) error {
		return a.putRun(thread, local, from[done:done+count])
	})
}

// Memset writes n elements from i on.
func (a *Array[T]) Memset(i, n int, v T) error {
	if err := a.check("writing", i, n); err != nil {
		return err
	}
	some := make([]T, min(n, 512))
	for k := range some {
		some[k] = v
	}
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
}

// Memcpy copies n elements of one array to another, or between places of one array that do not overlap.
func Memcpy[T any](to *Array[T], i int, from *Array[T], j, n int) error {
	if err := from.check("reading", j, n); err != nil {
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
