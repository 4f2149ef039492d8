package spmd

/*
#include <stdlib.h>
#include "split.h"

int ek_go_job(MPI_Comm comm, struct ek_job_options *options, uintptr_t handle, ek_job **job);
*/
import "C"

import (
	"fmt"
	"runtime/cgo"
	"sync"
	"unsafe"

	"github.com/pkg/errors"

	"evenkeel/balancer/split"
	"evenkeel/mpi"
)

// JobOptions say how jobs are split. The zero value suits most programs.
type JobOptions struct {
	// Tasks is how many tasks this rank runs at once at most; 0: its share of the
	// cores that it may use.
	Tasks int
	// Parts is how many parts a task is cut into, which ranks that are ready claim
	// from others; 0: 8.
	Parts int
	// Relation is how many tasks more than ranks there are, by how much the ranks'
	// speeds differ: a split.Linear or split.Table; nil: split.Default.
	Relation split.Relation
	// Cut, if not nil, cuts a task, the units [first, end), into len(ends) parts where
	// the program finds it best: ends[i] is the unit after part i's last, at first those
	// of parts of equal size. All ranks call it for all tasks, and must get the same: else
	// Run is ErrRefused, and where it fails ErrHook, on all ranks.
	Cut func(first, end int, ends []int) error
}

// Job is a way to run jobs of independent units over a communicator. It remembers
// how fast the ranks were.
type Job[R any] struct {
	c   *C.ek_job
	cut cgo.Handle // 0: none
}

// NewJob makes one. R, the result of a unit, must hold no Go pointers, since results
// move between processes. Collective.
func NewJob[R any](comm *mpi.Comm, o JobOptions) (*Job[R], error) {
	if t := typeWithPointers[R](); t != nil {
		return nil, errors.Wrapf(ErrRefused, "%v holds Go pointers, which mean nothing to another process", t)
	}
	options := C.struct_ek_job_options{threads: C.int(o.Tasks), parts: C.int(o.Parts)}
	wrong := ""
	switch relation := o.Relation.(type) {
	case nil:
	case split.Linear:
		options.slope, options.most = C.double(relation.Slope), C.double(relation.Most)
	case split.Table:
		table := (*C.double)(C.calloc(C.size_t(2*len(relation)+1), C.size_t(unsafe.Sizeof(C.double(0)))))
		defer C.free(unsafe.Pointer(table))
		for i, point := range relation {
			pair := unsafe.Slice(table, 2*len(relation))[2*i:]
			pair[0], pair[1] = C.double(point.Spread), C.double(point.PerRank)
		}
		options.table, options.points = table, C.int(len(relation))
	default:
		wrong = fmt.Sprintf("a relation of type %T: give a split.Linear or split.Table", relation)
	}
	j := &Job[R]{}
	if o.Cut != nil {
		j.cut = cgo.NewHandle(o.Cut)
	}
	err := call(refused(wrong, func() C.int {
		return C.ek_go_job(C.MPI_Comm(comm.Pointer()), &options, C.uintptr_t(j.cut), &j.c)
	}))
	if err != nil {
		j.forget()
		return nil, err
	}
	return j, nil
}

// Run computes units 0 to work-1, and returns their results, in that order, on all
// ranks. run computes units first, first+1, ... into results, which has an element
// for each; it is called from several goroutines at once and calls no MPI. If it
// fails on any rank, Run is ErrHook on all. Collective.
func (j *Job[R]) Run(work int, run func(first int, results []R) error) ([]R, error) {
	size := unsafe.Sizeof(*new(R))
	if err := call(func() C.int { return C.ek_job_begin(j.c, C.int64_t(work), C.size_t(size)) }); err != nil {
		return nil, err
	}
	c := crew[R]{job: j, run: run}
	c.hire()
	if C.ek_job_serves(j.c) != 0 {
		C.ek_job_serve(j.c)
	}
	c.running.Wait()
	results := make([]R, work)
	err := call(func() C.int { return C.ek_job_end(j.c, unsafe.Pointer(unsafe.SliceData(results))) })
	if err != nil {
		return nil, err
	}
	return results, nil
}

// crew is the goroutines that run a job's parts.
type crew[R any] struct {
	job     *Job[R]
	run     func(first int, results []R) error
	running sync.WaitGroup
}

// hire starts goroutines as long as more are wanted.
func (c *crew[R]) hire() {
	for C.ek_job_join(c.job.c) != 0 {
		c.running.Go(c.work)
	}
}

// work runs parts until there is nothing left for this goroutine.
func (c *crew[R]) work() {
	var first, count C.int64_t
	var results unsafe.Pointer
	for C.ek_job_claim(c.job.c, &first, &count, &results) != 0 {
		c.hire()
		if err := c.run(int(first), unsafe.Slice((*R)(results), int(count))); err != nil {
			say("a task", err)
			C.ek_job_ran(c.job.c, 1)
		}
	}
}

// Report says how the last job went, what the rank was seen to have to compute with,
// and what of that can't be seen.
func (j *Job[R]) Report() string {
	return C.GoString(C.ek_job_report(j.c))
}

// Counts returns how many tasks the last job was divided into, and how many parts of
// tasks this rank ran: of its own tasks, and claimed from others.
func (j *Job[R]) Counts() (tasks, own, claimed int) {
	var t, o, c C.int64_t
	C.ek_job_counts(j.c, &t, &o, &c)
	return int(t), int(o), int(c)
}

// Free gives the job back. Collective.
func (j *Job[R]) Free() error {
	err := call(func() C.int { return C.ek_job_free(&j.c) })
	j.forget()
	return err
}

// forget gives back the handle by which C knows the function that cuts tasks.
func (j *Job[R]) forget() {
	if j.cut != 0 {
		j.cut.Delete()
		j.cut = 0
	}
}

//export ekGoCut
func ekGoCut(context C.uintptr_t, first, count C.int64_t, parts C.int, end *C.int64_t) C.int {
	told := unsafe.Slice(end, int(parts))
	ends := make([]int, len(told))
	for i := range ends {
		ends[i] = int(told[i])
	}
	if err := cgo.Handle(context).Value().(func(int, int, []int) error)(int(first), int(first+count), ends); err != nil {
		say("cutting a task", err)
		return 1
	}
	for i := range ends {
		told[i] = C.int64_t(ends[i])
	}
	return 0
}
