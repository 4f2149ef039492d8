package port

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/pgas/dgsp"
	"evenkeel/pgas/gsm/credential"
	"evenkeel/pgas/gsm/engine"
	"evenkeel/pgas/gsm/epoch"
	"evenkeel/pgas/gsm/wire"
	"evenkeel/runtime/fabric"
	"evenkeel/runtime/fabric/fabrictest"
	"evenkeel/runtime/fabric/relay"
	"evenkeel/runtime/fabric/udp"
)

// task is one of a job in this process, with one window.
type task struct {
	*Port
	engine *engine.Engine
	window []byte
}

// Two numbers lead to the window: one for all, one for who has a narrower key.
const windowNumber, narrowNumber, narrower, portNumber = 7, 8, wire.Key(4), wire.Handler(3)

func (k *task) reach(key wire.Key, window uint32, offset, length int) ([]byte, dgsp.Reason) {
	switch {
	case window != windowNumber && window != narrowNumber:
		return nil, dgsp.NoWindow
	case window == narrowNumber && key != narrower:
		return nil, dgsp.WrongKey
	case offset > len(k.window) || length > len(k.window)-offset:
		return nil, dgsp.OutOfRange
	}
	return k.window[offset : offset+length], dgsp.NoReason
}

// job starts tasks over UDP; `through` changes how they meet.
func job(t testing.TB, tasks int, through func(fabric.Meeting) fabric.Meeting, change func(*Config)) []*task {
	secret, err := credential.Generate()
	require.NoError(t, err)
	fabrics, errs := make([]fabric.Fabric, tasks), make([]error, tasks)
	var all sync.WaitGroup
	for i, m := range fabrictest.Meetings(tasks) {
		all.Add(1)
		go func() {
			defer all.Done()
			fabrics[i], errs[i] = udp.Join(through(m), udp.Options{Address: "127.0.0.1", MTU: 1400})
		}()
	}
	all.Wait()
	var job []*task
	for i := range tasks {
		require.NoError(t, errs[i])
		handlers := &engine.Handlers{}
		life, err := credential.NewLife()
		require.NoError(t, err)
		c := engine.Config{Protocol: epoch.Default(), Fabric: fabrics[i], Handlers: handlers}
		c.Protocol.Job, c.Protocol.Life = 5, life
		c.Credential, err = credential.New(5, fabric.Task(i), life, secret)
		require.NoError(t, err)
		c.Protocol.Memory = func(fabric.Task, wire.Key) epoch.Memory { return nil }
		one := &task{window: make([]byte, 1<<20)}
		one.engine, err = engine.New(c)
		require.NoError(t, err)
		p := Config{Engine: one.engine, Handlers: handlers, Number: portNumber, Reach: one.reach, Show: one.reach}
		if change != nil {
			change(&p)
		}
		one.Port, err = Open(p)
		require.NoError(t, err)
		t.Cleanup(func() {
			one.Close()
			assert.NoError(t, one.engine.Close())
		})
		job = append(job, one)
	}
	return job
}

func straight(m fabric.Meeting) fabric.Meeting { return m }

func compiled(t testing.TB, l dgsp.Layout) *dgsp.Program {
	p, err := dgsp.Compile(l)
	require.NoError(t, err)
	return p
}

// Two tasks write into a third at once, each into its half, in layouts that repeat, over a good and a
// bad network; what is there is compared with what each wrote, byte by byte.
func TestTransfersOverUDP(t *testing.T) {
	bad := relay.New(netip.MustParseAddr("127.0.0.1"), 1, relay.Impairments{Loss: 0.02, Duplication: 0.02, Corruption: 0.01,
		Truncation: 0.01, Reordering: 0.1, Delay: time.Millisecond})
	t.Cleanup(bad.Close)
	for name, through := range map[string]func(fabric.Meeting) fabric.Meeting{"good": straight, "bad": bad.Meeting} {
		t.Run(name, func(t *testing.T) {
			// So small a queue that early data does not fit.
			job := job(t, 3, through, func(c *Config) { c.Limits = dgsp.Limits{Early: 3000, Description: 1 << 20, Cache: 1 << 20} })
			half := len(job[2].window) / 2
			want := make([]byte, len(job[2].window))
			var all sync.WaitGroup
			for i := range 2 {
				all.Add(1)
				go func() {
					defer all.Done()
					random := rand.New(rand.NewPCG(uint64(i), 3))
					for range 40 {
						n := []int{1, 200, 1500}[random.IntN(3)]
						target := compiled(t, targetLayout(random, n))
						source := compiled(t, dgsp.Strided(n, 8, 24))
						data := make([]byte, 24*n)
						for k := range data {
							data[k] = byte(random.Uint32())
						}
						low, high := target.Bounds()
						base := i*half - low + random.IntN(half-(high-low))
						m := dgsp.Message{Source: source, Memory: data, Target: target, Window: windowNumber, Base: base}
						if !assert.NoError(t, job[i].Put(2, wire.JobKey, m)) {
							return
						}
						assert.NoError(t, dgsp.Move(target, want, base, source, data, 0))
					}
				}()
			}
			all.Wait()
			assert.True(t, bytes.Equal(want, job[2].window))
			c := job[2].Counts()
			assert.Equal(t, 80, c.Placed)
			assert.Positive(t, c.Hits, "layouts were named")
			assert.Zero(t, c.Malformed)
			t.Logf("%+v", c)
		})
	}
}

// targetLayout is one of a few forms for n blocks of 8 bytes, the same again and again.
func targetLayout(random *rand.Rand, n int) dgsp.Layout {
	switch random.IntN(3) {
	case 0:
		return dgsp.Strided(n, 8, 16)
	case 1:
		return dgsp.Strided(n, 8, -40)
	}
	at := make([]int, n)
	for i, place := 0, 0; i < n; i++ {
		at[i] = place
		place += 8 * (1 + i*i%5)
	}
	return dgsp.IndexedOf(dgsp.Block(8), at)
}

// The active form: the handler sees what changes, chooses the memory, keeps the program, or refuses.
func TestHeaderHandlers(t *testing.T) {
	var kept *dgsp.Handle
	var seen []dgsp.Span
	var header string
	into, finished := make([]byte, 1000), make(chan struct{})
	job := job(t, 2, straight, func(c *Config) {
		c.Active = map[uint32]Handler{
			1: func(a Arrival) Answer {
				program, err := a.Handle.Program()
				assert.NoError(t, err)
				program.Spans(0, a.Size, func(s dgsp.Span) bool { seen = append(seen, s); return true })
				assert.NoError(t, a.Handle.Keep())
				kept, header = a.Handle, string(a.Header)
				return Answer{Memory: into, Base: 100, Done: func() { close(finished) }}
			},
			2: func(Arrival) Answer { return Answer{Refuse: dgsp.HandlerChoice} },
			3: func(Arrival) Answer { return Answer{Memory: into, Base: 990} },
		}
	})
	target := compiled(t, dgsp.Strided(3, 4, 10))
	data := []byte("abcdefghijkl")
	m := dgsp.Message{Source: compiled(t, dgsp.Block(12)), Memory: data, Target: target, Handler: 1, Header: []byte("what it is")}
	require.NoError(t, job[0].Put(1, wire.JobKey, m))
	<-finished
	assert.Equal(t, []dgsp.Span{{At: 0, Length: 4}, {At: 10, Length: 4}, {At: 20, Length: 4}}, seen)
	assert.Equal(t, "what it is", header)
	assert.Equal(t, "abcd\x00\x00\x00\x00\x00\x00efgh\x00\x00\x00\x00\x00\x00ijkl", string(into[100:124]))
	job[1].With(func() {
		program, err := kept.Program()
		assert.NoError(t, err)
		assert.Equal(t, 12, program.Size())
		assert.NoError(t, kept.Free())
		_, err = kept.Program()
		assert.ErrorContains(t, err, "was freed")
	})
	for number, say := range map[uint32]string{2: "the handler refused it", 3: "reaches out of the window", 4: "no such handler"} {
		m.Handler = number
		assert.ErrorContains(t, job[0].Put(1, wire.JobKey, m), say)
	}
}

func TestErrorsReachTheInitiator(t *testing.T) {
	job := job(t, 2, straight, func(c *Config) { c.Times = dgsp.DefaultTimes() })
	block := compiled(t, dgsp.Block(64))
	m := dgsp.Message{Source: block, Memory: make([]byte, 64), Target: block, Window: windowNumber}
	for _, c := range []struct {
		window uint32
		base   int
		say    string
	}{
		{9, 0, "there is no such window"},
		{windowNumber, 1<<20 - 63, "reaches out of the window"},
		{windowNumber, -1, "reaches out of the window"},
		{windowNumber, -1 << 63, "reaches out of the window"},
		{windowNumber, 1<<63 - 1, "reaches out of the window"},
	} {
		m.Window, m.Base = c.window, c.base
		err := job[0].Put(1, wire.JobKey, m)
		assert.ErrorContains(t, err, c.say)
		assert.ErrorContains(t, err, "a transfer to task 1")
	}
	assert.Equal(t, make([]byte, 1<<20), job[1].window)
	m.Window, m.Base = windowNumber, 0
	require.NoError(t, job[0].Put(1, wire.JobKey, m), "others go on")

	assert.Equal(t, 2*time.Second, Patience(time.Second).Silence, "the engine tells first, and the port soon")

	// A port that is closed refuses; transfers under way end.
	job[1].Close()
	assert.Error(t, job[0].Put(1, wire.JobKey, m))
	_, err := job[0].Start(1, wire.JobKey, m)
	assert.Error(t, err, "the task is gone")
	job[0].Close()
	_, err = job[0].Start(1, wire.JobKey, m)
	assert.ErrorIs(t, err, ErrClosed)
}

// What comes under a narrower key is let in where that is wanted; of what is refused, for its key or for the
// last of its blocks, nothing is written. When a task has a key no more, nothing is left of it.
func TestTransfersUnderANarrowerKey(t *testing.T) {
	job := job(t, 2, straight, nil)
	secret, err := credential.Generate()
	require.NoError(t, err)
	for _, k := range job {
		require.NoError(t, k.engine.Credential(func(c *credential.Credential) error { return c.Add(narrower, secret) }))
	}
	const blocks = 1000
	strided, block := compiled(t, dgsp.Strided(blocks, 8, 16)), compiled(t, dgsp.Block(8*blocks))
	data, nothing := bytes.Repeat([]byte{1}, 8*blocks), make([]byte, 1<<20)
	m := dgsp.Message{Source: block, Memory: data, Target: strided, Window: narrowNumber}

	err = job[0].Put(1, wire.JobKey, m)
	assert.ErrorContains(t, err, "wants another key")
	assert.Equal(t, wire.Credential, Reason(err))
	m.Base = len(nothing) - 16*(blocks-1)
	assert.ErrorContains(t, job[0].Put(1, narrower, m), "reaches out of the window")
	assert.True(t, bytes.Equal(nothing, job[1].window))
	assert.Equal(t, 2, job[1].Counts().Refused)

	m.Base = 0
	require.NoError(t, job[0].Put(1, narrower, m))
	got := make([]byte, len(data))
	require.NoError(t, strided.Gather(got, job[1].window, 0, 0))
	assert.Equal(t, data, got)
	clear(got)
	require.NoError(t, job[0].Get(1, narrower, narrowNumber, 0, strided, got, block))
	assert.Equal(t, data, got)
	assert.ErrorContains(t, job[0].Get(1, wire.JobKey, narrowNumber, 0, strided, got, block), "wants another key")

	for _, k := range job {
		k.Drop(narrower)
		k.With(func() {
			assert.NotContains(t, k.peers, partner{1 - k.engine.Self(), narrower})
			for from := range k.receiver.Peers() {
				assert.Equal(t, wire.JobKey, partnerOf(from).key)
			}
		})
	}
	assert.Contains(t, job[0].peers, partner{1, wire.JobKey}, "other keys stay")
}

// More transfers at once than may be under way to a task.
func TestManyTransfersAtOnce(t *testing.T) {
	job := job(t, 2, straight, nil)
	source, target := compiled(t, dgsp.Block(800)), compiled(t, dgsp.Strided(100, 8, 16))
	var transfers []*Transfer
	var written [][]byte
	for i := range 300 {
		data := []byte(fmt.Sprintf("%800d", i))
		n, err := job[0].Start(1, wire.JobKey, dgsp.Message{Source: source, Memory: data, Target: target, Window: windowNumber, Base: 2000 * i})
		require.NoError(t, err)
		transfers, written = append(transfers, n), append(written, data)
	}
	for i, n := range transfers {
		require.NoError(t, n.Wait())
		assert.True(t, n.Done())
		got := make([]byte, 800)
		require.NoError(t, target.Gather(got, job[1].window, 2000*i, 0))
		require.Equal(t, written[i], got)
	}
}
