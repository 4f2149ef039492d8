package svd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/collectives"
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
	w.frees[call{by, ticket}] = h
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
	assert.EqualError(t, w.free(3, h), "free of thread 2's object 0.1 by task 3: it was freed before")
	assert.EqualError(t, w.free(2, h), "free of thread 2's object 0.1 by task 2: it was freed before")
	_, err := w.task(2).Lookup(h)
	assert.EqualError(t, err, "use of thread 2's object 0.1 by task 2: it was freed before")
	w.task(0).Use(w.network.Now, h)
	w.flush(0)
	w.run()
	assert.EqualError(t, w.task(0).resolved[h].Err, "use of thread 2's object 0.1 by task 0: it was freed before")

	again := w.object(t, 2)
	require.Equal(t, h.Index(), again.Index(), "the index is used again")
	assert.EqualError(t, w.free(1, h), "free of thread 2's object 0.1 by task 1: it was freed before")
	_, err = w.task(2).Lookup(again)
	assert.NoError(t, err)

	for _, never := range []Handle{newHandle(2, 9, 1), newHandle(2, 0, 3)} { // an index that was never used, and a generation
		assert.EqualError(t, w.free(1, never), fmt.Sprintf("free of %s by task 1: there never was such an object", never))
	}
	assert.EqualError(t, w.free(1, newHandle(77, 0, 1)), "free of thread 77's object 0.1 by task 1: there never was such an object")
	assert.EqualError(t, w.free(1, 0), "free by task 1: there never was such an object")
	assert.EqualError(t, w.task(1).Resize(0, again, 3, 3), "resizing of thread 2's object 0.2 by task 1: only its home may do that")
	assert.EqualError(t, w.task(1).Move(0, again), "moving of thread 2's object 0.2 by task 1: only its home may do that")
	assert.EqualError(t, w.task(2).Settle(0, again, 1, 1, 1), "settling of thread 2's object 0.2 by task 2: it is not being moved")

	assert.ErrorContains(t, w.task(2).Resize(0, again, 0, 0), "resizing of thread 2's object 0.2 by task 2: no object can be so: 0 bytes")

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
	w := newWorld(1, 200)
	w.config.Limit = 160 // in which there is room for two tasks' arguments, not for many
	tickets := map[Task]Ticket{}
	for task := range Task(200) {
		s := good()
		s.Address = 1 << 60
		if task >= 17 && task%2 == 1 {
			s.Size = 16
		}
		tickets[task] = w.task(task).AllocateAll(0, s)
		w.flush(task)
	}
	w.run()
	for task := range Task(200) {
		assert.EqualError(t, w.answers[task][tickets[task]].Err,
			"collective allocation by task 17: the tasks gave unequal arguments: its size is 16, but task 0's is 8")
	}
	require.Empty(t, w.broken)
}

// TestBadCollective: arguments that no object can have are refused to all, not only
// where they are seen first; and so is an object for which task 0 has no memory.
func TestBadCollective(t *testing.T) {
	nowhere := good()
	nowhere.Address = NoAddress
	for _, c := range []struct {
		spec       Spec
		all, alone string
	}{{Spec{Size: 8, Element: 1}, "a blocking factor of 0", "a blocking factor of 0"}, {nowhere, "there is no memory for it", "go beyond the end"}} {
		w := newWorld(1, 3)
		tickets := map[Task]Ticket{}
		for task := range Task(3) {
			tickets[task] = w.task(task).AllocateAll(0, c.spec)
			w.flush(task)
		}
		w.run()
		for task := range Task(3) {
			assert.ErrorContains(t, w.answers[task][tickets[task]].Err, c.all)
		}
		ticket := w.task(1).AllocateGlobal(w.network.Now, c.spec)
		w.flush(1)
		w.run()
		assert.ErrorContains(t, w.answers[1][ticket].Err, "allocation for everyone by task 1: no object can be so: ")
		assert.ErrorContains(t, w.answers[1][ticket].Err, c.alone)
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
		w.frees[call{3, ticket}] = h
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

// TestFreedByAUser: who frees an object is answered when nobody uses it any more, and so is who is refused because of that.
// Earlier news that come meanwhile do not bring it back.
func TestFreedByAUser(t *testing.T) {
	h := newHand(t)
	h.learn()
	require.NoError(t, h.home.Resize(0, h.object, 9, 9))
	late := h.take(h.home)
	require.NoError(t, h.home.Resize(0, h.object, 10, 10))
	first := h.user.Free(0, h.object)
	request := h.take(h.user)
	require.Len(t, request, 1)
	require.Empty(t, h.give(h.home, 1, request...), "there is other news to be heard before")
	second := h.home.Free(0, h.object)
	require.Empty(t, h.home.Take().Answers)

	busy := h.give(h.home, 1, request...)
	require.Equal(t, [][]byte{{kindBusy, 1}}, busy)
	h.give(h.user, 0, busy...)
	_, err := h.user.Lookup(h.object)
	require.NoError(t, err, "it has not been told")

	freed := h.give(h.home, 1, h.give(h.user, 0, late...)...)
	for _, m := range freed {
		require.NoError(t, h.user.Receive(0, 0, m))
	}
	_, err = h.user.Lookup(h.object)
	require.Error(t, err)
	e := h.user.Take()
	require.Len(t, e.LetGo, 1)
	for _, m := range e.Messages {
		require.NoError(t, h.home.Receive(0, 1, m.Data))
	}
	require.Empty(t, h.home.Take().Answers, "somebody reads")

	h.user.LetGone(0, e.LetGo[0])
	for _, m := range h.user.Take().Messages {
		require.NoError(t, h.home.Receive(0, 1, m.Data))
	}
	e = h.home.Take()
	require.Len(t, e.Released, 1)
	require.Len(t, e.Answers, 1)
	require.Equal(t, second, e.Answers[0].Ticket)
	require.ErrorContains(t, e.Answers[0].Err, "freed before")
	for _, m := range e.Messages {
		require.NoError(t, h.user.Receive(0, 0, m.Data))
	}
	require.Equal(t, []Answer{{first, h.object, nil}}, h.user.Take().Answers)
}

// A home that is still telling others of a free is not silent, however often it is asked.
func TestABusyHomeIsNotSilent(t *testing.T) {
	w := newWorld(1, 3)
	w.config.Patience = 3
	h := w.object(t, 0)
	w.task(1).Use(0, h)
	w.flush(1)
	w.run()
	w.network.Dead[1] = true
	home, freer := w.task(0).Replica, w.task(2).Replica
	ticket := freer.Free(0, h)
	var silent []Task
	var answers []Answer
	carry := func(now time.Duration) {
		home.Tick(now)
		freer.Tick(now)
		for _, between := range [][2]*Replica{{freer, home}, {home, freer}, {freer, home}} {
			e := between[0].Take()
			answers = append(answers, e.Answers...)
			silent = append(silent, e.Silent...)
			for _, l := range e.LetGo {
				between[0].LetGone(now, l)
			}
			for _, m := range e.Messages {
				if m.To != 1 {
					require.NoError(t, between[1].Receive(now, between[0].config.Self, m.Data))
				}
			}
		}
	}
	now := time.Duration(0)
	for ; now < time.Second; now += time.Millisecond {
		carry(now)
	}
	require.Equal(t, []Task{1}, silent)
	require.Empty(t, answers)
	home.Gone(now, 1)
	carry(now)
	carry(now)
	require.Equal(t, []Answer{{ticket, h, nil}}, answers)
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

// Who has forgotten an object on which its own readers still look counts among its users until they have let go, whatever
// comes meanwhile.
func TestForgettingWaits(t *testing.T) {
	h := newHand(t)
	late := h.learn()
	h.user.Forget(0, h.object)
	e := h.user.Take()
	require.Len(t, e.LetGo, 1)
	require.Empty(t, e.Messages)
	require.NoError(t, h.user.Receive(0, 0, late[0]))
	require.Empty(t, h.user.Take().Messages, "after an answer that comes again")
	h.home.Free(0, h.object)
	for _, m := range h.take(h.home) {
		require.NoError(t, h.user.Receive(0, 0, m))
	}
	require.Empty(t, h.user.Take().Messages, "after the news that the object is freed")
	require.Empty(t, h.home.Take().Released)
	h.user.LetGone(0, e.LetGo[0])
	for _, m := range h.take(h.user) {
		require.NoError(t, h.home.Receive(0, 1, m))
	}
	require.Len(t, h.home.Take().Released, 1)
}

// A home that has not heard that a user has forgotten an object hears it when it tells of a change.
func TestForgettingIsLost(t *testing.T) {
	h := newHand(t)
	h.learn()
	h.user.Forget(0, h.object)
	h.take(h.user)
	require.Len(t, h.home.Users(h.object), 1)
	require.NoError(t, h.home.Resize(0, h.object, 9, 9))
	h.exchange(h.take(h.home)...)
	require.Nil(t, h.home.slotOf(h.object).users, "the home keeps memory for nobody")
	require.True(t, h.home.Idle())
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

// exchange carries messages to and fro until there are none, beginning with those of the home.
func (h hand) exchange(messages ...[]byte) {
	for len(messages) > 0 {
		messages = h.give(h.home, 1, h.give(h.user, 0, messages...)...)
	}
}

// A handle of an object in All that comes before the news of it is not taken for that of the object which had its index
// before.
func TestHandlesBeforeTheirNews(t *testing.T) {
	h := newHand(t)
	first, second := newHandle(All, 0, 1), newHandle(All, 0, 2)
	h.home.AllocateGlobal(0, good())
	h.exchange(h.take(h.home)...)
	h.home.Free(0, first)
	h.exchange(h.take(h.home)...)
	moved := good()
	moved.Address = 300
	h.home.AllocateGlobal(0, moved)
	news := h.take(h.home)
	_, err := h.user.Lookup(second)
	require.ErrorContains(t, err, "not in this task's replica")
	h.user.Use(0, second)
	h.exchange(h.give(h.home, 1, h.take(h.user)...)...)
	for range 2 {
		e, err := h.user.Lookup(second)
		require.NoError(t, err)
		require.Equal(t, uint64(300), e.Address)
		h.exchange(news...)
	}
	_, err = h.user.Lookup(first)
	require.ErrorContains(t, err, "freed before")
	require.True(t, h.home.Idle() && h.user.Idle())
}

// When the home of everyone's objects is dead none of them is known, also by news that come late, but what was freed before
// still is so.
func TestTheHomeOfEveryonesObjectsIsDead(t *testing.T) {
	h := newHand(t)
	first, second, third := newHandle(All, 0, 1), newHandle(All, 0, 2), newHandle(All, 1, 1)
	h.home.AllocateGlobal(0, good())
	h.exchange(h.take(h.home)...)
	h.home.Free(0, first)
	h.exchange(h.take(h.home)...)
	h.home.AllocateGlobal(0, good())
	h.home.AllocateGlobal(0, good())
	h.exchange(h.take(h.home)...)
	require.NoError(t, h.home.Resize(0, second, 9, 9))
	late := h.take(h.home)
	h.user.Gone(0, 0)
	h.give(h.user, 0, late...)
	for _, object := range []Handle{second, third} {
		_, err := h.user.Lookup(object)
		require.ErrorContains(t, err, "not in this task's replica")
		h.user.Use(0, object)
		resolved := h.user.Take().Resolved
		require.Len(t, resolved, 1)
		require.ErrorContains(t, resolved[0].Err, "a task is dead that it needs")
	}
	_, err := h.user.Lookup(first)
	require.ErrorContains(t, err, "freed before")
}

// However much a task asks for at once, no message is longer than the network takes.
func TestManyRequests(t *testing.T) {
	w := newWorld(1, 2)
	w.config.Limit = 160
	h := hand{t, w.task(0).Replica, w.task(1).Replica, 0}
	open := map[Ticket]bool{}
	for range 50 {
		object, err := h.home.Allocate(0, good())
		require.NoError(t, err)
		open[h.user.Free(0, object)] = true
		open[h.user.AllocateGlobal(0, good())] = true
	}
	for len(open) > 0 {
		e := h.user.Take()
		for _, a := range e.Answers {
			require.NoError(t, a.Err)
			delete(open, a.Ticket)
		}
		var back [][]byte
		for _, m := range e.Messages {
			require.LessOrEqual(t, len(m.Data), w.config.Limit)
			back = append(back, h.give(h.home, 1, m.Data)...)
		}
		for _, m := range back {
			require.LessOrEqual(t, len(m), w.config.Limit)
			require.NoError(t, h.user.Receive(0, 0, m))
		}
		require.True(t, len(back) > 0 || len(open) == 0)
	}
}

// TestForeignMessages: what is not the receiver's affair, or not the sender's, is refused, and changes nothing.
func TestForeignMessages(t *testing.T) {
	w := newWorld(1, 3)
	r, theirs := w.task(1).Replica, newHandle(2, 0, 1)
	spoilt := good()
	spoilt.Size = 0
	state := func(s Spec) []byte {
		return appendEntry(append(appendNumber(appendHandle([]byte{kindState}, theirs), 1), 0), Entry{Spec: s, Version: 1})
	}
	request := func(op byte) []byte { return append(appendNumber(appendNumber([]byte{kindRequest}, 1), 1), op) }
	r.Use(0, theirs)
	r.Free(0, newHandle(0, 0, 1))
	r.Take()
	for what, message := range map[string][]byte{
		"a question for another home":     appendNumber(appendHandle([]byte{kindWant}, theirs), 1),
		"an end of interest":              forget(theirs, 1),
		"an order for another home":       appendHandle(request(opFree), theirs),
		"an allocation for everyone":      appendSpec(request(opAllocate), good()),
		"a state that is not of its home": state(good()),
		"an answer to more than is asked": append(appendNumber(appendNumber([]byte{kindAnswer}, 1), 2), 0, 0, 0, 0),
		"an answer to less":               appendNumber(appendNumber([]byte{kindAnswer}, 1), 0),
		"a handle that can't be":          appendNumber(appendHandle([]byte{kindWant}, newHandle(1, 0, 0)), 1),
		"a task that is not of the job":   appendNumber(appendHandle([]byte{kindForget}, newHandle(3, 0, 1)), 1),
		"a message that is cut off":       {kindWant},
	} {
		require.Error(t, r.Receive(0, 0, message), what)
		require.Equal(t, Effects{}, r.Take(), what)
	}
	require.Error(t, r.Receive(0, 2, state(spoilt)), "a state that no object has")
	require.NoError(t, r.Receive(0, 2, state(good())))
	require.Len(t, r.Take().Changes, 1)

	stranger := w.task(0).Replica
	news := appendEntry(appendNumber(appendHandle([]byte{newsUpdate}, theirs), 0), Entry{Spec: good(), Version: 2})
	stranger.broadcast(collectives.Schedule{Outer: collectives.Binomial}, []Task{1}, news)
	stranger.pump()
	for _, m := range stranger.Take().Messages {
		require.NoError(t, r.Receive(0, 0, m.Data))
	}
	require.Empty(t, r.Take().Changes, "news that are not of the object's home")

	// Only the home of everyone's objects says that memory is free, or is to be copied.
	everyones := newHandle(All, 0, 1)
	for _, news := range [][]byte{
		append(appendNumber(appendNumber(appendHandle([]byte{newsRelease}, everyones), 100), 8), 0),
		appendNumber(appendNumber(appendNumber(appendHandle([]byte{newsCopy}, everyones), 100), 200), 8),
	} {
		for _, from := range []Task{2, 0} {
			sender := w.task(from).Replica
			sender.broadcast(collectives.Schedule{Outer: collectives.Binomial}, []Task{1}, news)
			sender.pump()
			heard := 0
			for _, m := range sender.Take().Messages {
				require.NoError(t, r.Receive(0, from, m.Data))
				e := r.Take()
				heard += len(e.Released) + len(e.Copies)
			}
			require.Equal(t, from == 0, heard == 1, "news %d from task %d", news[0], from)
		}
	}
}

// A replica has something to do when its first repetition is due, of a broadcast or of a question.
func TestDeadlines(t *testing.T) {
	const early, late, retry = time.Microsecond, 5 * time.Microsecond, 10 * time.Microsecond
	for _, begin := range [][2]time.Duration{{early, late}, {late, early}} {
		h := newHand(t)
		h.learn()
		h.home.Use(begin[0], newHandle(1, 7, 1))
		require.NoError(t, h.home.Resize(begin[1], h.object, 9, 9))
		at, waits := h.home.Deadline()
		require.True(t, waits)
		require.Equal(t, early+retry, at)
	}
}

// An object is not settled where none can be.
func TestSettlingNowhere(t *testing.T) {
	h := newHand(t)
	require.NoError(t, h.home.Move(0, h.object))
	h.take(h.home)
	assert.ErrorContains(t, h.home.Settle(0, h.object, 500, 0, 0), "settling of thread 0's object 0.1 by task 0: no object can be so: 0 bytes")
	require.NoError(t, h.home.Settle(0, h.object, 500, 16, 16))
	e, err := h.home.Lookup(h.object)
	require.NoError(t, err)
	require.Equal(t, Spec{Address: 500, Size: 16, Blocking: 1, Elements: 16, Element: 1}, e.Spec)
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
	assert.ErrorContains(t, home.Settle(w.network.Now, h, 500, 8, 0), "settling of thread 0's object 0.1 by task 0: an earlier change of it is not finished")
	assert.ErrorContains(t, home.Move(w.network.Now, h), "moving of thread 0's object 0.1 by task 0: it is being moved")
}

// Numbers that are just beyond what can be make a message one that is none.
func TestNumbersThatCanNotBe(t *testing.T) {
	const tasks = 3
	handle := func(h Handle) bool { r := read(appendHandle(nil, h)); r.handle(tasks); return r.Bad }
	assert.False(t, handle(newHandle(tasks-1, 0, 1)))
	assert.False(t, handle(newHandle(All, maxIndex, maxGeneration)))
	assert.True(t, handle(newHandle(tasks, 0, 1)))
	assert.True(t, handle(newHandle(0, 0, 0)))
	entry := func(e Entry) bool { r := read(appendEntry(nil, e)); r.entry(); return r.Bad }
	assert.False(t, entry(Entry{Spec: good(), State: states - 1, Version: 1}))
	assert.True(t, entry(Entry{Spec: good(), State: states, Version: 1}))
	wide := binary.AppendUvarint(nil, good().Address)
	for _, n := range []uint64{good().Size, good().Blocking, good().Elements, 1<<32 | uint64(good().Element)} {
		wide = binary.AppendUvarint(wide, n)
	}
	r := read(append(wide, byte(good().Kind), byte(Live), 1))
	r.entry()
	assert.True(t, r.Bad, "an element of more than 32 bits of bytes")
	reason := func(why Reason) bool { r := read([]byte{byte(why)}); r.reason(); return r.Bad }
	assert.False(t, reason(reasons-1))
	assert.True(t, reason(reasons))
}
