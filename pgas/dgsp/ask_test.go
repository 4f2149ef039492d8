package dgsp

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A message that asks has a description and no data, is described once however often it is asked, ends
// when the receiver's shell has served it, and only names a layout that is held.
func TestAskingForData(t *testing.T) {
	e := newEnds(t, DefaultLimits())
	program := irregular(t, 1)
	described := 0
	deliver := func(packets [][]byte) {
		for _, p := range packets {
			assert.Equal(t, describes, kindOf(p))
			require.NoError(t, e.receiver.Step(0, p))
			for _, f := range e.receiver.Effects() {
				require.Equal(t, Described, f.Kind)
				assert.True(t, f.Ask)
				assert.Equal(t, program.Wire(), f.Program.Wire())
				assert.Equal(t, 77, f.Base)
				described++
				require.NoError(t, e.receiver.Accept(f.Peer, f.Number))
			}
		}
	}
	for round := range 2 {
		n, err := e.sender.Put(e.now, Message{Ask: true, Target: program, Window: 1, Base: 77})
		require.NoError(t, err)
		packets := e.packets()
		assert.Equal(t, round == 0, len(packets) > 1, "a layout that is held is only named")
		deliver(packets)
		assert.Equal(t, round+1, described)
		e.report()
		assert.Empty(t, e.sender.Outcomes(), "it has not been served")
		for range 3 { // it asks again, to see whether the receiver lives
			at, under := e.sender.Deadline()
			require.True(t, under)
			e.now = at
			e.sender.Tick(e.now)
			again := e.packets()
			assert.NotEmpty(t, again)
			deliver(again)
			e.report()
		}
		assert.Equal(t, round+1, described)
		require.NoError(t, e.receiver.Served(0, n))
		assert.Error(t, e.receiver.Served(0, n), "once")
		e.report()
		assert.Equal(t, []Outcome{{Number: n}}, e.sender.Outcomes())
		deliver(packets) // late ones change nothing
		assert.Equal(t, round+1, described)
	}
	c := e.receiver.Counts()
	assert.Equal(t, 2, c.Served)
	assert.Zero(t, c.Placed)
	assert.Positive(t, c.Hits)

	n, err := e.sender.Put(e.now, Message{Ask: true, Target: program, Window: 1, Base: 77})
	require.NoError(t, err)
	deliver(e.packets())
	require.NoError(t, e.receiver.Refuse(0, n, Busy))
	e.report()
	outcomes := e.sender.Outcomes()
	require.Len(t, outcomes, 1)
	assert.ErrorIs(t, outcomes[0].Err, Busy)
}

func TestAskingForWhatCanNotBe(t *testing.T) {
	e := newEnds(t, DefaultLimits())
	block := compiled(t, Block(8))
	for _, m := range []Message{
		{Ask: true}, {Ask: true, Target: block, Source: block, Memory: make([]byte, 8)}, {Ask: true, Target: block, Handler: 1},
	} {
		_, err := e.sender.Put(0, m)
		assert.Error(t, err)
	}
	n := e.put(block)
	e.take(e.packets()...)
	assert.Error(t, e.receiver.Served(0, n), "it does not ask")

	asks := description{sizes: sizes{0, 100}, hash: block.Hash(), pieceSize: 100, asks: true}
	head := head{kind: describes, number: 9}
	require.NoError(t, e.receiver.Step(1, asks.append(head.append(nil))))
	for _, change := range []func(*description){
		func(d *description) { d.size = 8 },
		func(d *description) { d.handler = 3 },
	} {
		wrong := asks
		change(&wrong)
		assert.ErrorIs(t, e.receiver.Step(1, wrong.append(head.append(nil))), ErrPacket)
	}
}
