package shared

import (
	"cmp"
	"fmt"

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

// The threads' parts, of which UPC's collectives are made, are the elements of an array with affinity to
// each, in the order of Local. All of the following are collective; every thread must give the same
// arguments. What reads does so from the others' parts while these do the same, so that no thread
// does the work of another.

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
	if err := w.usable(what); err != nil {
		return err
	}
	if check != nil {
		check = errors.WithMessagef(check, "thread %d: %s", w.thread, what)
	}
	if s.In == NoSync && s.Out == NoSync {
		return first(check, do)
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
	err := first(check, do)
	if s.Out == NoSync {
		return err
	}
	if err := w.agree(what, Ref(arguments[0].value), err); err != nil {
		return err
	}
	return w.Fence()
}

func first(check error, do func() error) error {
	if check != nil {
		return check
	}
	return do()
}

// has says with an error that a part of an array is shorter than n.
func (a *Array[T]) has(what string, thread, n int) error {
	if err := a.renew("using"); err != nil {
		return err
	}
	if got := a.part(thread); n < 0 || got < n {
		return a.failed("using", errors.Errorf("%s takes %d elements of thread %d, which has %d", what, n, thread, got).Error())
	}
	return nil
}

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

func all(n int, others ...argument) []argument { return append(others, number("n", n)) }

// Broadcast is upc_all_broadcast: the first n elements of src's thread root become the first n of each
// thread's part of dst.
func Broadcast[T any](dst, src *Array[T], root, n int, s Syncs) error {
	w := dst.w
	check := failure(dst.isThread(root), src.has("a broadcast", root, n), dst.has("a broadcast", w.thread, n))
	return w.move(broadcastCall, "broadcast into", s, all(n, dst.as("dst"), src.as("src"), number("root", root)), check, func() error {
		return src.getRun(root, 0, dst.local[:n])
	})
}

// Scatter is upc_all_scatter: of the first n * THREADS elements of src's thread root each thread
// gets n, in the order of threads.
func Scatter[T any](dst, src *Array[T], root, n int, s Syncs) error {
	w := dst.w
	check := failure(dst.isThread(root), src.has("a scatter", root, n*w.threads), dst.has("a scatter", w.thread, n))
	return w.move(scatterCall, "scatter into", s, all(n, dst.as("dst"), src.as("src"), number("root", root)), check, func() error {
		return src.getRun(root, w.thread*n, dst.local[:n])
	})
}

// Gather is upc_all_gather: the first n elements of each thread's part of src become those of dst's thread
// root, in the order of threads.
func Gather[T any](dst, src *Array[T], root, n int, s Syncs) error {
	w := dst.w
	check := failure(dst.isThread(root), src.has("a gather", w.thread, n), dst.has("a gather", root, n*w.threads))
	return w.move(gatherCall, "gather into", s, all(n, dst.as("dst"), src.as("src"), number("root", root)), check, func() error {
		return dst.putRun(root, w.thread*n, src.local[:n])
	})
}

// GatherAll is upc_all_gather_all: every thread gets what Gather gives one.
func GatherAll[T any](dst, src *Array[T], n int, s Syncs) error {
	w := dst.w
	check := failure(src.has("a gather", w.thread, n), dst.has("a gather", w.thread, n*w.threads))
	return w.move(gatherAllCall, "gather all into", s, all(n, dst.as("dst"), src.as("src")), check, func() error {
		return w.others(func(t int) error { return src.getRun(t, 0, dst.local[t*n:(t+1)*n]) })
	})
}

// Exchange is upc_all_exchange: of n * THREADS elements in each thread's part of src, the i-th n go to
// thread i, where they are those of the thread they come from.
func Exchange[T any](dst, src *Array[T], n int, s Syncs) error {
	w := dst.w
	check := failure(src.has("an exchange", w.thread, n*w.threads), dst.has("an exchange", w.thread, n*w.threads))
	return w.move(exchangeCall, "exchange into", s, all(n, dst.as("dst"), src.as("src")), check, func() error {
		return w.others(func(t int) error { return src.getRun(t, w.thread*n, dst.local[t*n:(t+1)*n]) })
	})
}

// Permute is upc_all_permute: the first n elements of thread i's part of src go to thread perm[i]'s part of
// dst. perm has the number of each thread once, one for each thread.
func Permute[T any](dst, src *Array[T], perm *Array[int32], n int, s Syncs) error {
	w := dst.w
	check := failure(src.has("a permutation", w.thread, n), dst.has("a permutation", w.thread, n),
		perm.check("reading", 0, w.threads))
	return w.move(permuteCall, "permute into", s, all(n, dst.as("dst"), src.as("src"), perm.as("perm")), check, func() error {
		to, err := perm.Get(w.thread)
		if err != nil {
			return err
		}
		if err := perm.isThread(int(to)); err != nil {
			return err
		}
		return dst.putRun(int(to), 0, src.local[:n])
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

func (a *Array[T]) isThread(t int) error {
	if t < 0 || t >= a.w.threads {
		return a.failed("using", fmt.Sprintf("there is no thread %d, of %d", t, a.w.threads))
	}
	return nil
}

// ---- reductions ---------------------------------------------------------------------------------

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

// Reduce is upc_all_reduce: element `at` of dst becomes op over all elements of src; of none, it stays as it is. op
// is associative and commutative.
func Reduce[T any](dst *Array[T], at int, src *Array[T], op func(a, b T) T, s Syncs) error {
	return reduce(reduceCall, "reduction into", dst, at, src, op, s, src.w.Threads, func(totals *Array[total[T]]) error {
		totals.local[0] = fold(src.local, op)
		return nil
	})
}

// ReduceNoncomm is upc_all_reduce with UPC_NONCOMM_FUNC: the same in the elements' order, for an op that is associative
// alone. Where Reduce takes one value of each thread, it takes one of each block.
func ReduceNoncomm[T any](dst *Array[T], at int, src *Array[T], op func(a, b T) T, s Syncs) error {
	return reduce(reduceNoncommCall, "reduction in order into", dst, at, src, op, s, src.blocks, func(totals *Array[total[T]]) error {
		return src.eachBlock(func(number int, values []T) error { return totals.Put(number, fold(values, op)) })
	})
}

// reduce has the threads fill in so many totals, and writes what these come to in their order.
func reduce[T any](by own.Function, what string, dst *Array[T], at int, src *Array[T], op func(a, b T) T, s Syncs, count func() int, fill func(*Array[total[T]]) error) error {
	w := dst.w
	defer by.Begin(w.comm, own.Nobody).End()
	check := failure(src.renew("using"), dst.check("writing", at, 1))
	all := make([]total[T], count())
	totals, err := AllAlloc[total[T]](w, 1, max(len(all), 1))
	if err != nil {
		return err
	}
	err = w.move(by, what, s, []argument{dst.as("dst"), src.as("src"), number("at", at)}, check, func() error { return fill(totals) })
	if err := w.agree(what, dst.handle, err); err != nil {
		return failure(err, totals.AllFree())
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

// PrefixReduce is upc_all_prefix_reduce: element i of dst becomes op over elements 0 to i of src, in
// that order. op is associative. The arrays have one layout. Each thread works on its own blocks; one value
// for each block is known to all in between.
func PrefixReduce[T any](dst, src *Array[T], op func(a, b T) T, s Syncs) error {
	w := dst.w
	defer prefixReduceCall.Begin(w.comm, own.Nobody).End()
	check := failure(src.renew("using"), dst.renew("using"))
	l := dst.layout
	if check == nil && (l != src.layout || dst.first != src.first) {
		check = errors.Errorf("the layouts differ: %+v and %+v", l, src.layout)
	}
	block := dst.block()
	all := make([]total[T], dst.blocks())
	totals, err := AllAlloc[total[T]](w, 1, max(len(all), 1))
	if err != nil {
		return err
	}
	const what = "prefix reduction into"
	err = w.move(prefixReduceCall, what, s, []argument{dst.as("dst"), src.as("src")}, check, func() error {
		return src.eachBlock(func(number int, values []T) error { return totals.Put(number, fold(values, op)) })
	})
	if err := w.agree(what, dst.handle, err); err != nil {
		return failure(err, totals.AllFree())
	}
	if err = totals.Memget(all, 0); err == nil {
		var before total[T]
		next := 0
		err = src.eachBlock(func(number int, values []T) error {
			for ; next < number; next++ {
				before = foldTotals([]total[T]{before, all[next]}, op)
			}
			into := dst.local[dst.layout.LocalOf(number*block):]
			t := before
			for i, v := range values {
				if t.Any {
					v = op(t.Value, v)
				}
				t = total[T]{v, true}
				into[i] = v
			}
			return nil
		})
	}
	return failure(w.agree(what, dst.handle, err), totals.AllFree())
}

// block is how many elements a block has.
func (a *Array[T]) block() int {
	if a.layout.Block == Indefinite {
		return max(a.layout.Elements, 1)
	}
	return a.layout.Block
}

func (a *Array[T]) blocks() int { return (a.layout.Elements + a.block() - 1) / a.block() }

// eachBlock calls f for the calling thread's blocks, in their order.
func (a *Array[T]) eachBlock(f func(number int, values []T) error) error {
	block := a.block()
	for local := 0; local < len(a.local); local += block {
		number := 0
		if a.layout.Block != Indefinite {
			number = a.layout.ElementOf(a.w.thread, local) / block
		}
		if err := f(number, a.local[local:min(local+block, len(a.local))]); err != nil {
			return err
		}
	}
	return nil
}
