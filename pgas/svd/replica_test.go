package svd

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/collectives/relay"
)

func good() Spec { return Spec{Address: 100, Size: 8, Blocking: 1, Element: 1} }

// object has a task allocate an object.
func (w *world) object(t *testing.T, home Task) Handle {
	s := good()
	s.Address = w.task(home).memory(s.Size)
	h, err := w.task(home).Allocate(w.network.Now, s)
	require.NoError(t, err)
	w.task(home).own(h, s.Address, s.Size)
	w.flush(home)
	return h
}

// free frees an object and returns the answer.
func (w *world) free(by Task, h Handle) error {
	ticket := w.task(by).Free(w.network.Now, h)
	w.flush(by)
	w.run()
	return w.answers[by][ticket].Err
}

// TestRefusals: every misuse is refused with an error that names the object and the
// task that asked.
func TestRefusals(t *testing.T) {
	w := newWorld(1, 4)
	h := w.object(t, 2)
	require.NoError(t, w.free(1, h))
	assert.EqualError(t, w.free(3, h), "free of task 2's object 0.1 by task 3: it was freed before")
	assert.EqualError(t, w.free(2, h), "free of task 2's object 0.1 by task 2: it was freed before")
	_, err := w.task(2).Lookup(h)
	assert.EqualError(t, err, "use of task 2's object 0.1 by task 2: it was freed before")
	w.task(0).Use(w.network.Now, h)
	w.flush(0)
	w.run()
	assert.EqualError(t, w.task(0).resolved[h].Err, "use of task 2's object 0.1 by task 0: it was freed before")

	again := w.object(t, 2)
	require.Equal(t, h.Index(), again.Index(), "the index is used again")
	assert.EqualError(t, w.free(1, h), "free of task 2's object 0.1 by task 1: it was freed before")
	_, err = w.task(2).Lookup(again)
	assert.NoError(t, err)

	for _, never := range []Handle{newHandle(2, 9, 1), newHandle(2, 0, 3)} { // an index that was never used, and a generation
		assert.EqualError(t, w.free(1, never), fmt.Sprintf("free of %s by task 1: there never was such an object", never))
	}
	assert.EqualError(t, w.free(1, newHandle(77, 0, 1)), "free of task 77's object 0.1 by task 1: there never was such an object")
	assert.EqualError(t, w.free(1, 0), "free by task 1: there never was such an object")
	assert.EqualError(t, w.task(1).Resize(0, again, 3, 3), "resizing of task 2's object 0.2 by task 1: only its home may do that")
	assert.EqualError(t, w.task(1).Move(0, again), "moving of task 2's object 0.2 by task 1: only its home may do that")
	assert.EqualError(t, w.task(2).Settle(0, again, 1, 1, 1), "settling of task 2's object 0.2 by task 2: it is not being moved")

	assert.ErrorContains(t, w.task(2).Resize(0, again, 0, 0), "resizing of task 2's object 0.2 by task 2: no object can be so: 0 bytes")

	for text, spec := range map[string]Spec{
		"a blocking factor of 0": {Size: 8, Element: 1},
		"neither may be 0":       {Size: 8, Blocking: 1},
		"no multiple":            {Size: 8, Blocking: 1, Element: 3},
		"beyond the end":         {Address: 1<<64 - 4, Size: 8, Blocking: 1, Element: 1},
		"can be addressed":       {Size: 8, Blocking: 1 << 62, Element: 8},
		"kind 9":                 {Size: 8, Blocking: 1, Element: 1, Kind: 9},
	} {
		_, err := w.task(1).Allocate(0, spec)
		assert.ErrorContains(t, err, text)
		assert.ErrorContains(t, err, "by task 1")
	}
	require.Empty(t, w.broken)
}

// TestUnequalArguments: a collective call with unequal arguments is refused to all,
// and the error says what is different and whose it is.
func TestUnequalArguments(t *testing.T) {
	w := newWorld(1, 40)
	tickets := map[Task]Ticket{}
	for task := range Task(40) {
		s := good()
		if task >= 17 {
			s.Size = 16
		}
		tickets[task] = w.task(task).AllocateAll(0, s)
		w.flush(task)
	}
	w.run()
	for task := range Task(40) {
		assert.EqualError(t, w.answers[task][tickets[task]].Err,
			"collective allocation by task 17: the tasks gave unequal arguments: its size is 16, but task 0's is 8")
	}
	require.Empty(t, w.broken)
}

// TestBadCollective: arguments that no object can have are refused to all, not only
// where they are seen first.
func TestBadCollective(t *testing.T) {
	w := newWorld(1, 3)
	tickets := map[Task]Ticket{}
	for task := range Task(3) {
		tickets[task] = w.task(task).AllocateAll(0, Spec{Size: 8, Element: 1})
		w.flush(task)
	}
	w.run()
	for task := range Task(3) {
		assert.ErrorContains(t, w.answers[task][tickets[task]].Err, "a blocking factor of 0")
	}
}

// TestDeadTask: what a dead task would have had to confirm is not waited for, and
// what is asked of it, or needs it, is refused.
func TestDeadTask(t *testing.T) {
	for seed := range int64(200) {
		w := newWorld(seed, 12)
		w.network.Loss, w.network.Jitter = 0.2, 10*time.Microsecond
		h, kept, lost, other := w.object(t, 0), w.object(t, 0), w.object(t, 5), w.object(t, 5)
		use := func(task Task, h Handle) {
			w.task(task).Use(w.network.Now, h)
			w.flush(task)
		}
		for task := Task(1); task < 12; task++ {
			use(task, h)
		}
		use(5, kept)
		use(7, lost)
		w.run()
		ticket := w.task(3).Free(w.network.Now, h)
		w.flush(3)
		for range int(seed % 17) {
			w.step()
		}
		use(7, other)
		waiting := []Ticket{w.task(7).Free(w.network.Now, lost), w.task(7).Free(w.network.Now, other),
			w.task(7).AllocateAll(w.network.Now, good())}
		w.flush(7)
		w.network.Dead[5] = true
		for task := range Task(12) {
			if task != 5 {
				w.task(task).Gone(w.network.Now, 5)
				w.flush(task)
			}
		}
		waiting = append(waiting, w.task(7).Free(w.network.Now, lost), w.task(7).AllocateAll(w.network.Now, good()))
		w.flush(7)
		for steps := 0; steps < 100000; steps++ {
			if !w.step() {
				break
			}
		}
		delete(w.tasks, 5)
		w.checkVisible()
		require.Empty(t, w.broken, "seed %d", seed)
		require.NoError(t, w.answers[3][ticket].Err, "seed %d", seed)
		for i, ticket := range waiting {
			require.ErrorContains(t, w.answers[7][ticket].Err, "dead", "seed %d, %d", seed, i)
		}
		require.ErrorContains(t, w.task(7).resolved[other].Err, "dead", "seed %d", seed)
		for _, owner := range w.task(0).units {
			require.Equal(t, kept, owner, "seed %d: the memory is not released", seed)
		}
		require.Empty(t, w.task(0).Users(kept), "seed %d", seed)
		for task, p := range w.tasks {
			require.True(t, p.Idle(), "seed %d, task %d", seed, task)
		}
		_, err := w.task(7).Lookup(lost)
		var refused *Error
		require.True(t, errors.As(err, &refused) && refused.Reason == NotKnown)
		use(7, lost)
		assert.ErrorContains(t, w.task(7).resolved[lost].Err, "dead")
	}
}

// FuzzReceive: no message makes a replica panic, or answers to one out of proportion.
func FuzzReceive(f *testing.F) {
	f.Add(appendNumber(appendHandle([]byte{kindWant}, newHandle(0, 0, 1)), 1))
	f.Add(appendEntry(append(appendNumber(appendHandle([]byte{kindState}, newHandle(1, 0, 1)), 1), 0), Entry{Spec: good(), Version: 1}))
	f.Add(forget(newHandle(0, 0, 1), 3))
	f.Add(appendHandle(append(appendNumber(appendNumber([]byte{kindRequest}, 1), 1), opFree), newHandle(0, 0, 1)))
	f.Add(appendSpec(append(appendNumber(appendNumber([]byte{kindRequest}, 1), 1), opAllocate), good()))
	f.Add(appendHandle(append(appendNumber(appendNumber([]byte{kindAnswer}, 1), 1), 0), newHandle(1, 0, 1)))
	f.Fuzz(func(t *testing.T, message []byte) {
		w := newWorld(1, 5)
		r := w.task(0).Replica
		if _, err := r.Allocate(0, good()); err != nil {
			t.Fatal(err)
		}
		r.Use(0, newHandle(1, 0, 1))
		r.Free(0, newHandle(1, 1, 1))
		r.Take()
		if err := r.Receive(0, 1, message); err != nil {
			return
		}
		if e := r.Take(); len(e.Messages) > 8+len(message) {
			t.Fatalf("%d messages in answer to one of %d bytes", len(e.Messages), len(message))
		}
		r.Tick(time.Second)
	})
}

// hand is two replicas whose messages are carried by hand: task 0, which has an
// object, and task 1, which uses it.
type hand struct {
	*testing.T
	home, user *Replica
	object     Handle
}

func newHand(t *testing.T) hand {
	w := newWorld(1, 2)
	h := hand{t, w.task(0).Replica, w.task(1).Replica, 0}
	var err error
	h.object, err = h.home.Allocate(0, good())
	require.NoError(t, err)
	h.home.Take()
	return h
}

// take returns a replica's messages, after its readers have let go of everything.
func (h hand) take(r *Replica) [][]byte {
	var messages [][]byte
	for {
		e := r.Take()
		for _, m := range e.Messages {
			messages = append(messages, m.Data)
		}
		for _, l := range e.LetGo {
			r.LetGone(0, l)
		}
		if len(e.LetGo) == 0 {
			return messages
		}
	}
}

func (h hand) give(to *Replica, from Task, messages ...[]byte) [][]byte {
	for _, m := range messages {
		require.NoError(h, to.Receive(0, from, m))
	}
	return h.take(to)
}

// learn has the user use the object, and returns the home's answer.
func (h hand) learn() [][]byte {
	h.user.Use(0, h.object)
	answer := h.give(h.home, 1, h.take(h.user)...)
	h.give(h.user, 0, answer...)
	_, err := h.user.Lookup(h.object)
	require.NoError(h, err)
	return answer
}

func (h hand) forget() {
	h.user.Forget(0, h.object)
	h.give(h.home, 1, h.take(h.user)...)
	require.Empty(h, h.home.Users(h.object))
}

// TestLateAnswer: the answer to a question before a Forget is not taken for that to
// the question after it: the object may have moved in between.
func TestLateAnswer(t *testing.T) {
	h := newHand(t)
	late := h.learn()
	h.forget()
	require.NoError(t, h.home.Move(0, h.object))
	h.take(h.home)
	require.NoError(t, h.home.Settle(0, h.object, 500, 8, 8))
	h.take(h.home)
	h.user.Use(0, h.object)
	question := h.take(h.user)
	h.give(h.user, 0, late...)
	_, err := h.user.Lookup(h.object)
	require.ErrorContains(t, err, "not in this task's replica")
	h.give(h.user, 0, h.give(h.home, 1, question...)...)
	e, err := h.user.Lookup(h.object)
	require.NoError(t, err)
	require.Equal(t, uint64(500), e.Address)
}

// TestLateNews: news from before an answer do not undo it.
func TestLateNews(t *testing.T) {
	h := newHand(t)
	h.learn()
	require.NoError(t, h.home.Resize(0, h.object, 9, 9))
	late := h.take(h.home)
	require.Len(t, late, 1)
	require.NoError(t, h.home.Resize(0, h.object, 10, 10))
	h.forget()
	h.learn()
	h.give(h.user, 0, late...)
	e, err := h.user.Lookup(h.object)
	require.NoError(t, err)
	require.Equal(t, uint64(10), e.Size)
}

// TestFreedByAUser: who has freed an object finds it no more, though the news of that come later, and confirms them when its
// own readers have let go.
func TestFreedByAUser(t *testing.T) {
	h := newHand(t)
	h.learn()
	h.user.Free(0, h.object)
	for _, m := range h.take(h.user) {
		require.NoError(t, h.home.Receive(0, 1, m))
	}
	var answer, news []byte
	for _, m := range h.home.Take().Messages {
		if m.Data[0] == kindAnswer {
			answer = m.Data
		} else {
			news = m.Data
		}
	}
	require.NoError(t, h.user.Receive(0, 0, answer))
	_, err := h.user.Lookup(h.object)
	require.Error(t, err)
	e := h.user.Take()
	require.Len(t, e.LetGo, 1)
	require.Len(t, e.Answers, 1)
	require.NoError(t, h.user.Receive(0, 0, news))
	for _, m := range h.user.Take().Messages {
		require.False(t, relay.IsMessage(m.Data), "confirmed while somebody reads")
	}
	h.user.LetGone(0, e.LetGo[0])
	for _, m := range h.user.Take().Messages {
		require.NoError(t, h.home.Receive(0, 1, m.Data))
	}
	h.home.LetGone(0, LetGo{h.object, 2})
	require.Len(t, h.home.Take().Released, 1)
}

// TestStrayQuestion: a question that comes again after a Forget makes no user of the
// one who asked: the answer is sent back.
func TestStrayQuestion(t *testing.T) {
	h := newHand(t)
	h.user.Use(0, h.object)
	question := h.take(h.user)
	h.give(h.user, 0, h.give(h.home, 1, question...)...)
	h.forget()
	stray := h.give(h.home, 1, question...)
	require.Len(t, h.home.Users(h.object), 1)
	h.give(h.home, 1, h.give(h.user, 0, stray...)...)
	require.Empty(t, h.home.Users(h.object))
	require.Nil(t, h.home.slotOf(h.object).users, "the home keeps memory for nobody")
}

// TestSilence: a task that does not answer is reported, for questions and requests as
// for broadcasts.
func TestSilence(t *testing.T) {
	w := newWorld(1, 3)
	w.config.Patience = 3
	h := w.object(t, 0)
	w.task(1).Use(0, h)
	w.flush(1)
	w.run()
	w.network.Dead[1], w.network.Dead[2] = true, true
	silent := func(r *Replica) []Task {
		var all []Task
		for now := time.Duration(0); now < time.Second; now += time.Millisecond {
			r.Tick(now)
			e := r.Take()
			for _, l := range e.LetGo {
				r.LetGone(now, l)
			}
			all = append(all, e.Silent...)
		}
		return all
	}
	home := w.task(0).Replica
	require.NoError(t, home.Resize(0, h, 9, 9))
	assert.Equal(t, []Task{1}, silent(home), "a user that does not confirm")
	home.Use(0, newHandle(2, 0, 1))
	assert.Equal(t, []Task{2}, silent(home), "a home that does not answer")
	home.Free(0, newHandle(1, 0, 1))
	assert.Equal(t, []Task{1}, silent(home), "a home that does not do what it is asked")
}

// Questions and their ends that come late change nothing: who has asked since is told on.
func TestLateQuestionsAndForgetting(t *testing.T) {
	var u users
	u.add(7, 3)
	u.add(5, 1)
	u.remove(7, 2) // it has asked again since
	u.add(7, 1)
	u.remove(7, 2)
	assert.Equal(t, []Task{5, 7}, u.tasks)
	u.remove(7, 3)
	u.remove(9, 9)
	assert.Equal(t, []Task{5}, u.tasks)
	assert.Equal(t, []uint64{1}, u.nonces)
}

// An object is settled only when all have let go of where it was.
func TestSettlingTooEarly(t *testing.T) {
	w := newWorld(1, 3)
	h := w.object(t, 0)
	w.task(1).Use(w.network.Now, h)
	w.flush(1)
	w.run()
	home := w.task(0).Replica
	require.NoError(t, home.Move(w.network.Now, h))
	assert.ErrorContains(t, home.Settle(w.network.Now, h, 500, 8, 0), "settling of task 0's object 0.1 by task 0: an earlier change of it is not finished")
	assert.ErrorContains(t, home.Move(w.network.Now, h), "moving of task 0's object 0.1 by task 0: it is being moved")
}
