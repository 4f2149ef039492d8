package svd

import (
	"errors"
	"math"
	"math/bits"
	"math/rand"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestBytesGrowWithUsers: what a change costs, in messages and bytes, grows with the
// tasks that use the object, and not with the job.
func TestBytesGrowWithUsers(t *testing.T) {
	type cost struct{ packets, bytes int }
	costs := map[[2]int]cost{}
	for _, tasks := range []int{200, 20000} {
		for _, users := range []int{1, 10, 100} {
			w := newWorld(int64(users), tasks)
			w.limited = true
			h := w.share(t, tasks, users)
			w.network.Packets, w.network.Bytes = 0, 0
			require.NoError(t, w.task(0).Resize(w.network.Now, h, 9, 9))
			w.flush(0)
			w.run()
			require.Empty(t, w.broken)
			costs[[2]int{tasks, users}] = cost{w.network.Packets, w.network.Bytes}
			t.Logf("%d of %d tasks use the object: a change costs %d packets, %d bytes", users, tasks, w.network.Packets, w.network.Bytes)
		}
	}
	for _, users := range []int{1, 10, 100} {
		small, large := costs[[2]int{200, users}], costs[[2]int{20000, users}]
		assert.Equal(t, 2*users, small.packets)
		assert.Equal(t, 2*users, large.packets)
		// The names of the tasks are longer in a larger job.
		assert.Less(t, large.bytes, small.bytes*5/4)
		assert.Less(t, large.bytes, users*100)
	}
}

// share has task 0 allocate an object and so many others use it, spread over the job.
func (w *world) share(t *testing.T, tasks, users int) Handle {
	h, err := w.task(0).Allocate(0, Spec{Address: 100, Size: 8, Blocking: 1, Element: 1})
	require.NoError(t, err)
	w.task(0).own(h, 100, 1000) // with room to grow
	w.flush(0)
	for _, user := range rand.New(rand.NewSource(1)).Perm(tasks - 1)[:users] {
		w.task(Task(user+1)).Use(w.network.Now, h)
		w.flush(Task(user + 1))
	}
	w.run()
	require.Len(t, w.task(0).Users(h), users)
	return h
}

// TestHundredThousandTasks: all tasks of a large job allocate together and one of
// them frees. The number of packets that follow on each other is logarithmic, and a
// task's state does not grow with the job.
func TestHundredThousandTasks(t *testing.T) {
	alone(t)
	const tasks = 100000
	w := newWorld(1, tasks)
	w.limited = true
	w.config.Retry, w.config.RetryMax = time.Second, time.Second // nothing is lost
	w.network.Delay = time.Microsecond
	spec := Spec{Address: shared, Size: 8, Blocking: 1, Element: 1}
	for task := range Task(tasks) {
		w.task(task)
	}
	runtime.GC()
	before := memory()
	tickets := map[Task]Ticket{}
	for task := range Task(tasks) {
		tickets[task] = w.task(task).AllocateAll(0, spec)
		w.flush(task)
	}
	w.run()
	require.Empty(t, w.broken)
	h := w.answers[0][tickets[0]].Handle
	for task := range Task(tasks) {
		require.Equal(t, h, w.answers[task][tickets[task]].Handle)
	}
	// A packet takes a microsecond: so many of them followed on each other.
	logarithm := bits.Len(tasks)
	hops := int(w.network.Now / time.Microsecond)
	t.Logf("allocated by %d tasks after %d packets in a row, %d in all, %.1f bytes a task", tasks, hops, w.network.Packets, float64(w.network.Bytes)/tasks)
	assert.LessOrEqual(t, hops, 3*logarithm) // up to task 0, down to all, and their confirmations up again

	began, packets := w.network.Now, w.network.Packets
	w.task(77777).Free(w.network.Now, h)
	w.flush(77777)
	w.run()
	require.Empty(t, w.broken)
	hops = int((w.network.Now - began) / time.Microsecond)
	t.Logf("freed after %d packets in a row, %d in all", hops, w.network.Packets-packets)
	assert.LessOrEqual(t, hops, 2+4*logarithm) // to task 0; told and confirmed; released and confirmed
	for task := range Task(tasks) {
		_, err := w.task(task).Lookup(h)
		var refused *Error
		require.True(t, errors.As(err, &refused) && refused.Reason == WasFreed)
	}
	runtime.GC()
	perTask := (memory() - before) / tasks
	runtime.KeepAlive(w)
	t.Logf("%.0f bytes of state a task, in the simulation", perTask)
	assert.Less(t, perTask, 4000.0)
}

func memory() float64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// TestMillionsOfEntries: a home keeps millions of entries in some 60 bytes each, and
// finds every one of them again.
func TestMillionsOfEntries(t *testing.T) {
	alone(t)
	const count = 3_000_000
	w := newWorld(1, 2)
	r := w.task(0).Replica
	runtime.GC()
	before := memory()
	for i := range uint64(count) {
		_, err := r.Allocate(0, Spec{Address: 8 * i, Size: 8, Blocking: 1, Element: 8})
		require.NoError(t, err)
		if i%1024 == 0 {
			r.Take()
		}
	}
	r.Take()
	runtime.GC()
	perEntry := (memory() - before) / count
	t.Logf("%.0f bytes an entry", perEntry)
	assert.Less(t, perEntry, 100.0)
	for i := range uint32(count) {
		e, err := r.Lookup(newHandle(0, i, 1))
		if err != nil || e.Address != 8*uint64(i) {
			t.Fatalf("object %d: %+v, %v", i, e, err)
		}
	}
}

// TestHeaderIsStored: the schedule of an entry is chosen when its number of users has
// doubled, not with each change, and fits that number.
func TestHeaderIsStored(t *testing.T) {
	alone(t)
	w := newWorld(1, 3000)
	w.limited = true
	h := w.share(t, 3000, 2)
	_, chosen := w.task(0).Header(h)
	require.False(t, chosen, "nothing was broadcast yet")
	choices, size := 0, uint64(8)
	change := func() {
		for range 3 {
			size++
			before := w.task(0).slotOf(h).users.chosenFor
			require.NoError(t, w.task(0).Resize(w.network.Now, h, size, size))
			w.flush(0)
			w.run()
			if w.task(0).slotOf(h).users.chosenFor != before {
				choices++
			}
		}
		header, chosen := w.task(0).Header(h)
		require.True(t, chosen)
		u := w.task(0).slotOf(h).users
		ratio := float64(len(u.tasks)) / float64(u.chosenFor)
		require.True(t, ratio <= 2 && ratio >= 0.5, "%v for %d of %d", header, u.chosenFor, len(u.tasks))
	}
	last := 0
	for users := 2; users < 2500; users += max(1, users/10) {
		for user := last + 1; user <= users; user++ {
			w.task(Task(user)).Use(w.network.Now, h)
			w.flush(Task(user))
		}
		last = users
		w.run()
		change()
	}
	t.Logf("%d choices up to %d users", choices, last)
	assert.LessOrEqual(t, choices, int(math.Log2(2500))+1)
	choices = 0
	for users := len(w.task(0).Users(h)); users > 2; { // some that share has drawn are among them
		for _, user := range w.task(0).Users(h)[users-max(1, users/10):] {
			w.task(user).Forget(w.network.Now, h)
			w.flush(user)
		}
		w.run()
		users = len(w.task(0).Users(h))
		change()
	}
	t.Logf("%d choices down to 2 users", choices)
	assert.LessOrEqual(t, choices, int(math.Log2(2500))+1)
	require.Empty(t, w.broken)
}

// TestGenerations: an index is used again with another generation, until these are
// used up.
func TestGenerations(t *testing.T) {
	w := newWorld(1, 1)
	me := w.task(0)
	used := map[Handle]bool{}
	for i := range maxGeneration + 10 {
		h, err := me.Allocate(0, Spec{Address: 1, Size: 1, Blocking: 1, Element: 1})
		require.NoError(t, err)
		require.False(t, used[h], "%s twice", h)
		used[h] = true
		require.Equal(t, uint32(i/maxGeneration), h.Index())
		me.Free(0, h)
		for e := me.Take(); len(e.LetGo) > 0; e = me.Take() {
			for _, l := range e.LetGo {
				me.LetGone(0, l)
			}
		}
	}
	_, err := me.Lookup(newHandle(0, 0, maxGeneration))
	assert.ErrorContains(t, err, "freed before")
}
