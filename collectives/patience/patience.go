// Package patience remembers what a protocol core waits for, and when it is to ask
// again: each time after twice as long.
package patience

import (
	"container/heap"
	"time"
)

// Item is one thing that is waited for. Its zero value waits for nothing.
type Item struct {
	// Owner is what the item belongs to.
	Owner any
	// Tries counts how often its time has come.
	Tries int

	wait, deadline time.Duration
	place          int // in the queue, from 1; 0: not there
}

// Queue holds items by their deadlines. Its zero value is empty. It is used by one
// goroutine at a time.
type Queue struct{ items items }

// Add has an item wait from now on, and as if for the first time if it waits already.
func (q *Queue) Add(now time.Duration, i *Item, wait time.Duration) {
	i.wait, i.deadline, i.Tries = wait, now+wait, 0
	if i.place > 0 {
		heap.Fix(&q.items, i.place-1)
		return
	}
	heap.Push(&q.items, i)
}

// Remove ends an item's waiting, if it waits.
func (q *Queue) Remove(i *Item) {
	if i.place > 0 {
		heap.Remove(&q.items, i.place-1)
	}
}

// Due returns an item whose time has come, and has it wait again, twice as long but
// no longer than most; nil if there is none.
func (q *Queue) Due(now, most time.Duration) *Item {
	if len(q.items) == 0 || q.items[0].deadline > now {
		return nil
	}
	i := q.items[0]
	i.Tries++
	i.wait = max(i.wait, min(2*i.wait, most))
	i.deadline = now + i.wait
	heap.Fix(&q.items, 0)
	return i
}

// Deadline is when the next item's time comes.
func (q *Queue) Deadline() (time.Duration, bool) {
	if len(q.items) == 0 {
		return 0, false
	}
	return q.items[0].deadline, true
}

// Len counts what is waited for.
func (q *Queue) Len() int { return len(q.items) }

type items []*Item

func (q items) Len() int           { return len(q) }
func (q items) Less(i, j int) bool { return q[i].deadline < q[j].deadline }
func (q items) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i+1, j+1
}
func (q *items) Push(x any) {
	i := x.(*Item)
	*q = append(*q, i)
	i.place = len(*q)
}
func (q *items) Pop() any {
	last := (*q)[len(*q)-1]
	last.place = 0
	*q = (*q)[:len(*q)-1]
	return last
}
