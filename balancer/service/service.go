// Package service offers the decisions of package balancer to C: the table of
// c/balancer.h, which libevenkeel.so finds under the name "balancer".
package service

/*
#cgo CFLAGS: -I${SRCDIR}/../../c
#include <string.h>
#include "balancer.h"

const struct ek_balancer *ek_balancer_table(void);
*/
import "C"

import (
	"math"
	"sync"
	"unsafe"

	"evenkeel/balancer"
	"evenkeel/balancer/level"
	"evenkeel/balancer/split"
	"evenkeel/runtime/attach"
)

func init() {
	attach.Offer("balancer", Table())
}

// Table is the table of c/balancer.h.
func Table() unsafe.Pointer {
	return unsafe.Pointer(C.ek_balancer_table())
}

// controllers are those that are open, by their number.
var controllers struct {
	sync.Mutex
	open map[uint64]*balancer.Controller
	last uint64
}

func controller(number uint64) *balancer.Controller {
	controllers.Lock()
	defer controllers.Unlock()
	return controllers.open[number]
}

// policies are those of enum ek_policy.
var policies = []balancer.Policy{balancer.Auto, balancer.Pairwise, balancer.KFastest, balancer.Proportional, balancer.Profiled, balancer.Static}

func options(s *C.struct_ek_balancer_start, items int64, ranks int) balancer.Options {
	o := balancer.DefaultOptions(items, ranks)
	o.Policy = policies[s.policy]
	if o.Policy == balancer.KFastest && s.weighted != 0 {
		o.Policy = balancer.KFastestWeighted
	}
	o.K = int(s.fastest)
	if s.threshold > 0 {
		o.Threshold = float64(s.threshold)
	}
	if s.threshold_seconds > 0 {
		o.ThresholdSeconds = float64(s.threshold_seconds)
	}
	if s.minimum > 0 {
		o.MinItems = int64(s.minimum)
	}
	if s.maximum > 0 {
		o.MaxItems = make([]int64, ranks)
		for r := range o.MaxItems {
			o.MaxItems[r] = int64(s.maximum)
		}
	}
	o.Horizon = int(s.cycles)
	return o
}

//export ekBalancerOpen
func ekBalancerOpen(start unsafe.Pointer, text *C.char) C.uint64_t {
	s := (*C.struct_ek_balancer_start)(start)
	ranks := int(s.ranks)
	bounds := balancer.Partition(unsafe.Slice((*int64)(unsafe.Pointer(s.bounds)), ranks+1))
	c, err := balancer.NewController(bounds, options(s, bounds.Items(), ranks))
	if err != nil {
		say(text, err.Error())
		return 0
	}
	controllers.Lock()
	defer controllers.Unlock()
	if controllers.open == nil {
		controllers.open = map[uint64]*balancer.Controller{}
	}
	controllers.last++
	controllers.open[controllers.last] = c
	return C.uint64_t(controllers.last)
}

//export ekBalancerClose
func ekBalancerClose(number C.uint64_t) {
	controllers.Lock()
	delete(controllers.open, uint64(number))
	controllers.Unlock()
}

//export ekBalancerStep
func ekBalancerStep(number C.uint64_t, cycle, decision unsafe.Pointer) C.int {
	return decide(controller(uint64(number)), (*C.struct_ek_balancer_cycle)(cycle), (*C.struct_ek_balancer_decision)(decision))
}

func decide(c *balancer.Controller, cycle *C.struct_ek_balancer_cycle, out *C.struct_ek_balancer_decision) C.int {
	h := balancer.Cycle{Useful: floats(unsafe.Pointer(cycle.useful), c.Partition().Ranks()), Cycles: int(cycle.cycles)}
	if cycle.regions > 0 {
		h.Costs = floats(unsafe.Pointer(cycle.costs), int(cycle.regions))
	}
	err := c.Moved(float64(cycle.moved_seconds))
	var d balancer.Decision
	if err == nil {
		d, err = c.Step(h)
	}
	if err != nil {
		say(&out.reason[0], err.Error())
		return -1
	}
	copy(unsafe.Slice((*int64)(unsafe.Pointer(out.bounds)), len(d.Next)), d.Next)
	out.changed = 0
	if d.Changed {
		out.changed = 1
	}
	say(&out.reason[0], d.Reason)
	return 0
}

//export ekBalancerPlan
func ekBalancerPlan(job, plan unsafe.Pointer, text *C.char) C.int {
	j, out := (*C.struct_ek_balancer_job)(job), (*C.struct_ek_balancer_plan)(plan)
	rates := floats(unsafe.Pointer(j.rates), int(j.ranks))
	cores := unsafe.Slice((*int32)(unsafe.Pointer(j.cores)), int(j.ranks))
	ranks := make([]split.Rank, j.ranks)
	for r := range ranks {
		ranks[r] = split.Rank{Rate: rates[r], Cores: int(cores[r])}
	}
	relation, err := relationOf(j)
	if err != nil {
		say(text, err.Error())
		return -1
	}
	p, err := split.New(int64(j.work), ranks, relation)
	if err != nil {
		say(text, err.Error())
		return -1
	}
	if len(p.Tasks) > int(out.room) {
		say(text, "more tasks than there is room for")
		return -1
	}
	out.tasks = C.int64_t(len(p.Tasks))
	ends := unsafe.Slice((*int64)(unsafe.Pointer(out.end)), len(p.Tasks))
	for i, task := range p.Tasks {
		ends[i] = task.End
	}
	begins := unsafe.Slice((*int64)(unsafe.Pointer(out.begin)), len(p.Begin))
	for i, begin := range p.Begin {
		begins[i] = int64(begin)
	}
	concurrent := unsafe.Slice((*int32)(unsafe.Pointer(out.concurrent)), len(p.Concurrent))
	for i, n := range p.Concurrent {
		concurrent[i] = int32(n)
	}
	return 0
}

// relationOf is the job's relation between the ranks' spread and the number of
// tasks.
func relationOf(j *C.struct_ek_balancer_job) (split.Relation, error) {
	if j.points == 0 {
		return split.Linear{Slope: float64(j.slope), Most: float64(j.most)}, nil
	}
	var t split.Table
	pairs := floats(unsafe.Pointer(j.table), 2*int(j.points))
	for i := 0; i < len(pairs); i += 2 {
		t = append(t, split.Point{Spread: pairs[i], PerRank: pairs[i+1]})
	}
	return t, t.Check()
}

//export ekBalancerCompare
func ekBalancerCompare(ranks C.int32_t, before, after unsafe.Pointer, threshold C.double, factors unsafe.Pointer, reason *C.char) C.int {
	v, err := level.Compare(snapshots(before, int(ranks)), snapshots(after, int(ranks)), float64(threshold))
	if err != nil {
		say(reason, err.Error())
		return -1
	}
	copy(floats(factors, int(ranks)), v.Factors)
	say(reason, v.Reason)
	if v.Resplit {
		return 1
	}
	return 0
}

func snapshots(at unsafe.Pointer, ranks int) []level.Snapshot {
	var seen []level.Snapshot
	for _, r := range unsafe.Slice((*C.struct_ek_balancer_resources)(at), ranks) {
		var s level.Snapshot
		if r.cores >= 0 {
			s.Seen, s.Cores = s.Seen|level.Cores, int(r.cores)
		}
		if r.quota >= 0 {
			s.Seen, s.Quota = s.Seen|level.Quota, float64(r.quota)
		}
		if r.others >= 0 {
			s.Seen, s.Others = s.Seen|level.Others, float64(r.others)
		}
		if r.nice < 100 {
			s.Seen, s.Nice = s.Seen|level.Nice, int(r.nice)
		}
		if s.Seen&level.Quota != 0 && s.Quota == 0 {
			s.Quota = math.Inf(1)
		}
		seen = append(seen, s)
	}
	return seen
}

func floats(at unsafe.Pointer, n int) []float64 {
	return unsafe.Slice((*float64)(at), n)
}

// say writes a text into EK_BALANCER_TEXT bytes.
func say(to *C.char, text string) {
	at := unsafe.Slice((*byte)(unsafe.Pointer(to)), C.EK_BALANCER_TEXT)
	at[copy(at[:len(at)-1], text)] = 0
}
