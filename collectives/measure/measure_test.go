package measure

import (
	"math"
	"math/rand"
	"sync"
	"testing"
	"time"

	"github.com/pkg/errors"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/collectives"
	"evenkeel/collectives/carrier"
	"evenkeel/runtime/fabric"
	"evenkeel/runtime/fabric/fabrictest"
	"evenkeel/runtime/fabric/shm"
	"evenkeel/runtime/fabric/udp"
)

// model is a link that behaves as LogGP says, apart from some noise.
type model struct {
	link   collectives.Link
	random *rand.Rand
	fails  int
}

func (m *model) Volley(count, bytes int) (sending, whole time.Duration, err error) {
	if m.fails--; m.fails == 0 {
		return 0, 0, errors.New("the cable is out")
	}
	l, b := m.link, float64(bytes)
	interval := max(l.Overhead, l.Gap+b*l.PerByte)
	noise := 1.0
	if m.random.Intn(5) == 0 {
		noise += 3 * m.random.Float64() // a disturbance only ever takes longer
	}
	busy := float64(count) * l.Overhead
	all := float64(count-1)*interval + (l.Overhead + b*l.PerByte + l.Latency + l.Overhead) + (l.Overhead + l.Latency + l.Overhead)
	return time.Duration(busy * noise), time.Duration(all * noise), nil
}

// TestFit: parameters come out as they are, whatever they are.
func TestFit(t *testing.T) {
	for seed := range int64(300) {
		random := rand.New(rand.NewSource(seed))
		o := 50 + 5000*random.Float64()
		want := collectives.Link{Latency: 100 + 50000*random.Float64(), Overhead: o, Gap: o * (1 + random.Float64()), PerByte: 0.05 + 5*random.Float64()}
		got, err := Fit(&model{want, random, -1}, Few, Many)
		require.NoError(t, err)
		assert.InEpsilon(t, want.Latency, got.Latency, 0.02, "seed %d", seed)
		assert.InEpsilon(t, want.Overhead, got.Overhead, 0.02, "seed %d", seed)
		assert.InEpsilon(t, want.Gap, got.Gap, 0.02, "seed %d", seed)
		assert.InEpsilon(t, want.PerByte, got.PerByte, 0.02, "seed %d", seed)
	}
}

// Whatever is measured, no part is nothing, and the parts add up to a message's time on its way and to the interval between
// messages.
func TestPartsOfAFit(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	figure := func() float64 { return math.Floor(math.Exp(random.Float64() * 12)) }
	hidden := 0
	for range 10000 {
		v := times{sending: figure(), one: figure(), all: figure(), oneLarge: figure(), allLarge: figure()}
		l := v.link(Few, Many)
		for _, part := range []float64{l.Latency, l.Overhead, l.Gap, l.PerByte} {
			require.Positive(t, part, "%+v: %+v", v, l)
		}
		require.InEpsilon(t, v.one, 4*l.Overhead+2*l.Latency+Few*l.PerByte, 1e-9, "%+v: %+v", v, l)
		interval := max((v.all-v.one)/(volley-1), v.sending/volley)
		require.InEpsilon(t, interval, l.Gap+Few*l.PerByte, 1e-9, "%+v: %+v", v, l)
		if l.Overhead == l.Latency {
			hidden++
			require.Greater(t, 2*v.sending/volley, (v.one-Few*l.PerByte)/2*(1-2*distinct), "%+v: %+v", v, l)
		}
	}
	assert.Greater(t, hidden, 1000)
	assert.Less(t, hidden, 9000)
}

// What each part is found from, and what is taken where it does not show.
func TestFitOfTimes(t *testing.T) {
	const interval, sending, one = 400, 16 * 100, 2000
	sound := times{sending: sending, one: one, all: one + 15*interval, oneLarge: one + 4080, allLarge: one + 4080 + 15*(interval+4080)}
	assert.Equal(t, collectives.Link{Latency: 992 - 200, Overhead: 100, Gap: interval - 16, PerByte: 1}, sound.link(Few, Many))
	busy := sound
	busy.sending = 16 * 350 // two of them are two thirds of a message's time
	assert.Equal(t, collectives.Link{Latency: 992 - 700, Overhead: 350, Gap: interval - 16, PerByte: 1}, busy.link(Few, Many))
	busy.sending = 16 * 500 // more than that time
	perByte := (interval + 4080 - 500.) / (Many - Few)
	third := (one - Few*perByte) / 2 / 3
	assert.Equal(t, collectives.Link{Latency: third, Overhead: third, Gap: 500 - Few*perByte, PerByte: perByte}, busy.link(Few, Many))
	hidden := sound
	hidden.allLarge = hidden.oneLarge + 15*interval // messages of many bytes follow each other as fast
	assert.Equal(t, 1., hidden.link(Few, Many).PerByte)
	hidden.oneLarge, hidden.allLarge = one, one+15*interval
	assert.Equal(t, leastPerByte, hidden.link(Few, Many).PerByte)
}

func TestFitFails(t *testing.T) {
	for fails := 1; fails <= 5; fails++ {
		_, err := Fit(&model{collectives.Link{Overhead: 1}, rand.New(rand.NewSource(1)), fails}, Few, Many)
		assert.ErrorContains(t, err, "the cable is out")
	}
	_, err := Fit(&model{}, 10, 10)
	assert.ErrorContains(t, err, "10 and 10 bytes")
}

// TestNetwork: over real fabrics all tasks get the same figures, and a schedule can
// be chosen from them.
func TestNetwork(t *testing.T) {
	joins := map[string]func(fabric.Meeting) (fabric.Fabric, error){
		"udp": func(m fabric.Meeting) (fabric.Fabric, error) { return udp.Join(m, udp.Options{Address: "127.0.0.1"}) },
		"shm": func(m fabric.Meeting) (fabric.Fabric, error) { return shm.Join(m, shm.Options{}) },
		"through a carrier": func(m fabric.Meeting) (fabric.Fabric, error) {
			f, err := shm.Join(m, shm.Options{})
			if err != nil {
				return nil, err
			}
			return Through(carrier.Over(f), m.Tasks())
		},
	}
	for name, join := range joins {
		for _, nodes := range []collectives.Nodes{nil, func(t collectives.Task) uint32 { return uint32(t) / 2 }} {
			const tasks = 4
			got := make([]collectives.Network, tasks)
			var group sync.WaitGroup
			for i, m := range fabrictest.Meetings(tasks) {
				group.Go(func() {
					f, err := join(m)
					if !assert.NoError(t, err) {
						return
					}
					got[i], err = Network(m, f, nodes)
					assert.NoError(t, err, name)
					assert.NoError(t, f.Close())
				})
			}
			group.Wait()
			for _, n := range got {
				require.Equal(t, got[0], n, name)
			}
			require.Positive(t, got[0].Within.Overhead)
			require.Positive(t, got[0].Between.Overhead)
			s, cost := got[0].Choose(collectives.Load{Bytes: 64, Receivers: 63})
			t.Logf("%s, nodes known: %v: %+v; a broadcast to 63: %v, %.0f ns", name, nodes != nil, got[0], s, cost)
			require.NoError(t, s.Check())
		}
	}
}

// TestSilentPeer: who gets no answer says so, instead of waiting for ever.
func TestSilentPeer(t *testing.T) {
	meetings := fabrictest.Meetings(2)
	ends := make([]fabric.Fabric, 2)
	var group sync.WaitGroup
	for i, m := range meetings {
		group.Go(func() {
			var err error
			ends[i], err = shm.Join(m, shm.Options{})
			assert.NoError(t, err)
		})
	}
	group.Wait()
	p := &probe{fabric: ends[0], peer: 1}
	_, _, err := p.Volley(1, Few)
	assert.ErrorContains(t, err, "task 1 does not answer")
	for _, f := range ends {
		assert.NoError(t, f.Close())
	}
}

// TestPair: two tasks of this process measure a fabric, and say why they can't.
func TestPair(t *testing.T) {
	directory := t.TempDir()
	l, err := Pair(func(m fabric.Meeting) (fabric.Fabric, error) { return shm.Join(m, shm.Options{Directory: directory}) })
	require.NoError(t, err)
	assert.Positive(t, l.Overhead)
	_, err = Pair(func(fabric.Meeting) (fabric.Fabric, error) { return nil, errors.New("no cable") })
	assert.ErrorContains(t, err, "no cable")
}
