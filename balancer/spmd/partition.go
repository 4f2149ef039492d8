// Package spmd gives Go programs on MPI partitions that resize and jobs that are
// split: the same as evenkeel.h for C, by the same sources.
//
//	p, err := spmd.NewPartition(mpi.World, items, spmd.Options{})
//	particles, err := spmd.NewArray[Particle](p, 0)
//	for range cycles {
//		compute(particles.Own())
//		if _, err := p.Step(); err != nil { ... } // a barrier; moves what has to be moved
//	}
//
// Calls that say so are collective: all ranks of the communicator make them in the
// same order. What goes wrong on one rank is an error on all, with the same text,
// and then nothing has changed.
package spmd

/*
#cgo pkg-config: ompi-c
#cgo CFLAGS: -DEK_EXPORT= -fvisibility=hidden -Wall -Wno-unused-parameter -Wno-format-truncation
#cgo LDFLAGS: -ldl -lpthread
#include <stdlib.h>
#include "agree.h"
#include "evenkeel.h"

int ek_ground_prepare(const void *table);
uintptr_t ek_ground_tell(uintptr_t address);
*/
import "C"

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/pkg/errors"

	"evenkeel/balancer"
	"evenkeel/balancer/service"
	"evenkeel/mpi"
	"evenkeel/mpi/caller"
)

// tells is set if evenkeel was preloaded: it is told from which places of the program MPI is called.
var tells = C.ek_ground_prepare(service.Table()) != 0

// The causes of errors, for errors.Is.
var (
	ErrInactive  = errors.New("MPI is not running")
	ErrRefused   = errors.New("arguments that make no sense, or differ between ranks")
	ErrNoMemory  = errors.New("no memory on some rank; nothing has changed")
	ErrHook      = errors.New("a function of the program failed on some rank; nothing has changed")
	ErrNoHistory = errors.New("it is not known when the ranks came to the end of the cycle")
	ErrMPI       = errors.New("MPI returned an error")
)

var causes = map[C.int]error{
	C.EK_INACTIVE:    ErrInactive,
	C.EK_REFUSED:     ErrRefused,
	C.EK_NO_MEMORY:   ErrNoMemory,
	C.EK_HOOK_FAILED: ErrHook,
	C.EK_NO_HISTORY:  ErrNoHistory,
	C.EK_MPI_FAILED:  ErrMPI,
}

// call runs a C function, whose last error belongs to the thread. Its MPI calls count as made where the
// program called this package.
func call(f func() C.int) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if tells {
		defer C.ek_ground_tell(C.ek_ground_tell(C.uintptr_t(caller.Program(0))))
	}
	result := f()
	if result == C.EK_OK {
		return nil
	}
	return errors.Wrap(causes[result], C.GoString(C.ek_error_text()))
}

// refused is a C function that is collective, to be called although its arguments can't be handed on from this rank: it
// then fails on all ranks. If why is empty they can.
func refused(why string, f func() C.int) func() C.int {
	if why == "" {
		return f
	}
	return func() C.int {
		text := C.CString(why)
		defer C.free(unsafe.Pointer(text))
		C.ek_refuse_next(text)
		defer C.ek_refuse_next(nil)
		return f()
	}
}

// Measure is how it is known for how long a rank computed in a cycle.
type Measure int

const (
	// ByArrivals: by when the ranks came to the barriers of the cycle. Where
	// evenkeel's own barrier can't be had (it is that of libevenkeel.so, preloaded),
	// or ranks wait in halo exchanges, ByTime.
	ByArrivals = Measure(C.EK_MEASURE_AUTO)
	// ByTime: from the cycle's begin to its end without the waits in halo
	// exchanges; each rank tells the others, in Step.
	ByTime = Measure(C.EK_MEASURE_WALL)
	// ByWork: the same, but only in Partition.Work: for programs whose ranks wait
	// for each other inside a cycle.
	ByWork = Measure(C.EK_MEASURE_WORK)
)

// Options of a partition. The zero value suits most programs.
type Options struct {
	Policy  balancer.Policy
	Measure Measure
	// K is how many ranks the k-fastest policies give to; 0: all that are faster
	// than the mean.
	K int
	// Threshold and ThresholdSeconds: see balancer.Options; 0: its defaults.
	Threshold        float64
	ThresholdSeconds float64
	// MinItems and MaxItems of a rank, as its memory allows; 0: one, and all.
	MinItems, MaxItems int
	// Cycles is how many there will be; 0: not known.
	Cycles int
}

// policies are enum ek_policy, and whether it is weighted.
var policies = map[balancer.Policy][2]C.int{
	balancer.Auto:             {C.EK_POLICY_AUTO, 0},
	balancer.Pairwise:         {C.EK_POLICY_PAIRWISE, 0},
	balancer.KFastest:         {C.EK_POLICY_FASTEST, 0},
	balancer.KFastestWeighted: {C.EK_POLICY_FASTEST, 1},
	balancer.Proportional:     {C.EK_POLICY_PROPORTIONAL, 0},
	balancer.Profiled:         {C.EK_POLICY_PROFILED, 0},
	balancer.Static:           {C.EK_POLICY_STATIC, 0},
}

// c returns the options for C, and what is wrong with them that C can't see.
func (o Options) c() (options C.struct_ek_partition_options, wrong string) {
	policy, known := policies[o.Policy]
	if !known {
		wrong = fmt.Sprintf("there is no policy number %d: see balancer.Policy", o.Policy)
	}
	return C.struct_ek_partition_options{
		policy: policy[0], weighted: policy[1], measure: C.int(o.Measure), fastest: C.int(o.K),
		threshold: C.double(o.Threshold), threshold_seconds: C.double(o.ThresholdSeconds),
		minimum: C.int64_t(o.MinItems), maximum: C.int64_t(o.MaxItems), cycles: C.int64_t(o.Cycles),
	}, wrong
}

// Partition divides items 0 to N-1 into a contiguous range for each rank. One
// goroutine at a time.
type Partition struct {
	c     *C.ek_partition
	ranks int
	hooks []hooks
}

// NewPartition divides items evenly among the ranks of a communicator, which must
// live as long as the partition. The first cycle begins now, or with Start.
// Collective.
func NewPartition(comm *mpi.Comm, items int, o Options) (*Partition, error) {
	options, wrong := o.c()
	p := &Partition{ranks: comm.Size()}
	err := call(refused(wrong, func() C.int {
		return C.ek_partition_create(C.MPI_Comm(comm.Pointer()), C.int64_t(items), &options, &p.c)
	}))
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Free gives back the partition and the memory of its arrays. Collective.
func (p *Partition) Free() error {
	err := call(func() C.int { return C.ek_partition_free(&p.c) })
	for _, h := range p.hooks {
		h.free()
	}
	p.hooks = nil
	return err
}

// Start begins the first cycle now: what the program did to set up is not counted.
// Collective, a barrier.
func (p *Partition) Start() error {
	return call(func() C.int { return C.ek_partition_start(p.c) })
}

// Range returns this rank's items: [first, end).
func (p *Partition) Range() (first, end int) {
	var f, n C.int64_t
	C.ek_partition_range(p.c, &f, &n)
	return int(f), int(f + n)
}

// RangeOf returns the items of any rank of the communicator.
func (p *Partition) RangeOf(rank int) (first, end int, err error) {
	var f, n C.int64_t
	err = call(func() C.int { return C.ek_partition_range_of(p.c, C.int(rank), &f, &n) })
	return int(f), int(f + n), err
}

// Owner returns the rank that has an item, and -1 if there is no such item.
func (p *Partition) Owner(item int) int {
	return int(C.ek_partition_owner(p.c, C.int64_t(item)))
}

// Step ends a cycle, and moves what lives on the partition if other ranges are
// better. It returns whether they changed: slices of arrays are then new.
// Collective, a barrier.
func (p *Partition) Step() (changed bool, err error) {
	return p.step(func(c *C.int) C.int { return C.ek_partition_step(p.c, c) })
}

// Stepped is Step after a call of the program's own that ended the cycle: a
// Barrier, or another collective operation that lets nobody go before all have
// come, on the partition's communicator. It reads the history that libevenkeel.so
// has of it, and is ErrNoHistory without that.
func (p *Partition) Stepped() (changed bool, err error) {
	return p.step(func(c *C.int) C.int { return C.ek_partition_stepped(p.c, c) })
}

func (p *Partition) step(f func(*C.int) C.int) (bool, error) {
	var changed C.int
	if err := call(func() C.int { return f(&changed) }); err != nil || changed == 0 {
		return false, err
	}
	return true, p.move()
}

func (p *Partition) move() error {
	return call(func() C.int { return C.ek_partition_move(p.c) })
}

// Set takes over ranges by the program's own decision: rank r gets [bounds[r],
// bounds[r+1]). They must be the same on all ranks. Collective.
func (p *Partition) Set(bounds balancer.Partition) error {
	wrong := ""
	if len(bounds) != p.ranks+1 {
		wrong = fmt.Sprintf("%d bounds for %d ranks: there must be one more than ranks", len(bounds), p.ranks)
		bounds = make(balancer.Partition, p.ranks+1)
	}
	err := call(refused(wrong, func() C.int {
		return C.ek_partition_set(p.c, (*C.int64_t)(unsafe.Pointer(unsafe.SliceData(bounds))))
	}))
	if err != nil {
		return err
	}
	return p.move()
}

// Reason says why the last step decided as it did.
func (p *Partition) Reason() string {
	return C.GoString(C.ek_partition_reason(p.c))
}

// Costs tells what each of this rank's items cost in the cycle, in any unit, for
// the policy Profiled.
func (p *Partition) Costs(cost []float64) error {
	if first, end := p.Range(); len(cost) != end-first {
		return errors.Wrapf(ErrRefused, "%d costs for %d items", len(cost), end-first)
	}
	return call(func() C.int {
		return C.ek_partition_costs(p.c, (*C.double)(unsafe.Pointer(unsafe.SliceData(cost))))
	})
}

// Work runs f, whose time is work: see ByWork.
func (p *Partition) Work(f func()) {
	C.ek_work_begin(p.c)
	defer C.ek_work_end(p.c)
	f()
}
