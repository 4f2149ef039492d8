package chaos_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/runtime/fabric"
	"evenkeel/runtime/fabric/chaos"
	"evenkeel/runtime/fabric/sim"
)

// ends is two tasks on a perfect network without delays, the first behind faults.
func ends(t *testing.T, faults chaos.Faults) (*sim.Network, *chaos.Fabric, *sim.End) {
	n, err := sim.New(sim.Config{})
	require.NoError(t, err)
	a, b := n.Join(0), n.Join(1)
	f, err := chaos.New(a, 1, faults, n.Now)
	require.NoError(t, err)
	return n, f, b
}

func send(t *testing.T, f fabric.Fabric, count int) {
	for i := range count {
		sent, err := f.Send([]fabric.Packet{{Peer: 1 - f.Self(), Data: []byte{byte(i), byte(i >> 8)}}})
		require.NoError(t, err)
		require.Equal(t, 1, sent)
	}
}

func receive(t *testing.T, f fabric.Fabric) (numbers []int) {
	packets := make([]fabric.Packet, 10)
	for {
		n, err := f.Receive(packets)
		require.NoError(t, err)
		for _, p := range packets[:n] {
			if len(p.Data) == 2 {
				numbers = append(numbers, int(p.Data[0])|int(p.Data[1])<<8)
			}
		}
		if n < len(packets) {
			return numbers
		}
	}
}

func TestWithoutFaultsNothingChanges(t *testing.T) {
	n, f, b := ends(t, chaos.Faults{})
	send(t, f, 100)
	for range 100 {
		n.Step(time.Second)
	}
	got := receive(t, b)
	require.Len(t, got, 100)
	for i := range got {
		assert.Equal(t, i, got[i])
	}
}

func TestPacketsAreLostAndRepeated(t *testing.T) {
	n, f, b := ends(t, chaos.Faults{Loss: 0.5, Repeat: 0.25})
	send(t, f, 4000)
	b.Wait(0)
	for {
		if _, any := n.Step(time.Second); !any {
			break
		}
	}
	counts := map[int]int{}
	for _, i := range receive(t, b) {
		counts[i]++
	}
	once, twice := 0, 0
	for _, c := range counts {
		switch c {
		case 1:
			once++
		case 2:
			twice++
		default:
			t.Fatalf("%d copies", c)
		}
	}
	assert.InDelta(t, 4000*(0.5*0.75+0.5*0.25), once, 200, "neither, or both")
	assert.InDelta(t, 4000*0.5*0.25, twice, 150)
}

// A packet that is held up leaves when its time has come, by any call.
func TestHeldUpPacketsLeaveInTime(t *testing.T) {
	n, f, b := ends(t, chaos.Faults{Delay: time.Millisecond, Jitter: time.Millisecond})
	send(t, f, 100)
	n.Step(time.Millisecond - 1)
	_, err := f.Receive(nil)
	require.NoError(t, err)
	n.Step(n.Now())
	assert.Empty(t, receive(t, b))
	var got []int
	for range 200 {
		f.Wait(time.Hour) // until the next one is due
		require.LessOrEqual(t, n.Now(), time.Hour)
		for {
			if _, any := n.Step(n.Now()); !any {
				break
			}
		}
		got = append(got, receive(t, b)...)
		if len(got) == 100 {
			break
		}
	}
	require.Len(t, got, 100)
	assert.LessOrEqual(t, n.Now(), 2*time.Millisecond)
	ordered := true
	for i := 1; i < len(got); i++ {
		ordered = ordered && got[i-1] < got[i]
	}
	assert.False(t, ordered)
}

func TestACutLosesBothDirections(t *testing.T) {
	n, f, b := ends(t, chaos.Faults{})
	f.Cut(1)
	send(t, f, 3)
	send(t, b, 3)
	for {
		if _, any := n.Step(time.Second); !any {
			break
		}
	}
	assert.Empty(t, receive(t, b))
	assert.Empty(t, receive(t, f))
	f.Heal(1)
	send(t, f, 3)
	send(t, b, 2)
	for {
		if _, any := n.Step(time.Minute); !any {
			break
		}
	}
	assert.Len(t, receive(t, b), 3)
	assert.Len(t, receive(t, f), 2)
	_, err := f.Send([]fabric.Packet{{Peer: 1, Data: make([]byte, 5000)}})
	assert.ErrorIs(t, err, fabric.ErrLength)
}
