// Package run broadcasts, notifies and reduces among real tasks: it runs the schedules
// of package collectives over any fabric, by the state machine of package relay, and
// chooses them by the cost model from what was measured on that fabric.
package run

import (
	"context"
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"github.com/pkg/errors"

	"evenkeel/collectives"
	"evenkeel/collectives/arrivals"
	"evenkeel/collectives/carrier"
	"evenkeel/collectives/relay"
	"evenkeel/runtime/fabric"
)

// Config is what the tasks of a job agree on.
type Config struct {
	Tasks   int
	Nodes   collectives.Nodes   // may be nil
	Network collectives.Network // see package measure
	// Retry is the time after which what is not confirmed is sent again, about twice
	// a round trip; it doubles each time, up to RetryMax.
	Retry, RetryMax time.Duration
	// Choose chooses schedules, for all members alike; nil: Network.Choose does.
	Choose func(collectives.Load) collectives.Schedule
}

// Job is this task's part in the collective operations of a job. Its carrier is its
// alone. Its methods, and those of its teams, may be called from any goroutine.
type Job struct {
	config  Config
	carrier carrier.Carrier
	begin   time.Time
	limit   int

	lock      sync.Mutex
	relay     *relay.Relay
	teams     map[uint32]*Team
	completed map[relay.Broadcast]chan struct{}
	arrived   map[call]arrival
	expected  map[call]chan arrival
	reduced   map[step]chan []byte
}

// call is a broadcast as the members of a team number them, step a reduction.
type (
	call struct {
		team     uint32
		sequence uint64
	}
	step call
)

type arrival struct {
	origin fabric.Task
	data   []byte
}

// Start takes part in a job.
func Start(by carrier.Carrier, c Config) (*Job, error) {
	if err := c.Network.Check(); err != nil {
		return nil, err
	}
	j := &Job{config: c, carrier: by, begin: time.Now(), limit: by.Limit(c.Tasks), teams: map[uint32]*Team{},
		completed: map[relay.Broadcast]chan struct{}{}, arrived: map[call]arrival{}, expected: map[call]chan arrival{}, reduced: map[step]chan []byte{}}
	var err error
	j.relay, err = relay.New(relay.Config{Self: by.Self(), Tasks: c.Tasks, Nodes: c.Nodes, Limit: j.limit, Retry: c.Retry, RetryMax: c.RetryMax})
	if err != nil {
		return nil, err
	}
	return j, by.Start(j)
}

// Close ends this task's part, and closes the carrier. Meet the others in a Barrier
// before: what they still wait for from this task they don't get.
func (j *Job) Close() error { return j.carrier.Close() }

func (j *Job) now() time.Duration { return time.Since(j.begin) }

// Receive is for the carrier.
func (j *Job) Receive(from fabric.Task, packet []byte) error {
	j.lock.Lock()
	err := j.relay.Receive(j.now(), from, packet)
	j.finish()
	return err
}

// Tick is for the carrier.
func (j *Job) Tick() (time.Duration, bool) {
	j.lock.Lock()
	now := j.now()
	if at, waits := j.relay.Deadline(); waits && at <= now {
		j.relay.Tick(now)
	}
	at, waits := j.relay.Deadline()
	j.finish()
	return max(0, at-now), waits
}

// finish carries the effects of an event out, and gives the lock back.
func (j *Job) finish() {
	var messages []relay.Message
	for {
		e := j.relay.Take()
		messages = append(messages, e.Messages...)
		for _, d := range e.Deliveries {
			j.deliver(d)
		}
		for _, b := range e.Completed {
			if done := j.completed[b]; done != nil {
				close(done)
				delete(j.completed, b)
			}
		}
		for _, r := range e.Reduced {
			s := step{r.Group, r.Sequence}
			if done := j.reduced[s]; done != nil {
				done <- r.Value
				delete(j.reduced, s)
			}
		}
		if len(e.Deliveries) == 0 {
			break
		}
	}
	j.lock.Unlock()
	for _, m := range messages {
		j.carrier.Send(m.To, m.Data)
	}
}

// deliver keeps what was broadcast until this task asks for it.
func (j *Job) deliver(d relay.Delivery) {
	j.relay.Confirm(d.Broadcast)
	team, n := binary.Uvarint(d.Data)
	sequence, m := binary.Uvarint(d.Data[max(n, 0):])
	if n <= 0 || m <= 0 || team > 1<<32-1 {
		return
	}
	c, a := call{uint32(team), sequence}, arrival{d.Origin, d.Data[n+m:]}
	if expected := j.expected[c]; expected != nil {
		expected <- a
		delete(j.expected, c)
		return
	}
	j.arrived[c] = a
}

// Team is some tasks of a job. All members call the operations in the same order.
type Team struct {
	job       *Job
	number    uint32
	group     collectives.Group
	sequence  uint64 // of broadcasts
	schedules map[collectives.Load]collectives.Schedule
}

// Team makes a team of a group to which this task belongs. Its members all call it by
// the same number, which no other team of theirs has.
func (j *Job) Team(number uint32, g collectives.Group) (*Team, error) {
	self := j.self()
	if !slices.Contains(g.Tasks(), self) {
		return nil, errors.Errorf("task %d is not of team %d", self, number)
	}
	j.lock.Lock()
	defer j.lock.Unlock()
	if j.teams[number] != nil {
		return nil, errors.Errorf("task %d has a team %d already", self, number)
	}
	t := &Team{job: j, number: number, group: g, schedules: map[collectives.Load]collectives.Schedule{}}
	j.teams[number] = t
	return t, nil
}

func (j *Job) self() fabric.Task { return j.carrier.Self() }

// schedule is what the model chooses for so many bytes.
func (t *Team) schedule(bytes int, reduce bool) collectives.Schedule {
	l := t.group.Load(bytes, reduce)
	if choose := t.job.config.Choose; choose != nil {
		return choose(l)
	}
	s, found := t.schedules[l]
	if !found {
		s, _ = t.job.config.Network.Choose(l)
		t.schedules[l] = s
	}
	return s
}

// Broadcast gives root's data to all members, and returns it. The others may pass nil.
// At root it returns when everyone has it.
func (t *Team) Broadcast(ctx context.Context, root fabric.Task, data []byte) ([]byte, error) {
	receivers, err := t.group.Receivers(root)
	if err != nil {
		return nil, err
	}
	j := t.job
	j.lock.Lock()
	c := call{t.number, t.sequence}
	t.sequence++
	if root != j.self() {
		got, err := t.await(ctx, c)
		if err == nil && got.origin != root {
			return nil, errors.Errorf("broadcast %d of team %d: task %d expects it of task %d, but task %d sent it: all members must name the same root",
				c.sequence, t.number, j.self(), root, got.origin)
		}
		return got.data, err
	}
	message := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(t.number)), c.sequence)
	b, err := j.relay.Broadcast(j.now(), t.schedule(len(data), false), receivers, append(message, data...))
	if err != nil {
		j.lock.Unlock()
		return nil, err
	}
	done := make(chan struct{})
	j.completed[b] = done
	j.finish()
	j.carrier.Due(j.config.Retry)
	select {
	case <-done:
		return data, nil
	case <-ctx.Done():
		return nil, errors.Wrapf(ctx.Err(), "broadcast %d of team %d", c.sequence, t.number)
	}
}

// await returns what was broadcast, and gives the lock back.
func (t *Team) await(ctx context.Context, c call) (arrival, error) {
	j := t.job
	if a, there := j.arrived[c]; there {
		delete(j.arrived, c)
		j.lock.Unlock()
		return a, nil
	}
	expected := make(chan arrival, 1)
	j.expected[c] = expected
	j.lock.Unlock()
	select {
	case a := <-expected:
		return a, nil
	case <-ctx.Done():
		return arrival{}, errors.Wrapf(ctx.Err(), "waiting for broadcast %d of team %d", c.sequence, t.number)
	}
}

// Notify has all members wait until root has called it; root waits until they have
// heard.
func (t *Team) Notify(ctx context.Context, root fabric.Task) error {
	_, err := t.Broadcast(ctx, root, nil)
	return err
}

// header is what a contribution takes besides its value, at most.
const header = 32

// Reduce combines the members' values at root, and returns the result there, and nil
// elsewhere. A value is elements of so many bytes, as many in each task; combine gets
// the same elements of two values. It must be associative; values are combined in the
// order of the group from root on, around its end, if the group's nodes are not known.
func (t *Team) Reduce(ctx context.Context, root fabric.Task, value []byte, element int, combine relay.Combine) ([]byte, error) {
	j := t.job
	if element < 1 || len(value)%element != 0 || element > j.limit-header {
		return nil, errors.Errorf("a reduction of %d bytes in elements of %d, which must fit into messages of %d", len(value), element, j.limit-header)
	}
	j.lock.Lock()
	schedule := t.schedule(len(value), true)
	place, err := t.group.Place(schedule, root, j.self())
	if err != nil {
		j.lock.Unlock()
		return nil, err
	}
	size := j.limit - header
	if schedule.Segment > 0 {
		size = min(size, max(element, int(schedule.Segment)))
	}
	pieces := slices.Collect(slices.Chunk(value, size/element*element))
	if len(pieces) == 0 {
		pieces = [][]byte{nil}
	}
	var done []chan []byte
	for _, piece := range pieces {
		ended := make(chan []byte, 1)
		done = append(done, ended)
		j.reduced[step{t.number, j.relay.Reduce(j.now(), t.number, place, piece, combine)}] = ended
	}
	j.finish()
	j.carrier.Due(j.config.Retry)
	var result []byte
	for _, ended := range done {
		select {
		case piece := <-ended:
			result = append(result, piece...)
		case <-ctx.Done():
			return nil, errors.Wrapf(ctx.Err(), "a reduction of team %d", t.number)
		}
	}
	if !place.Root {
		return nil, nil
	}
	return result, nil
}

// Allreduce is a Reduce whose result all members get.
func (t *Team) Allreduce(ctx context.Context, value []byte, element int, combine relay.Combine) ([]byte, error) {
	root := t.group.Tasks()[0]
	result, err := t.Reduce(ctx, root, value, element, combine)
	if err != nil {
		return nil, err
	}
	return t.Broadcast(ctx, root, result)
}

// Arrivals is a Barrier after which all members know when they came to it: each gives its time, in ns of a clock
// that is the same for all, and all get the sketch of these.
func (t *Team) Arrivals(ctx context.Context, now int64) (arrivals.Sketch, error) {
	if arrivals.MaxBytes > t.job.limit-header {
		return arrivals.Sketch{}, errors.Errorf("a sketch of arrivals takes up to %d bytes, but a message takes %d", arrivals.MaxBytes, t.job.limit-header)
	}
	mine := arrivals.Of(arrivals.Arrival{Task: t.job.self(), Time: now}).Append(nil)
	all, err := t.Allreduce(ctx, mine, len(mine), arrivals.Combine)
	if err != nil {
		return arrivals.Sketch{}, err
	}
	return arrivals.Decode(all)
}

// Barrier returns when all members have called it.
func (t *Team) Barrier(ctx context.Context) error {
	_, err := t.Allreduce(ctx, nil, 1, func(before, _ []byte) []byte { return before })
	return err
}
