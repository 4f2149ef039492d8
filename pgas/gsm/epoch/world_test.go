package epoch

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/stretchr/testify/require"

	"evenkeel/pgas/gsm/credential"
	"evenkeel/pgas/gsm/wire"
	"evenkeel/runtime/fabric"
	"evenkeel/runtime/fabric/chaos"
	"evenkeel/runtime/fabric/sim"
)

// world is a job in virtual time: tasks that reach each other's memory at random over a network with faults, and a model
// of what every memory must hold.
type world struct {
	t       require.TestingT
	plan    plan
	random  *rand.Rand
	network *sim.Network
	tasks   []*task
	packets []fabric.Packet

	started, ended int
	failed         map[wire.Reason]int
	failedOn       map[fabric.Task]int
	took           time.Duration // until the last notification
}

// plan is what a world is made from.
type plan struct {
	Seed       uint64
	Tasks      int
	Operations int // in all
	UnderWay   int // operations that each task has under way at most
	Longest    int // bytes of a PUT or GET
	MTU        int
	Rate       float64
	Queue      int
	Faults     chaos.Faults
	Config     func(c *Config)
	Only       []wire.Op // what to do; nil: everything
}

func (p plan) String() string {
	return fmt.Sprintf("seed %d: %d operations of up to %d bytes among %d tasks, %+v", p.Seed, p.Operations, p.Longest, p.Tasks, p.Faults)
}

const (
	places   = 8  // where a task's PUTs and GETs go, each of Longest bytes, and used by one operation at a time
	words    = 4  // that everybody adds to
	ownWords = 16 // that one operation at a time changes
	opened   = wire.Window(3)
	runs     = wire.Handler(9)
)

// task is one task of the world, with its memory as the network sees it and as it must be.
type task struct {
	world      *world
	end        *sim.End
	endpoint   *Endpoint
	credential *credential.Credential
	memory     []byte
	buffer     []byte
	place      []place
	word       []word
	added      []added
	under      map[uint64]*underWay
	token      uint64
	underWay   int
	arrivals   map[uint64]int // messages and PUTs with a handler, by what they say they are
	notified   []Notification
	written    uint64 // calls that changed memory
}

type place struct {
	busy bool
	want []byte
}

type word struct {
	busy bool
	want uint64
}

// added is a word that everybody adds 1 to: each value is fetched by one.
type added struct {
	fetched map[uint64]bool
	count   uint64
}

type underWay struct {
	Command
	target *task
	index  int    // of the place or word
	id     uint64 // of the message
}

func newWorld(t require.TestingT, p plan) *world {
	network, err := sim.New(sim.Config{Seed: p.Seed, Faults: p.Faults, MTU: p.MTU, Rate: p.Rate, Queue: p.Queue})
	require.NoError(t, err)
	w := &world{
		t: t, plan: p, random: rand.New(rand.NewPCG(p.Seed, 1)), network: network,
		packets: make([]fabric.Packet, 64), failed: map[wire.Reason]int{}, failedOn: map[fabric.Task]int{},
	}
	for self := range fabric.Task(p.Tasks) {
		w.tasks = append(w.tasks, w.newTask(self, wire.Life(self+1)))
	}
	return w
}

func (w *world) newTask(self fabric.Task, life wire.Life) *task {
	k := &task{
		world: w, end: w.network.Join(self), under: map[uint64]*underWay{}, arrivals: map[uint64]int{},
		place: make([]place, places), word: make([]word, ownWords), added: make([]added, words),
		memory: make([]byte, places*w.plan.Longest+8*(ownWords+words)), buffer: make([]byte, 0, 1<<16),
	}
	for i := range k.place {
		k.place[i].want = k.at(i)
	}
	for i := range k.added {
		k.added[i].fetched = map[uint64]bool{}
	}
	c := Default()
	c.Self, c.Job, c.Life = self, 7, life
	c.MTU = k.end.MTU
	c.Memory = func(fabric.Task, wire.Key) Memory { return k }
	c.Handlers = k
	c.Silence = time.Hour
	if w.plan.Config != nil {
		w.plan.Config(&c)
	}
	var err error
	k.endpoint, err = New(c)
	require.NoError(w.t, err)
	k.credential, err = credential.New(7, self, life, credential.Secret{})
	require.NoError(w.t, err)
	return k
}

// at is a copy of what a place holds.
func (k *task) at(i int) []byte {
	size := k.world.plan.Longest
	return append([]byte(nil), k.memory[i*size:(i+1)*size]...)
}

// offset of the i-th word; those that everybody adds to come last.
func (k *task) offset(i int) uint64 { return uint64(places*k.world.plan.Longest + 8*i) }

// Memory, as Config wants it.

func (k *task) Check(w wire.Window, op wire.Op, offset, length uint64) error {
	switch {
	case w != opened:
		return wire.NoWindow
	case offset > uint64(len(k.memory)) || length > uint64(len(k.memory))-offset:
		return wire.Range
	}
	return nil
}

func (k *task) Write(w wire.Window, offset uint64, data []byte) error {
	if err := k.Check(w, wire.Put, offset, uint64(len(data))); err != nil {
		return err
	}
	k.written++
	copy(k.memory[offset:], data)
	return nil
}

func (k *task) Read(w wire.Window, offset uint64, into []byte) error {
	if err := k.Check(w, wire.Get, offset, uint64(len(into))); err != nil {
		return err
	}
	copy(into, k.memory[offset:])
	return nil
}

func (k *task) Atomic(w wire.Window, offset uint64, op wire.Op, width int, operand, compare uint64) (uint64, error) {
	if err := k.Check(w, op, offset, uint64(width)); err != nil {
		return 0, err
	}
	if offset%uint64(width) != 0 {
		return 0, wire.Alignment
	}
	k.written++
	if width == 4 {
		old := binary.LittleEndian.Uint32(k.memory[offset:])
		binary.LittleEndian.PutUint32(k.memory[offset:], uint32(op.Apply(4, uint64(old), operand, compare)))
		return uint64(old), nil
	}
	old := binary.LittleEndian.Uint64(k.memory[offset:])
	binary.LittleEndian.PutUint64(k.memory[offset:], op.Apply(8, old, operand, compare))
	return old, nil
}

// Handlers, as Config wants it.

func (k *task) Has(h wire.Handler) bool { return h == runs }

func (k *task) Message(_ fabric.Task, _ wire.Key, _ wire.Handler, data, reply []byte) ([]byte, error) {
	id := binary.LittleEndian.Uint64(data)
	k.arrivals[id]++
	if id%2 == 0 {
		return reply, nil
	}
	return binary.LittleEndian.AppendUint64(reply, ^id), nil
}

// Arrived knows a PUT by its place, which nobody else uses before its notification.
func (k *task) Arrived(_ fabric.Task, _ wire.Handler, _ wire.Window, offset, _ uint64) {
	k.arrivals[offset]++
}

// run does all operations of the plan, and checks that every one was done as it must.
func (w *world) run() {
	for _, k := range w.tasks {
		k.work()
	}
	for events := 0; w.ended < w.plan.Operations; events++ {
		require.Less(w.t, events, 1_000_000+10_000*w.plan.Operations, "%v: no end in sight, %d operations ended, %+v", w.plan, w.ended, w.total())
		w.step()
	}
	w.took = w.network.Now()
	w.settle()
}

// step has the next event happen.
func (w *world) step() {
	self, any := w.network.Step(w.network.Now() + time.Hour)
	if !any {
		require.Fail(w.t, "nothing happens any more", "%v: %d of %d operations ended, %d started", w.plan, w.ended, w.plan.Operations, w.started)
	}
	w.tasks[self].turn()
}

// settle lets what is still under way arrive, and checks memories against the model.
func (w *world) settle() {
	for until := w.network.Now() + time.Minute; ; {
		self, any := w.network.Step(until)
		if !any {
			break
		}
		w.tasks[self].turn()
	}
	for _, k := range w.tasks {
		require.Empty(w.t, k.under, "%v", w.plan)
		for i := range k.place {
			require.True(w.t, bytes.Equal(k.place[i].want, k.at(i)), "%v: place %d of task %d", w.plan, i, k.end.Self())
		}
		for i := range k.word {
			require.Equal(w.t, k.word[i].want, binary.LittleEndian.Uint64(k.memory[k.offset(i):]), "%v: word %d of task %d", w.plan, i, k.end.Self())
		}
		for i := range k.added {
			require.Equal(w.t, k.added[i].count, binary.LittleEndian.Uint64(k.memory[k.offset(ownWords+i):]), "%v: sum %d of task %d", w.plan, i, k.end.Self())
		}
	}
}

// turn is what a task does when something has happened to it.
func (k *task) turn() {
	now := k.world.network.Now()
	for {
		n, err := k.end.Receive(k.world.packets)
		require.NoError(k.world.t, err)
		for _, p := range k.world.packets[:n] {
			h, body, reason := k.credential.Open(p.Data)
			if reason != wire.OK {
				k.endpoint.Drop(reason)
				continue
			}
			k.endpoint.Receive(now, &h, body)
		}
		if n < len(k.world.packets) {
			break
		}
	}
	k.endpoint.Advance(now)
	k.work()
	k.bounded()
}

// send gives the network what is to go out.
func (k *task) send() {
	now := k.world.network.Now()
	for {
		packet, to, class, ok := k.endpoint.Next(now, k.buffer)
		if !ok {
			break
		}
		require.LessOrEqual(k.world.t, len(packet)+wire.TagLength, k.end.MTU(to))
		sealed, err := k.credential.Seal(packet)
		require.NoError(k.world.t, err)
		_, err = k.end.Send([]fabric.Packet{{Peer: to, Class: class, Data: sealed}})
		require.NoError(k.world.t, err)
	}
	if at, any := k.endpoint.Deadline(); any {
		k.end.Timer(max(at, now))
	}
}

// work ends operations, begins others and sends.
func (k *task) work() {
	k.notified = k.endpoint.Notifications(k.notified[:0])
	for _, n := range k.notified {
		k.ends(n)
	}
	for k.underWay < k.world.plan.UnderWay && k.world.started < k.world.plan.Operations && k.begin() {
	}
	k.send()
}

var everything = []wire.Op{
	wire.Put, wire.Get, wire.Add, wire.And, wire.Or, wire.Xor, wire.Swap, wire.CompareAndSwap, wire.FetchAndAdd,
	wire.FetchAndAnd, wire.FetchAndOr, wire.FetchAndXor, wire.Message,
}

// begin starts an operation on some other task. False: there is no place for it just now.
func (k *task) begin() bool {
	w := k.world
	target := w.tasks[w.random.IntN(len(w.tasks)-1)]
	if target == k {
		target = w.tasks[len(w.tasks)-1]
	}
	ops := w.plan.Only
	if ops == nil {
		ops = everything
	}
	k.token++
	u := &underWay{target: target}
	u.Command = Command{Op: ops[w.random.IntN(len(ops))], Peer: target.end.Self(), Window: opened, Token: k.token}
	switch {
	case w.random.IntN(20) == 0 && u.Op != wire.Message: // what is refused
		u.index, u.Width, u.Window = -1, 8, opened+1
		if !u.Op.Atomic() {
			u.Data = make([]byte, w.random.IntN(w.plan.Longest+1))
		}
	case u.Op == wire.Put || u.Op == wire.Get:
		if u.index = target.freePlace(w.random); u.index < 0 {
			return false
		}
		u.Data = make([]byte, w.random.IntN(w.plan.Longest+1))
		u.Offset = uint64(u.index * w.plan.Longest)
		if u.Op == wire.Put {
			fill(w.random, u.Data)
			if w.random.IntN(2) == 0 {
				u.Handler = runs
				target.arrivals[u.Offset] = 0
			}
		}
		target.place[u.index].busy = true
	case u.Op == wire.FetchAndAdd:
		u.index, u.Width, u.Operand = w.random.IntN(words), 8, 1
		u.Offset = target.offset(ownWords + u.index)
		target.added[u.index].count++
	case u.Op.Atomic():
		if u.index = target.freeWord(w.random); u.index < 0 {
			return false
		}
		target.word[u.index].busy = true
		u.Offset, u.Operand, u.Width = target.offset(u.index), w.random.Uint64(), 8
		if w.random.IntN(2) == 0 {
			u.Compare = target.word[u.index].want
		}
		if w.random.IntN(2) == 0 {
			u.Width = 4
			u.Operand, u.Compare = u.Operand&0xffffffff, u.Compare&0xffffffff
		}
	case u.Op == wire.Message:
		u.id = uint64(k.end.Self())<<32 | k.token | 1<<63
		u.Handler = runs
		u.Data = binary.LittleEndian.AppendUint64(nil, u.id)
	}
	err := k.endpoint.Submit(w.network.Now(), u.Command)
	if err == ErrFull {
		u.undo()
		return false
	}
	require.NoError(w.t, err, "%v", w.plan)
	k.under[k.token] = u
	k.underWay++
	w.started++
	return true
}

// undo takes back what begin has noted.
func (u *underWay) undo() {
	switch {
	case u.index < 0:
	case u.Op == wire.Put || u.Op == wire.Get:
		u.target.place[u.index].busy = false
	case u.Op == wire.FetchAndAdd:
		u.target.added[u.index].count--
	case u.Op.Atomic():
		u.target.word[u.index].busy = false
	}
}

func (k *task) freePlace(r *rand.Rand) int {
	for range 4 {
		if i := r.IntN(places); !k.place[i].busy {
			return i
		}
	}
	return -1
}

func (k *task) freeWord(r *rand.Rand) int {
	for range 4 {
		if i := r.IntN(ownWords); !k.word[i].busy {
			return i
		}
	}
	return -1
}

func fill(r *rand.Rand, data []byte) {
	for i := range data {
		data[i] = byte(r.Uint32())
	}
}

// ends checks an operation that has had its notification, and has the target use the memory for something else: what
// comes late spoils it.
func (k *task) ends(n Notification) {
	w := k.world
	u := k.under[n.Token]
	require.NotNil(w.t, u, "%v: a second notification of %v", w.plan, n)
	delete(k.under, n.Token)
	k.underWay--
	w.ended++
	if u.index < 0 && n.Reason != wire.Silent {
		require.Equal(w.t, wire.NoWindow, n.Reason, "%v: %v of %d bytes", w.plan, u.Op, len(u.Data))
		return
	}
	if n.Reason != wire.OK {
		w.failed[n.Reason]++
		w.failedOn[n.Peer]++
		return
	}
	target := u.target
	switch {
	case u.Op == wire.Put:
		place := &target.place[u.index]
		copy(place.want, u.Data)
		require.True(w.t, bytes.Equal(place.want, target.at(u.index)), "%v: a PUT of %d bytes has had its notification", w.plan, len(u.Data))
		if u.Handler != wire.None {
			require.Equal(w.t, 1, target.arrivals[u.Offset], "%v: a PUT's handler", w.plan)
			target.arrivals[u.Offset] = 0
		}
		fill(w.random, target.memory[u.Offset:u.Offset+uint64(len(u.Data))])
		place.want, place.busy = target.at(u.index), false
		fill(w.random, u.Data) // nothing of it may be sent again
	case u.Op == wire.Get:
		require.True(w.t, bytes.Equal(u.Data, target.place[u.index].want[:len(u.Data)]), "%v: a GET of %d bytes", w.plan, len(u.Data))
		target.place[u.index].busy = false
	case u.Op == wire.FetchAndAdd:
		a := &target.added[u.index]
		require.False(w.t, a.fetched[n.Value], "%v: %d fetched twice", w.plan, n.Value)
		a.fetched[n.Value] = true
	case u.Op.Atomic():
		word := &target.word[u.index]
		want := word.want
		if u.Width == 4 {
			want &= 0xffffffff
		}
		require.Equal(w.t, want, n.Value, "%v: %v", w.plan, u.Op)
		word.want = word.want - want + u.Op.Apply(u.Width, want, u.Operand, u.Compare)
		word.busy = false
	case u.Op == wire.Message:
		require.Equal(w.t, 1, target.arrivals[u.id], "%v: a message", w.plan)
		delete(target.arrivals, u.id)
		if u.id%2 == 1 {
			require.Equal(w.t, binary.LittleEndian.AppendUint64(nil, ^u.id), n.Reply, "%v", w.plan)
		}
	}
}

// bounded checks that no state outgrows its windows.
func (k *task) bounded() {
	c, t := &k.endpoint.Config, k.world.t
	for _, p := range k.endpoint.pairs {
		if i := p.initiator; i != nil {
			if i.operations.len() > c.Operations+c.Queue || i.flights.len() > c.Packets || i.inFlight < 0 || i.lost < 0 {
				require.Fail(t, "an initiator outgrows its windows", "%v: %d operations, %d packets, %d in flight, %d lost", k.world.plan, i.operations.len(), i.flights.len(), i.inFlight, i.lost)
			}
		}
		if g := p.target; g != nil {
			if g.records.len() > c.Operations || len(g.numbers.words)*64 > 2*c.Packets+64 || g.answers.len() > c.Operations || g.data > c.Packets {
				require.Fail(t, "a target outgrows its windows", "%v: %d records, %d words of marks, %d answers, %d packets asked for", k.world.plan, g.records.len(), len(g.numbers.words), g.answers.len(), g.data)
			}
		}
	}
}

// total adds up what the tasks have counted.
func (w *world) total() Counters {
	var sum Counters
	for _, k := range w.tasks {
		c := k.endpoint.Counters()
		sum.Sent += c.Sent
		sum.Resent += c.Resent
		sum.Received += c.Received
		sum.Executed += c.Executed
		sum.Raised += c.Raised
		for r, n := range c.Dropped {
			sum.Dropped[r] += n
		}
	}
	return sum
}
