package epoch

import (
	"math"
	"testing"
	"time"

	"github.com/pkg/errors"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"evenkeel/pgas/gsm/credential"
	"evenkeel/pgas/gsm/wire"
	"evenkeel/runtime/fabric"
	"evenkeel/runtime/fabric/chaos"
	"evenkeel/runtime/fabric/sim"
)

const silence = 50 * time.Millisecond

func quiet(c *Config) { c.Silence = silence }

// runUntil has everything happen that happens until a time.
func (w *world) runUntil(until time.Duration) {
	for {
		self, any := w.network.Step(until)
		if !any {
			return
		}
		if k := w.tasks[self]; k != nil {
			k.turn()
		}
	}
}

// A task is killed at any point of its and its partners' work: they get an error for what they have under way with it
// within the configured time, whatever has nothing to do with it goes on, and no memory changes but what was commanded.
func TestADeadTaskFailsItsPartnersOperationsAndNoOthers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, plan{
			Seed: rapid.Uint64().Draw(t, "seed"), Tasks: 4, Operations: 2000, UnderWay: 8, Longest: 1000, MTU: 256,
			Faults: chaos.Faults{Loss: 0.05, Repeat: 0.05, Delay: 5 * time.Microsecond, Jitter: 20 * time.Microsecond},
			Config: quiet,
		})
		for _, k := range w.tasks {
			k.work()
		}
		dies := rapid.IntRange(0, 5000).Draw(t, "events before the death")
		for range dies {
			if w.ended < w.plan.Operations {
				w.step()
			}
		}
		dead := w.tasks[3]
		_ = dead.end.Close()
		written := dead.written
		hanging := 0
		for _, k := range w.tasks[:3] {
			for _, u := range k.under {
				if u.target == dead {
					hanging++
				}
			}
		}
		w.started = w.plan.Operations // no new ones
		died := w.network.Now()
		w.runUntil(died + silence + silence/2)
		assert.LessOrEqual(t, w.failed[wire.Silent], hanging)
		assert.Equal(t, w.failed[wire.Silent], w.failedOn[3], "no operation on another task has failed")
		for _, k := range w.tasks[:3] {
			assert.Empty(t, k.under, "nothing hangs, all have had their notification in time")
		}
		assert.Equal(t, written, dead.written)
	})
}

// A network that is cut fails operations, and one that heals in time does not. Afterwards the pair works again, in a new
// epoch.
func TestAPartitionEndsInErrorsOrHeals(t *testing.T) {
	for _, cut := range []time.Duration{silence / 2, 3 * silence} {
		w := newWorld(t, plan{
			Seed: 5, Tasks: 2, Operations: 400, UnderWay: 6, Longest: 1000, MTU: 256,
			Faults: chaos.Faults{Delay: 5 * time.Microsecond, Jitter: 5 * time.Microsecond, Late: 0.1, LateBy: 4 * silence}, Config: quiet,
			Only: []wire.Op{wire.Put, wire.Get, wire.FetchAndAdd, wire.Message},
		})
		for _, k := range w.tasks {
			k.work()
		}
		for w.ended < 100 {
			w.step()
		}
		w.started += 10_000 // none while it is cut
		w.network.Cut(0, 1)
		w.runUntil(w.network.Now() + cut)
		w.started -= 10_000
		w.network.Heal(0, 1)
		if cut < silence {
			assert.Empty(t, w.failed)
			w.run()
			assert.Empty(t, w.failed)
			continue
		}
		assert.Len(t, w.failed, 1)
		failed := w.failed[wire.Silent]
		assert.Positive(t, failed)
		// What failed may have been done or not: look at the memories anew.
		for _, k := range w.tasks {
			for i := range k.place {
				k.place[i] = place{want: k.at(i)}
			}
			for i := range k.added {
				k.added[i].count = getWord(k.memory, k.offset(ownWords+i))
			}
		}
		for _, k := range w.tasks {
			k.work()
		}
		for w.ended < w.plan.Operations {
			w.step()
		}
		w.settle()
		assert.Equal(t, failed, w.failed[wire.Silent], "no more of them")
		assert.Greater(t, w.tasks[0].endpoint.pairs[1].initiator.epoch, uint64(1))
	}
}

func getWord(memory []byte, offset uint64) (word uint64) {
	for i := range uint64(8) {
		word |= uint64(memory[offset+i]) << (8 * i)
	}
	return word
}

// A task that starts again knows nothing of its epochs: whatever it sends, and whatever was sent to its earlier life,
// changes no memory.
func TestATaskThatStartsAgainDoesNoHarm(t *testing.T) {
	w := newWorld(t, plan{
		Seed: 6, Tasks: 2, Operations: 1000, UnderWay: 6, Longest: 1000, MTU: 256, Config: quiet,
		Faults: chaos.Faults{Delay: 5 * time.Microsecond, Late: 0.3, LateBy: time.Millisecond}, Only: []wire.Op{wire.Put, wire.FetchAndAdd},
	})
	for _, k := range w.tasks {
		k.work()
	}
	for w.ended < 300 {
		w.step()
	}
	partner := w.tasks[0]
	w.started = w.plan.Operations
	again := w.newTask(1, 99)
	w.tasks[1] = again
	for until := w.network.Now() + 2*time.Millisecond; ; { // what the old life had sent
		self, any := w.network.Step(until)
		if !any {
			break
		}
		w.tasks[self].turnQuietly()
	}
	written := partner.written
	for n := range 50 {
		require.NoError(t, again.endpoint.Submit(w.network.Now(), Command{
			Op: wire.Put, Peer: 0, Window: opened, Token: uint64(1 << 40), Data: make([]byte, 10+n),
		}))
		require.NoError(t, again.endpoint.Submit(w.network.Now(), Command{Op: wire.Add, Peer: 0, Window: opened, Width: 8, Operand: 1}))
	}
	again.send()
	for until := w.network.Now() + 2*silence; ; {
		self, any := w.network.Step(until)
		if !any {
			break
		}
		if self == 1 {
			again.endpoint.Notifications(nil)
		}
		w.tasks[self].turnQuietly()
	}
	assert.Equal(t, written, partner.written, "the partner executes nothing for the new life")
	assert.Zero(t, again.written, "and the new life nothing that was meant for the old")
	assert.Positive(t, partner.endpoint.Counters().Dropped[wire.EarlierLife])
	assert.Positive(t, again.endpoint.Counters().Dropped[wire.EarlierLife])
}

// turnQuietly is a turn of a task whose notifications the world does not know.
func (k *task) turnQuietly() {
	started := k.world.started
	k.notified = nil
	now := k.world.network.Now()
	n, err := k.end.Receive(k.world.packets)
	require.NoError(k.world.t, err)
	for _, p := range k.world.packets[:n] {
		if h, body, reason := k.credential.Open(p.Data); reason == wire.OK {
			k.endpoint.Receive(now, &h, body)
		}
	}
	k.endpoint.Advance(now)
	k.endpoint.Notifications(nil)
	k.send()
	k.world.started = started
}

// A third party that hears every packet sends them again, cut off or changed, at any time and to anybody. Memories are
// what they would be without it.
func TestForgedReplayedAndTruncatedPacketsNeverReachMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, plan{
			Seed: rapid.Uint64().Draw(t, "seed"), Tasks: 3, Operations: 200, UnderWay: 4, Longest: 600, MTU: 256,
			Faults: chaos.Faults{Delay: 5 * time.Microsecond, Jitter: 5 * time.Microsecond},
			Config: func(c *Config) { c.Repairs, c.Operations, c.FirstTimeout = 1, 8, 200*time.Microsecond },
		})
		outsider, err := credential.New(7, 0, 1, credential.Secret{66}) // knows all but the secret
		require.NoError(t, err)
		var heard [][]byte
		mallory := w.network.Join(1000)
		for _, k := range w.tasks {
			k.work()
		}
		for w.ended < w.plan.Operations {
			self, any := w.network.Step(w.network.Now() + time.Hour)
			require.True(t, any)
			for _, p := range w.tasks[self].waiting() {
				if len(p) > 0 {
					heard = append(heard, append([]byte(nil), p...))
				}
			}
			w.tasks[self].turn()
			if len(heard) == 0 || w.random.IntN(3) != 0 {
				continue
			}
			p := append([]byte(nil), heard[w.random.IntN(len(heard))]...)
			switch w.random.IntN(4) {
			case 0: // as it was
			case 1:
				p[w.random.IntN(len(p))] ^= 1 << w.random.IntN(8)
			case 2:
				p = p[:w.random.IntN(len(p))]
			case 3:
				p = append(p, make([]byte, wire.HeaderLength+wire.TagLength)...)
				p[2], p[3] = 0, 0 // the job's key
				p, err = outsider.Seal(p[:len(p)-wire.TagLength])
				require.NoError(t, err)
				p = p[:min(len(p), 256)]
			}
			_, err = mallory.Send([]fabric.Packet{{Peer: fabric.Task(w.random.IntN(3)), Data: p}})
			require.NoError(t, err)
		}
		w.settle()
		assert.Empty(t, w.failed)
	})
}

// waiting is what has arrived at a task and was not looked at.
func (k *task) waiting() (packets [][]byte) {
	for _, p := range k.end.Waiting() {
		packets = append(packets, p.Data)
	}
	return packets
}

// two is two tasks over a perfect network.
func two(t *testing.T, config func(c *Config)) *world {
	return newWorld(t, plan{Seed: 1, Tasks: 2, UnderWay: 0, Longest: 1000, MTU: 256, Faults: chaos.Faults{Delay: time.Microsecond}, Config: config})
}

// does submits a command of task 0 on task 1, and returns its notification.
func (w *world) does(c Command) Notification {
	k := w.tasks[0]
	c.Peer = 1
	require.NoError(w.t, k.endpoint.Submit(w.network.Now(), c))
	k.send()
	for {
		self, any := w.network.Step(w.network.Now() + time.Second)
		require.True(w.t, any, "no notification")
		w.tasks[self].turnKeeping()
		if n := k.endpoint.Notifications(nil); len(n) > 0 {
			require.Len(w.t, n, 1)
			return n[0]
		}
	}
}

// turnKeeping is a turn that leaves notifications to the caller.
func (k *task) turnKeeping() {
	now := k.world.network.Now()
	n, err := k.end.Receive(k.world.packets)
	require.NoError(k.world.t, err)
	for _, p := range k.world.packets[:n] {
		h, body, reason := k.credential.Open(p.Data)
		require.Equal(k.world.t, wire.OK, reason)
		k.endpoint.Receive(now, &h, body)
	}
	k.endpoint.Advance(now)
	k.send()
}

func TestTheTargetRefusesWhatItsMemoryDoesNotAllow(t *testing.T) {
	w := two(t, nil)
	size := uint64(len(w.tasks[1].memory))
	for what, c := range map[string]struct {
		Command
		want wire.Reason
	}{
		"a PUT into no window":               {Command{Op: wire.Put, Window: 99, Data: make([]byte, 10)}, wire.NoWindow},
		"a PUT of which a part is outside":   {Command{Op: wire.Put, Window: opened, Offset: size - 500, Data: make([]byte, 501)}, wire.Range},
		"a PUT for a handler there is not":   {Command{Op: wire.Put, Window: opened, Handler: 77, Data: make([]byte, 500)}, wire.NoHandler},
		"a GET from no window":               {Command{Op: wire.Get, Window: 99, Data: make([]byte, 900)}, wire.NoWindow},
		"a GET of which a part is outside":   {Command{Op: wire.Get, Window: opened, Offset: size - 500, Data: make([]byte, 501)}, wire.Range},
		"an atomic outside":                  {Command{Op: wire.Add, Window: opened, Offset: size, Width: 8}, wire.Range},
		"a message to a handler there's not": {Command{Op: wire.Message, Handler: 77}, wire.NoHandler},
	} {
		n := w.does(c.Command)
		assert.Equal(t, c.want, n.Reason, what)
	}
	assert.Zero(t, w.tasks[1].written, "nothing was written, not even a part")
	assert.Equal(t, wire.OK, w.does(Command{Op: wire.Put, Window: opened, Data: make([]byte, 700)}).Reason, "the pair goes on")
	assert.Equal(t, wire.OK, w.does(Command{Op: wire.Put, Window: opened}).Reason, "a PUT of nothing")
	assert.Equal(t, wire.OK, w.does(Command{Op: wire.Get, Window: opened}).Reason, "a GET of nothing")
	assert.Zero(t, w.tasks[0].endpoint.Counters().Raised)
}

// A window may want a narrower key than the job's: the memory is asked for each packet with the key that its tag had.
func TestAWindowMayWantANarrowerKey(t *testing.T) {
	const narrow = wire.Key(5)
	w := two(t, nil)
	for _, k := range w.tasks {
		require.NoError(t, k.credential.Add(narrow, credential.Secret{9}))
	}
	target := w.tasks[1]
	target.endpoint.Config.Memory = func(_ fabric.Task, key wire.Key) Memory {
		if key == narrow {
			return target
		}
		return nil
	}
	for _, op := range []wire.Op{wire.Put, wire.Get, wire.FetchAndAdd} {
		c := Command{Op: op, Window: opened, Width: 8, Operand: 1}
		if !op.Atomic() {
			c.Data = make([]byte, 400)
		}
		assert.Equal(t, wire.Credential, w.does(c).Reason, "%v under the job's key", op)
		assert.Zero(t, getWord(target.memory, 0))
		c.Key = narrow
		assert.Equal(t, wire.OK, w.does(c).Reason, "%v under the subset's", op)
	}
	assert.EqualValues(t, 1, getWord(target.memory, 0))
	c := target.endpoint.Counters()
	assert.Positive(t, c.Dropped[wire.Credential])
}

func TestTheInitiatorRefusesWhatIsNoCommand(t *testing.T) {
	w := two(t, func(c *Config) { c.Operations, c.Queue = 2, 3 })
	e := w.tasks[0].endpoint
	for what, c := range map[string]struct {
		Command
		want wire.Reason
	}{
		"no operation":           {Command{Peer: 1}, wire.Operation},
		"itself":                 {Command{Peer: 0, Op: wire.Put}, wire.Operation},
		"two bytes":              {Command{Peer: 1, Op: wire.Add, Width: 2}, wire.Length},
		"unaligned":              {Command{Peer: 1, Op: wire.Add, Width: 8, Offset: 4}, wire.Alignment},
		"nobody's message":       {Command{Peer: 1, Op: wire.Message}, wire.NoHandler},
		"too long a message":     {Command{Peer: 1, Op: wire.Message, Handler: 1, Data: make([]byte, e.MessageLimit(1)+1)}, wire.Length},
		"around all addresses":   {Command{Peer: 1, Op: wire.Put, Offset: math.MaxUint64, Data: make([]byte, 2)}, wire.Range},
		"an operation too high":  {Command{Peer: 1, Op: 200}, wire.Operation},
		"an atomic of no length": {Command{Peer: 1, Op: wire.Swap}, wire.Length},
	} {
		err := e.Submit(0, c.Command)
		require.Error(t, err, what)
		var reason wire.Reason
		require.ErrorAs(t, err, &reason, what)
		assert.Equal(t, c.want, reason, what)
	}
	for range 5 {
		require.NoError(t, e.Submit(0, Command{Peer: 1, Op: wire.Add, Width: 8, Window: opened}))
	}
	assert.Equal(t, ErrFull, e.Submit(0, Command{Peer: 1, Op: wire.Add, Width: 8, Window: opened}), "two under way and three that wait")
}

// Data is cut at whole cache lines, messages are not: one of any length that is allowed is one packet.
func TestALongMessageIsOnePacket(t *testing.T) {
	w := newWorld(t, plan{Seed: 1, Tasks: 2, Longest: 1000, MTU: 1500, Faults: chaos.Faults{Delay: time.Microsecond}})
	w.does(Command{Op: wire.Message, Handler: runs, Data: make([]byte, 8)})
	for length := w.tasks[0].endpoint.MessageLimit(1) - 64; length <= w.tasks[0].endpoint.MessageLimit(1); length++ {
		before := w.tasks[0].endpoint.Counters()
		require.Equal(t, wire.OK, w.does(Command{Op: wire.Message, Handler: runs, Data: make([]byte, length)}).Reason)
		require.EqualValues(t, 1, w.tasks[0].endpoint.Counters().Sent-before.Sent, "%d bytes", length)
	}
}

// A target's answer that can't be, though its tag is right, neither ends an operation nor a task.
func TestAnswersThatContradictTheOperationAreDropped(t *testing.T) {
	w := two(t, nil)
	require.Equal(t, wire.OK, w.does(Command{Op: wire.Put, Window: opened, Data: make([]byte, 5)}).Reason)
	e := w.tasks[0].endpoint
	for _, op := range []wire.Op{wire.Get, wire.Put, wire.Add} {
		c := Command{Op: op, Peer: 1, Window: opened, Width: 8}
		if !op.Atomic() {
			c.Data = make([]byte, 300)
		}
		require.NoError(t, e.Submit(0, c))
	}
	for {
		if _, _, _, ok := e.Next(0, w.tasks[0].buffer); !ok {
			break
		}
	}
	i := e.pairs[1].initiator
	rapid.Check(t, func(t *rapid.T) {
		h := wire.Header{
			Type: rapid.SampledFrom([]wire.Type{wire.TypeData, wire.TypeAnswer, wire.TypeConfirm}).Draw(t, "type"),
			Job:  7, Source: 1, Target: 0, SourceLife: 2, TargetLife: 1, Epoch: 1,
		}
		number, sequence := rapid.Uint64Range(0, 12).Draw(t, "number"), rapid.Uint64Range(0, 6).Draw(t, "sequence")
		var body []byte
		switch h.Type {
		case wire.TypeData:
			d := wire.DataPart{Number: number, Sequence: sequence, At: 1 + rapid.Uint64().Draw(t, "at")%1000}
			body = append(d.AppendData(nil), make([]byte, 139)...) // packets have 140
		case wire.TypeAnswer:
			if sequence == 3 { // the atomic's own answer is one
				number += 100
			}
			body = (&wire.Answer{Number: number, Sequence: sequence, Data: make([]byte, 3)}).Append(nil)
		case wire.TypeConfirm:
			body = wire.AppendConfirm(nil, sequence, []uint64{math.MaxUint64})
		}
		e.Receive(0, &h, body)
		require.Empty(t, e.Notifications(nil))
		require.EqualValues(t, 1, i.operations.base)
	})
}

func TestEpochsNeverRollOver(t *testing.T) {
	w := two(t, func(c *Config) { c.First, c.Silence = math.MaxUint64, silence })
	assert.Equal(t, wire.OK, w.does(Command{Op: wire.Add, Width: 8, Operand: 1, Window: opened}).Reason, "the last epoch")
	w.network.Cut(0, 1)
	n := w.does(Command{Op: wire.Add, Width: 8, Window: opened})
	assert.Contains(t, []wire.Reason{wire.Exhausted, wire.Silent}, n.Reason)
	w.network.Heal(0, 1)
	err := w.tasks[0].endpoint.Submit(w.network.Now(), Command{Peer: 1, Op: wire.Add, Width: 8, Window: opened})
	assert.Equal(t, wire.Exhausted, errors.Cause(err))
	assert.EqualValues(t, 1, getWord(w.tasks[1].memory, 0))
}

func TestNumbersNeverRollOver(t *testing.T) {
	w := two(t, nil)
	add := Command{Op: wire.Add, Width: 8, Operand: 1, Window: opened}
	assert.Equal(t, wire.OK, w.does(add).Reason)
	initiator, target := w.tasks[0].endpoint.pairs[1].initiator, w.tasks[1].endpoint.pairs[0].target
	const near = math.MaxUint64 - 40
	initiator.flights.base, initiator.flights.end, target.numbers.base = near, near, near
	for range 100 {
		require.Equal(t, wire.OK, w.does(add).Reason)
		require.Equal(t, wire.OK, w.does(Command{Op: wire.Get, Window: opened, Data: make([]byte, 300)}).Reason)
	}
	assert.EqualValues(t, 101, getWord(w.tasks[1].memory, 0))
	assert.EqualValues(t, 1, w.tasks[0].endpoint.Counters().Raised)
}

func TestAKnownDeathEndsOperationsAtOnce(t *testing.T) {
	w := two(t, nil)
	e := w.tasks[0].endpoint
	for token := range uint64(3) {
		require.NoError(t, e.Submit(0, Command{Peer: 1, Op: wire.Get, Window: opened, Data: make([]byte, 500), Token: token}))
	}
	e.Fail(1, wire.Dead)
	n := e.Notifications(nil)
	require.Len(t, n, 3)
	for i := range n {
		assert.Equal(t, Notification{Token: uint64(i), Peer: 1, Op: wire.Get, Reason: wire.Dead}, n[i])
	}
	assert.Equal(t, wire.Dead, e.Submit(0, Command{Peer: 1, Op: wire.Get, Window: opened}))
	_, any := e.Deadline()
	assert.False(t, any)
	_, _, _, any = e.Next(0, w.tasks[0].buffer)
	assert.False(t, any)

	require.NoError(t, w.tasks[1].endpoint.Submit(0, Command{Peer: 0, Op: wire.Get, Window: opened}))
	w.tasks[1].endpoint.Close()
	assert.Equal(t, wire.Closed, w.tasks[1].endpoint.Notifications(nil)[0].Reason)
	assert.Equal(t, wire.Closed, w.tasks[1].endpoint.Submit(0, Command{Peer: 0, Op: wire.Get, Window: opened}))
}

func TestAConfigIsChecked(t *testing.T) {
	end, _ := sim.New(sim.Config{})
	good := Default()
	good.Life, good.MTU, good.Memory = 1, end.Join(0).MTU, func(fabric.Task, wire.Key) Memory { return nil }
	_, err := New(good)
	require.NoError(t, err)
	for what, change := range map[string]func(c *Config){
		"no life": func(c *Config) { c.Life = 0 }, "no epoch": func(c *Config) { c.First = 0 }, "no MTU": func(c *Config) { c.MTU = nil },
		"no memory": func(c *Config) { c.Memory = nil }, "a window of 3": func(c *Config) { c.Operations = 3 },
		"a huge window": func(c *Config) { c.Packets = 8192 }, "a window of packets less than a run": func(c *Config) { c.Packets = 16 },
		"no time": func(c *Config) { c.Silence = 0 }, "times in disorder": func(c *Config) { c.MostTimeout = c.LeastTimeout },
		"a window that is never reached": func(c *Config) { c.LeastWindow = 5000 }, "a negative queue": func(c *Config) { c.Queue = -1 },
	} {
		bad := good
		change(&bad)
		_, err := New(bad)
		assert.Error(t, err, what)
	}
}
