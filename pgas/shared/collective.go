package shared

import (
	"cmp"
	"fmt"
	"math"

	"github.com/pkg/errors"

	"evenkeel/mpi/own"
)

// Sync says what a collective waits for: UPC's UPC_IN_xSYNC and UPC_OUT_xSYNC.
type Sync uint8

const (
	// AllSync: for all threads to have come, before any data moves; and to be done, before any returns.
	AllSync Sync = iota
	// MySync: for what the calling thread's own data needs. Here it is as much as AllSync.
	MySync
	// NoSync: for nothing; the program sees to it that data is ready, and not used before it is there.
	NoSync
)

// Syncs are how a collective begins and ends; the zero value waits for all at both.
type Syncs struct{ In, Out Sync }

// UPC's pointers to shared are an array and the number of an element here: of dst element i, of src element j. Data are runs
// of elements in the threads' parts, which are the elements with affinity to each in the order of Local: where UPC has a
// pointer to one thread, in that element's thread, from that element on; where it has one to all (which is to thread 0
// then), from the local place of that element on in each part.
//
// All of the following are collective; every thread must give the same arguments. What reads does so from the others'
// parts while these do the same, so that no thread does the work of another.

// What the collectives are recorded as.
var (
	broadcastCall     = own.Named("shared.Broadcast")
	scatterCall       = own.Named("shared.Scatter")
	gatherCall        = own.Named("shared.Gather")
	gatherAllCall     = own.Named("shared.GatherAll")
	exchangeCall      = own.Named("shared.Exchange")
	permuteCall       = own.Named("shared.Permute")
	reduceCall        = own.Named("shared.Reduce")
	reduceNoncommCall = own.Named("shared.ReduceNoncomm")
	prefixReduceCall  = own.Named("shared.PrefixReduce")
)

// move does what a collective does between its beginning and its end. The first of its arguments is the array that it fills.
func (w *World) move(by own.Function, what string, s Syncs, arguments []argument, check error, do func() error) error {
	about := Ref(arguments[0].value)
	if w.ended || w.barrier.notified {
		return w.usable(fmt.Sprint(what, " ", about))
	}
	if s.In == NoSync && s.Out == NoSync {
		return w.about(what, about, first(check, do))
	}
	defer by.Begin(w.comm, own.Nobody).End()
	// That all have come with equal arguments is known from one reduction.
	if err := w.Fence(); err != nil {
		return err
	}
	if s.In != NoSync {
		if err := w.same(what, arguments...); err != nil {
			return err
		}
	}
	err := w.about(what, about, first(check, do))
	if s.Out == NoSync {
		return err
	}
	if err := w.agree(what, about, err); err != nil {
		return err
	}
	return w.Fence()
}

// together says that all threads have come with equal arguments, none of which is refused anywhere: before they allocate
// together what they work with.
func (w *World) together(what string, arguments []argument, check error) error {
	about := Ref(arguments[0].value)
	if err := w.usable(fmt.Sprint(what, " ", about)); err != nil {
		return err
	}
	if err := w.Fence(); err != nil {
		return err
	}
	if err := w.same(what, arguments...); err != nil {
		return err
	}
	return w.agree(what, about, w.about(what, about, check))
}

// about is an error as the thread's, of what it did with an array.
func (w *World) about(what string, r Ref, err error) error {
	if err == nil {
		return nil
	}
	return errors.WithMessagef(err, "thread %d: %s %s", w.thread, what, r)
}

func first(check error, do func() error) error {
	if check != nil {
		return check
	}
	return do()
}

// run is where elements of a collective are: in one thread's part, or from this place on in all.
type run[T any] struct {
	a             *Array[T]
	name          string // the array's, among the arguments
	thread, place int
}

// from finds the run that begins with element i; in an array without elements, where the first would be.
func (a *Array[T]) from(name string, i int) (run[T], error) {
	if err := a.has(i, min(a.layout.Elements, 1)); err != nil {
		return run[T]{a: a}, a.of(name, err)
	}
	return run[T]{a, name, a.ThreadOf(i), a.layout.LocalOf(i)}, nil
}

// has says with an error that a thread's part is shorter than n from there on.
func (r run[T]) has(thread, n int) error {
	if thread < 0 || thread >= r.a.w.threads {
		return r.a.of(r.name, errors.Errorf("there is no thread %d: stay within 0 to %d", thread, r.a.w.threads-1))
	}
	if got := r.a.part(thread); n < 0 || got-r.place < n {
		return r.a.of(r.name, errors.Errorf("it takes %d elements of thread %d from place %d of its part on, which has %d: take %d at most",
			n, thread, r.place, got, max(got-r.place, 0)))
	}
	return nil
}

// own are n elements of the calling thread from there on, behind so many.
func (r run[T]) own(behind, n int) []T { return r.a.local[r.place+behind:][:n] }

// part is how many elements a thread has.
func (a *Array[T]) part(thread int) int {
	if a.layout.Block == Indefinite {
		if thread == a.first {
			return a.layout.Elements
		}
		return 0
	}
	return a.layout.LocalElements(thread)
}

func failure(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *Array[T]) as(name string) argument { return object(name, a.handle) }

// of is an error that is about this one of a collective's arrays.
func (a *Array[T]) of(name string, err error) error {
	if err == nil {
		return nil
	}
	return errors.WithMessagef(err, "%s, %s", name, a.handle)
}

// fits finds both runs, of which a thread must have so many elements: of each part, or of that where the run begins.
func fits[T any](dst *Array[T], i int, src *Array[T], j int, to, from need) (run[T], run[T], error) {
	w := dst.w
	send, wrong := src.from("src", j)
	receive, wrongToo := dst.from("dst", i)
	err := failure(wrong, wrongToo)
	if err == nil {
		err = failure(send.has(from.thread(w, send.thread), from.n), receive.has(to.thread(w, receive.thread), to.n))
	}
	return receive, send, err
}

// need is how many elements a run must have: in each part, or where it begins.
type need struct {
	n   int
	one bool
}

func (n need) thread(w *World, one int) int {
	if n.one {
		return one
	}
	return w.thread
}

// ofAll is n for each thread; what can't be said is more than any part has.
func (w *World) ofAll(n int) int {
	if n > math.MaxInt/w.threads {
		return math.MaxInt
	}
	return n * w.threads
}

func arguments[T any](dst *Array[T], i int, src *Array[T], j, n int) []argument {
	return []argument{dst.as("dst"), src.as("src"), number("the element of dst", i), number("the element of src", j), number("n", n)}
}

// Broadcast is upc_all_broadcast: n elements from element j of src on, all of that thread, become n of each part of dst.
func Broadcast[T any](dst *Array[T], i int, src *Array[T], j, n int, s Syncs) error {
	to, from, check := fits(dst, i, src, j, need{n: n}, need{n, true})
	return dst.w.move(broadcastCall, "broadcast into", s, arguments(dst, i, src, j, n), check, func() error {
		return src.getRun(from.thread, from.place, to.own(0, n))
	})
}

// Scatter is upc_all_scatter: of n * THREADS such elements each thread gets n, in the order of threads.
func Scatter[T any](dst *Array[T], i int, src *Array[T], j, n int, s Syncs) error {
	w := dst.w
	to, from, check := fits(dst, i, src, j, need{n: n}, need{w.ofAll(n), true})
	return w.move(scatterCall, "scatter into", s, arguments(dst, i, src, j, n), check, func() error {
		return src.getRun(from.thread, from.place+w.thread*n, to.own(0, n))
	})
}

// Gather is upc_all_gather: n elements of each part of src become those of one thread from element i of dst on, in the order
// of threads.
func Gather[T any](dst *Array[T], i int, src *Array[T], j, n int, s Syncs) error {
	w := dst.w
	to, from, check := fits(dst, i, src, j, need{w.ofAll(n), true}, need{n: n})
	return w.move(gatherCall, "gather into", s, arguments(dst, i, src, j, n), check, func() error {
		return dst.putRun(to.thread, to.place+w.thread*n, from.own(0, n))
	})
}

// GatherAll is upc_all_gather_all: every thread gets what Gather gives one.
func GatherAll[T any](dst *Array[T], i int, src *Array[T], j, n int, s Syncs) error {
	w := dst.w
	to, from, check := fits(dst, i, src, j, need{n: w.ofAll(n)}, need{n: n})
	return w.move(gatherAllCall, "gather all into", s, arguments(dst, i, src, j, n), check, func() error {
		return w.others(func(t int) error { return src.getRun(t, from.place, to.own(t*n, n)) })
	})
}

// Exchange is upc_all_exchange: of n * THREADS elements in each part of src, the t-th n go to thread t, where they are those
// of the thread they come from.
func Exchange[T any](dst *Array[T], i int, src *Array[T], j, n int, s Syncs) error {
	w := dst.w
	to, from, check := fits(dst, i, src, j, need{n: w.ofAll(n)}, need{n: w.ofAll(n)})
	return w.move(exchangeCall, "exchange into", s, arguments(dst, i, src, j, n), check, func() error {
		return w.others(func(t int) error { return src.getRun(t, from.place+w.thread*n, to.own(t*n, n)) })
	})
}

// Permute is upc_all_permute: n elements of thread t's part of src go to thread perm[t]'s part of dst. perm has the number
// of each thread once, one for each thread.
func Permute[T any](dst *Array[T], i int, src *Array[T], j int, perm *Array[int32], n int, s Syncs) error {
	w := dst.w
	to, from, check := fits(dst, i, src, j, need{n: n}, need{n: n})
	if check == nil {
		check = perm.of("perm", perm.has(0, w.threads))
	}
	return w.move(permuteCall, "permute into", s, append(arguments(dst, i, src, j, n), perm.as("perm")), check, func() error {
		receiver, err := perm.Get(w.thread)
		if err != nil {
			return err
		}
		if err := to.has(int(receiver), n); err != nil {
			return err
		}
		return dst.putRun(int(receiver), to.place, from.own(0, n))
	})
}

// others calls f for all threads, beginning behind the calling one, so that not all read of one thread at
// once.
func (w *World) others(f func(thread int) error) error {
	for i := range w.threads {
		if err := f((w.thread + 1 + i) % w.threads); err != nil {
			return err
		}
	}
	return nil
}

// ---- reductions ---------------------------------------------------------------------------------

// Reductions wait for all at both ends, whatever their Syncs: the threads come together for the memory in which what each
// has is added up.

// Number is what the ready-made operations of reductions take.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// Add is UPC_ADD.
func Add[T Number](a, b T) T { return a + b }

// Mult is UPC_MULT.
func Mult[T Number](a, b T) T { return a * b }

// Integer is what operations on bits take.
type Integer interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

// And is UPC_AND, of bits.
func And[T Integer](a, b T) T { return a & b }

// Or is UPC_OR, of bits.
func Or[T Integer](a, b T) T { return a | b }

// Xor is UPC_XOR, of bits.
func Xor[T Integer](a, b T) T { return a ^ b }

// LogAnd is UPC_LOGAND: 1 if both are not 0, else 0.
func LogAnd[T Number](a, b T) T { return truth[T](a != 0 && b != 0) }

// LogOr is UPC_LOGOR: 1 if one is not 0, else 0.
func LogOr[T Number](a, b T) T { return truth[T](a != 0 || b != 0) }

func truth[T Number](is bool) T {
	if is {
		return 1
	}
	return 0
}

// Min is UPC_MIN.
func Min[T cmp.Ordered](a, b T) T { return min(a, b) }

// Max is UPC_MAX.
func Max[T cmp.Ordered](a, b T) T { return max(a, b) }

// total is what a thread has of a block: whether there is anything, and what it comes to.
type total[T any] struct {
	Value T
	Any   bool
}

// Reduce is upc_all_reduce: element `at` of dst becomes op over n elements of src from element i on, whichever threads they
// are with; of none, it stays as it is. op is associative and commutative.
func Reduce[T any](dst *Array[T], at int, src *Array[T], i, n int, op func(a, b T) T, _ Syncs) error {
	return reduce(reduceCall, "reduction into", dst, at, src, i, n, op, func(r stretch) int { return src.w.threads }, func(r stretch, totals *Array[total[T]]) error {
		totals.local[0] = fold(src.local[r.begin:r.end], op)
		return nil
	})
}

// ReduceNoncomm is upc_all_reduce with UPC_NONCOMM_FUNC: the same in the elements' order, for an op that is associative
// alone. Where Reduce takes one value of each thread, it takes one of each block.
func ReduceNoncomm[T any](dst *Array[T], at int, src *Array[T], i, n int, op func(a, b T) T, _ Syncs) error {
	return reduce(reduceNoncommCall, "reduction in order into", dst, at, src, i, n, op, stretch.blocks, func(r stretch, totals *Array[total[T]]) error {
		return foldBlocks(src, r, totals, op)
	})
}

// foldBlocks fills in the totals of the calling thread's blocks.
func foldBlocks[T any](src *Array[T], r stretch, totals *Array[total[T]], op func(a, b T) T) error {
	return r.eachBlock(func(number, begin, end int) error { return totals.Put(number, fold(src.local[begin:end], op)) })
}

// reduce has the threads fill in so many totals, and writes what these come to in their order.
func reduce[T any](by own.Function, what string, dst *Array[T], at int, src *Array[T], i, n int, op func(a, b T) T, count func(stretch) int, fill func(stretch, *Array[total[T]]) error) error {
	w := dst.w
	defer by.Begin(w.comm, own.Nobody).End()
	check := failure(src.of("src", src.has(i, n)), dst.of("dst", dst.has(at, 1)))
	if err := w.together(what, arguments(dst, at, src, i, n), check); err != nil {
		return err
	}
	r := src.stretch(i, n)
	all := make([]total[T], count(r))
	totals, err := filled(what, dst, len(all), func(totals *Array[total[T]]) error { return fill(r, totals) })
	if err != nil {
		return err
	}
	if w.thread == dst.ThreadOf(at) {
		if err = totals.Memget(all, 0); err == nil {
			if t := foldTotals(all, op); t.Any {
				err = dst.Put(at, t.Value)
			}
		}
	}
	return failure(w.agree(what, dst.handle, err), totals.AllFree())
}

// filled allocates so many totals together, and returns them when all threads have filled theirs in.
func filled[T any](what string, dst *Array[T], count int, fill func(*Array[total[T]]) error) (*Array[total[T]], error) {
	w := dst.w
	totals, err := AllAlloc[total[T]](w, 1, max(count, 1))
	if err != nil {
		return nil, w.about(what, dst.handle, err)
	}
	err = failure(w.about(what, dst.handle, fill(totals)), w.Fence())
	if err := w.agree(what, dst.handle, err); err != nil {
		return nil, failure(err, totals.AllFree())
	}
	return totals, nil
}

func fold[T any](values []T, op func(a, b T) T) (t total[T]) {
	for i, v := range values {
		if i == 0 {
			t = total[T]{v, true}
		} else {
			t.Value = op(t.Value, v)
		}
	}
	return t
}

func foldTotals[T any](all []total[T], op func(a, b T) T) (t total[T]) {
	for _, o := range all {
		switch {
		case !o.Any:
		case !t.Any:
			t = o
		default:
			t.Value = op(t.Value, o.Value)
		}
	}
	return t
}

// PrefixReduce is upc_all_prefix_reduce: element i + k of dst becomes op over elements j to j + k of src, for k below n, in
// that order. op is associative. The arrays have blocks of one size, and elements i and j are of one thread and have one
// phase. Each thread works on its own blocks; one value for each block is known to all in between.
func PrefixReduce[T any](dst *Array[T], i int, src *Array[T], j, n int, op func(a, b T) T, _ Syncs) error {
	w := dst.w
	const what = "prefix reduction into"
	defer prefixReduceCall.Begin(w.comm, own.Nobody).End()
	check := failure(src.of("src", src.has(j, n)), dst.of("dst", dst.has(i, n)))
	if check == nil {
		check = dst.likewise(i, src, j, n)
	}
	if err := w.together(what, arguments(dst, i, src, j, n), check); err != nil {
		return err
	}
	r := src.stretch(j, n)
	all := make([]total[T], r.blocks())
	totals, err := filled(what, dst, len(all), func(totals *Array[total[T]]) error { return foldBlocks(src, r, totals, op) })
	if err != nil {
		return err
	}
	if err = totals.Memget(all, 0); err == nil {
		var before total[T]
		next, apart := 0, dst.layout.LocalOf(i)-src.layout.LocalOf(j)
		err = r.eachBlock(func(number, begin, end int) error {
			for ; next < number; next++ {
				before = foldTotals([]total[T]{before, all[next]}, op)
			}
			t := before
			for at, v := range src.local[begin:end] {
				if t.Any {
					v = op(t.Value, v)
				}
				t = total[T]{v, true}
				dst.local[begin+apart+at] = v
			}
			return nil
		})
	}
	return failure(w.agree(what, dst.handle, err), totals.AllFree())
}

// likewise says with an error that n elements from i on are not with the same threads, in the same places of their blocks, as
// those of another array from j on.
func (a *Array[T]) likewise(i int, src *Array[T], j, n int) error {
	l, from := a.layout, src.layout
	if l.Block != from.Block || a.first != src.first {
		return errors.Errorf("the layouts differ: blocks of %d and %d elements, from threads %d and %d on", l.Block, from.Block, a.first, src.first)
	}
	if n > 0 && (l.PhaseOf(i) != from.PhaseOf(j) || l.ThreadOf(i) != from.ThreadOf(j)) {
		return errors.Errorf("element %d of dst and element %d of src differ in thread or phase", i, j)
	}
	return nil
}

// stretch is a number of elements, one after the other: which of them are the calling thread's.
type stretch struct {
	layout      Layout
	mine        int // the calling thread, as the layout counts
	block       int // elements of one
	first, last int // blocks: from the first to before the last
	begin, end  int // the calling thread's elements, by their local places
}

// stretch are n elements from i on.
func (a *Array[T]) stretch(i, n int) stretch {
	r := stretch{layout: a.layout, mine: a.mine, block: a.layout.Block}
	if r.block == Indefinite {
		r.block = max(a.layout.Elements, 1)
	}
	if n == 0 {
		return r
	}
	before := func(i int) int { // how many of the calling thread's
		l := a.layout
		l.Elements = i
		return l.LocalElements(a.mine)
	}
	r.first, r.last = i/r.block, (i+n-1)/r.block+1
	r.begin, r.end = before(i), before(i+n)
	return r
}

func (r stretch) blocks() int { return r.last - r.first }

// eachBlock calls f for the calling thread's blocks, in their order, with the number of each among those of the stretch
// and the local places of what belongs to it.
func (r stretch) eachBlock(f func(number, begin, end int) error) error {
	for begin, end := r.begin, 0; begin < r.end; begin = end {
		end = min((begin/r.block+1)*r.block, r.end)
		if err := f(r.layout.ElementOf(r.mine, begin)/r.block-r.first, begin, end); err != nil {
			return err
		}
	}
	return nil
}
