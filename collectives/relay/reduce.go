package relay

import (
	"slices"
	"time"

	"evenkeel/collectives"
	"evenkeel/collectives/patience"
)

// Combine makes one contribution of two. It must be associative; before is of tasks
// that stand before those of after among the root's receivers. It may change and
// return before.
type Combine func(before, after []byte) []byte

// member is this task in a group.
type member struct {
	started uint64
	open    map[uint64]*reduction
}

// reduction is one that this task has not done its part of, or of which
// contributions have come before it began itself.
type reduction struct {
	step
	begun   bool
	root    bool
	parent  Task
	from    []Task // in the order of combining: this task, then its children
	values  map[Task][]byte
	combine Combine
	message []byte // to the parent, until it is taken
	waiting patience.Item
}

// Reduce gives this task's contribution to the next reduction of a group, and
// returns its number. A group is a number that its members alone use. They all call
// Reduce in the same order, each with its place in the same tree. The values are
// combined in the order of the root's receivers. A contribution, also a combined
// one, must fit into a message.
func (r *Relay) Reduce(now time.Duration, group uint32, place collectives.Place, value []byte, combine Combine) uint64 {
	m := r.member(group)
	red := m.reduction(step{group, m.started})
	m.started++
	red.begun, red.root, red.parent, red.combine = true, place.Root, place.Parent, combine
	red.from = append([]Task{r.config.Self}, place.InOrder...)
	red.values[r.config.Self] = slices.Clone(value)
	r.reduce(now, m, red)
	return red.sequence
}

func (r *Relay) member(group uint32) *member {
	m := r.groups[group]
	if m == nil {
		m = &member{open: map[uint64]*reduction{}}
		r.groups[group] = m
	}
	return m
}

func (m *member) reduction(s step) *reduction {
	red := m.open[s.sequence]
	if red == nil {
		red = &reduction{step: s, values: map[Task][]byte{}}
		m.open[s.sequence] = red
	}
	return red
}

// reduce combines what is there once it is all there.
func (r *Relay) reduce(now time.Duration, m *member, red *reduction) {
	if !red.begun || red.message != nil {
		return
	}
	for _, t := range red.from {
		if _, there := red.values[t]; !there {
			return
		}
	}
	value := red.values[red.from[0]]
	for _, t := range red.from[1:] {
		value = red.combine(value, red.values[t])
	}
	red.values = nil
	if red.root {
		r.end(m, red, value)
		return
	}
	red.message = append(red.append(nil, kindContribution), value...)
	red.repeat(r)
	red.waiting.Owner = red
	r.due.Add(now, &red.waiting, r.config.Retry)
}

func (r *Relay) end(m *member, red *reduction, value []byte) {
	delete(m.open, red.sequence)
	r.effects.Reduced = append(r.effects.Reduced, Reduced{red.group, red.sequence, red.root, value})
}

func (red *reduction) missing() []Task { return []Task{red.parent} }

func (red *reduction) repeat(r *Relay) {
	r.effects.Messages = append(r.effects.Messages, Message{red.parent, red.message})
}

// contribution: one may come before this task has begun the reduction; what is not
// open and has been begun is over.
func (r *Relay) contribution(now time.Duration, from Task, s step, value []byte) {
	m := r.member(s.group)
	red := m.open[s.sequence]
	if red != nil || s.sequence >= m.started {
		red = m.reduction(s)
		if _, there := red.values[from]; !there && red.message == nil {
			red.values[from] = slices.Clone(value)
		}
		r.reduce(now, m, red)
	}
	r.effects.Messages = append(r.effects.Messages, Message{from, s.append(nil, kindTaken)})
}

func (r *Relay) taken(from Task, s step) {
	m := r.groups[s.group]
	if m == nil {
		return
	}
	if red := m.open[s.sequence]; red != nil && red.message != nil && red.parent == from {
		r.due.Remove(&red.waiting)
		r.end(m, red, nil)
	}
}
