package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"evenkeel/runtime/fabric"
	"evenkeel/runtime/fabric/chaos"
)

func network(t require.TestingT, c Config) *Network {
	n, err := New(c)
	require.NoError(t, err)
	return n
}

func received(t require.TestingT, e *End) (all []fabric.Packet) {
	packets := make([]fabric.Packet, 3)
	for {
		n, err := e.Receive(packets)
		require.NoError(t, err)
		for _, p := range packets[:n] {
			p.Data = append([]byte(nil), p.Data...)
			all = append(all, p)
		}
		if n < len(packets) {
			return all
		}
	}
}

func TestPacketsArriveAsTheyWereSentAndInTime(t *testing.T) {
	n := network(t, Config{Faults: chaos.Faults{Delay: time.Millisecond}})
	a, b := n.Join(1), n.Join(2)
	data := []byte("first")
	sent, err := a.Send([]fabric.Packet{{Peer: 2, Class: fabric.Bulk, Path: 3, Data: data}, {Peer: 2, Data: []byte("second")}, {Peer: 9}})
	require.NoError(t, err)
	require.Equal(t, 3, sent)
	data[0] = 'X' // it was taken
	_, any := n.Step(time.Millisecond - 1)
	assert.False(t, any)
	assert.Empty(t, received(t, b))
	to, any := n.Step(time.Second)
	require.True(t, any)
	assert.Equal(t, fabric.Task(2), to)
	assert.Equal(t, time.Millisecond, n.Now())
	n.Step(time.Second)
	assert.Equal(t, []fabric.Packet{{Peer: 1, Class: fabric.Bulk, Path: 3, Data: []byte("first")}, {Peer: 1, Data: []byte("second")}}, received(t, b))
	_, any = n.Step(time.Second)
	assert.False(t, any)
	assert.EqualValues(t, 1, n.Lost(), "what is for nobody")
	assert.Equal(t, time.Second, n.Now())
	assert.Equal(t, fabric.Task(1), a.Self())

	_, err = a.Send([]fabric.Packet{{Peer: 2, Data: make([]byte, a.MTU(2)+1)}})
	assert.ErrorIs(t, err, fabric.ErrLength)
	require.NoError(t, a.Close())
	_, err = a.Send([]fabric.Packet{{Peer: 2}})
	assert.ErrorIs(t, err, fabric.ErrClosed)
	_, err = a.Receive(nil)
	assert.ErrorIs(t, err, fabric.ErrClosed)
}

func TestTimersStopTheClock(t *testing.T) {
	n := network(t, Config{})
	e := n.Join(4)
	e.Timer(50)
	e.Timer(30) // instead
	to, any := n.Step(100)
	require.True(t, any)
	assert.EqualValues(t, 4, to)
	assert.EqualValues(t, 30, n.Now())
	_, any = n.Step(100)
	assert.False(t, any, "there is one timer")
	e.Timer(120)
	e.Timer(150)
	e.Timer(140) // instead
	_, any = n.Step(130)
	assert.False(t, any)
	_, any = n.Step(200)
	require.True(t, any)
	assert.EqualValues(t, 140, n.Now())
	_, any = n.Step(200)
	assert.False(t, any)
}

func TestWaitMovesTime(t *testing.T) {
	n := network(t, Config{Faults: chaos.Faults{Delay: 10}})
	a, b := n.Join(0), n.Join(1)
	_, err := a.Send([]fabric.Packet{{Peer: 1}})
	require.NoError(t, err)
	b.Wait(100)
	assert.EqualValues(t, 10, n.Now())
	require.Len(t, received(t, b), 1)
	b.Wait(100)
	assert.EqualValues(t, 110, n.Now(), "nothing came")
	b.Wake()
	b.Wait(100)
	assert.EqualValues(t, 110, n.Now())
}

func TestCutsDeathsAndSlowTasks(t *testing.T) {
	n := network(t, Config{Faults: chaos.Faults{Delay: 10}})
	a, b := n.Join(0), n.Join(1)
	send := func(from *End, to fabric.Task) {
		_, err := from.Send([]fabric.Packet{{Peer: to}})
		require.NoError(t, err)
	}
	send(a, 1)
	n.Cut(1, 0)
	n.Step(20)
	assert.Empty(t, received(t, b), "it was under way")
	n.Heal(0, 1)
	send(a, 1)
	n.Step(30)
	assert.Len(t, received(t, b), 1)

	a.Slow(100)
	send(a, 1)
	n.Step(time.Hour)
	assert.EqualValues(t, 140, n.Now())

	require.NoError(t, b.Close())
	send(a, 1)
	_, any := n.Step(2 * time.Hour)
	assert.False(t, any)
	again := n.Join(1)
	send(a, 1)
	n.Step(3 * time.Hour)
	assert.Len(t, received(t, again), 1)
}

func TestALinkHasARateAndAQueue(t *testing.T) {
	n := network(t, Config{Rate: 1e9, Queue: 3000, MTU: 1000})
	a, b := n.Join(0), n.Join(1)
	for range 5 {
		_, err := a.Send([]fabric.Packet{{Peer: 1, Data: make([]byte, 1000)}})
		require.NoError(t, err)
	}
	var times []time.Duration
	for {
		if _, any := n.Step(time.Second); !any {
			break
		}
		times = append(times, n.Now())
	}
	assert.Equal(t, []time.Duration{1000, 2000, 3000}, times, "ns, a byte each")
	assert.Len(t, received(t, b), 3)
	assert.EqualValues(t, 2, n.Lost())
}

// The same seed gives the same run, and faults come as often as they should.
func TestFaultsAreSeeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Config{Seed: rapid.Uint64().Draw(t, "seed"), Faults: chaos.Faults{
			Loss: 0.3, Repeat: 0.2, Corrupt: 0.2, Truncate: 0.1, Delay: 100, Jitter: 1000, Late: 0.1, LateBy: 100_000,
		}}
		run := func() (all []fabric.Packet, times []time.Duration) {
			n := network(t, c)
			a, b := n.Join(0), n.Join(1)
			for i := range 1000 {
				_, err := a.Send([]fabric.Packet{{Peer: 1, Data: []byte{byte(i), byte(i >> 8), 7, 7, 7, 7, 7, 7}}})
				require.NoError(t, err)
			}
			for {
				if _, any := n.Step(time.Second); !any {
					return all, times
				}
				all = append(all, received(t, b)...)
				times = append(times, n.Now())
			}
		}
		first, times := run()
		second, timesAgain := run()
		require.Equal(t, first, second)
		require.Equal(t, times, timesAgain)
		require.InDelta(t, 1000*(0.7+0.2), len(first), 150)
		damaged, overtaken, last := 0, 0, 0
		for _, p := range first {
			if len(p.Data) < 8 || string(p.Data[2:]) != "\a\a\a\a\a\a" {
				damaged++
				continue
			}
			if i := int(p.Data[0]) | int(p.Data[1])<<8; i < last {
				overtaken++
			} else {
				last = i
			}
		}
		require.InDelta(t, 0.25*float64(len(first)), damaged, 100)
		require.Positive(t, overtaken)
		require.LessOrEqual(t, times[len(times)-1], time.Duration(101_100))
	})
}

func TestANetworkThatCanNotBeIsRefused(t *testing.T) {
	for _, f := range []chaos.Faults{{Loss: 1.1}, {Repeat: -0.1}, {Delay: -1}} {
		_, err := New(Config{Faults: f})
		assert.Error(t, err)
	}
}
