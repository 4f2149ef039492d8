package port

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/pgas/dgsp"
	"evenkeel/pgas/gsm/wire"
	"evenkeel/runtime/fabric"
	"evenkeel/runtime/fabric/relay"
)

// Two tasks read from a third at once, in layouts that repeat, over a good and a bad network: what they
// get is compared with what lies there, and a layout that is held there is only named.
func TestFetchesOverUDP(t *testing.T) {
	bad := relay.New(netip.MustParseAddr("127.0.0.1"), 1, relay.Impairments{Loss: 0.02, Duplication: 0.02, Corruption: 0.01,
		Truncation: 0.01, Reordering: 0.1, Delay: time.Millisecond})
	t.Cleanup(bad.Close)
	for name, through := range map[string]func(fabric.Meeting) fabric.Meeting{"good": straight, "bad": bad.Meeting} {
		t.Run(name, func(t *testing.T) {
			job := job(t, 3, through, func(c *Config) { c.Limits = dgsp.Limits{Early: 3000, Description: 1 << 20, Cache: 1 << 20} })
			memory := job[2].window
			random := rand.New(rand.NewPCG(1, 1))
			for i := range memory {
				memory[i] = byte(random.Uint32())
			}
			var all sync.WaitGroup
			for i := range 2 {
				all.Add(1)
				go func() {
					defer all.Done()
					random := rand.New(rand.NewPCG(uint64(i), 3))
					for range 40 {
						n := []int{1, 200, 1500}[random.IntN(3)]
						source := compiled(t, targetLayout(random, n))
						target := compiled(t, dgsp.Strided(n, 8, 24))
						low, high := source.Bounds()
						base := random.IntN(len(memory)-(high-low)) - low
						into, want := make([]byte, 24*n), make([]byte, 24*n)
						assert.NoError(t, dgsp.Move(target, want, 0, source, memory, base))
						if !assert.NoError(t, job[i].Get(2, wire.JobKey, windowNumber, base, source, into, target)) {
							return
						}
						assert.True(t, bytes.Equal(want, into))
					}
				}()
			}
			all.Wait()
			c := job[2].Counts()
			assert.Equal(t, 80, c.Served)
			assert.Zero(t, c.Placed)
			assert.Positive(t, c.Hits, "layouts were named")
			assert.Zero(t, c.Malformed)
			for i := range 2 {
				assert.Equal(t, 40, job[i].Counts().Placed)
				assert.Empty(t, job[i].fetches)
				assert.Empty(t, job[i].answers)
			}
		})
	}
}

func TestFetchesThatCantBe(t *testing.T) {
	job := job(t, 2, straight, nil)
	block := compiled(t, dgsp.Block(64))
	into := make([]byte, 64)
	for _, c := range []struct {
		window uint32
		base   int
		say    string
	}{
		{9, 0, "there is no such window"},
		{windowNumber, 1<<20 - 63, "reaches out of the window"},
		{windowNumber, -1, "reaches out of the window"},
		{windowNumber, 1<<63 - 1, "reaches out of the window"},
	} {
		err := job[0].Get(1, wire.JobKey, c.window, c.base, block, into, block)
		assert.ErrorContains(t, err, c.say)
		assert.ErrorContains(t, err, "a transfer from task 1")
	}
	assert.ErrorContains(t, job[0].Get(1, wire.JobKey, windowNumber, 0, block, into, compiled(t, dgsp.Block(63))), "different sizes")
	assert.ErrorContains(t, job[0].Get(1, wire.JobKey, windowNumber, 0, block, into[:63], block), "does not fit")
	empty := compiled(t, dgsp.Block(0))
	require.NoError(t, job[0].Get(1, wire.JobKey, windowNumber, 0, empty, nil, empty), "nothing, which is there")

	// What nobody has asked for is refused.
	m := dgsp.Message{Source: block, Memory: into, Target: block, Handler: fetched, Header: make([]byte, 8)}
	assert.ErrorContains(t, job[1].Put(0, wire.JobKey, m), "the handler refused it")

	job[1].Close()
	assert.Error(t, job[0].Get(1, wire.JobKey, windowNumber, 0, block, into, block), "the task is gone")
}

// More fetches at once than may be under way between two tasks, in both directions.
func TestManyFetchesAtOnce(t *testing.T) {
	job := job(t, 2, straight, nil)
	layout, block := compiled(t, dgsp.Strided(100, 8, 16)), compiled(t, dgsp.Block(800))
	var all sync.WaitGroup
	for i := range 2 {
		for k := range job[i].window {
			job[i].window[k] = byte(k*7 + i)
		}
	}
	for i := range 200 {
		all.Add(1)
		go func() {
			defer all.Done()
			got, want := make([]byte, 800), make([]byte, 800)
			assert.NoError(t, job[i%2].Get(fabric.Task(1-i%2), wire.JobKey, windowNumber, 2000*i, layout, got, block))
			assert.NoError(t, layout.Gather(want, job[1-i%2].window, 2000*i, 0))
			assert.True(t, bytes.Equal(want, got))
		}()
	}
	all.Wait()
}
