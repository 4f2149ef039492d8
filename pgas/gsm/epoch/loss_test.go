package epoch

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/pgas/gsm/wire"
	"evenkeel/runtime/fabric"
	"evenkeel/runtime/fabric/chaos"
	"evenkeel/runtime/fabric/sim"
)

// link is a network of 10 Gbit/s with a round trip of some 10 µs.
func link(seed uint64, loss float64, repairs int) plan {
	return plan{
		Seed: seed, Tasks: 2, MTU: 1472, Rate: 1.25e9, Queue: 1 << 20, Longest: 8,
		Faults: chaos.Faults{Loss: loss, Delay: 5 * time.Microsecond, Jitter: time.Microsecond},
		Config: func(c *Config) { c.Repairs = repairs },
	}
}

// carries has task 0 do operations of so many bytes on task 1, so many of them under way at a time, and returns how long
// that takes in virtual time.
func carries(t *testing.T, p plan, op wire.Op, bytes, under, operations int) time.Duration {
	w := newWorld(t, p)
	k, memory := w.tasks[0], &sink{}
	w.tasks[1].endpoint.Config.Memory = func(fabric.Task, wire.Key) Memory { return memory }
	data := make([]byte, bytes)
	started, ended := 0, 0
	for {
		n := k.endpoint.Notifications(nil)
		for _, n := range n {
			require.Equal(t, wire.OK, n.Reason)
		}
		ended += len(n)
		if ended == operations {
			return w.network.Now()
		}
		for ; started < operations && started-ended < under; started++ {
			require.NoError(t, k.endpoint.Submit(w.network.Now(), Command{Op: op, Peer: 1, Data: data}))
		}
		k.send()
		self, any := w.network.Step(w.network.Now() + time.Hour)
		require.True(t, any)
		w.tasks[self].turnKeeping()
	}
}

// sink is a memory of any size that holds nothing.
type sink struct{}

func (*sink) Check(wire.Window, wire.Op, uint64, uint64) error { return nil }
func (*sink) Write(wire.Window, uint64, []byte) error          { return nil }
func (*sink) Read(wire.Window, uint64, []byte) error           { return nil }
func (*sink) Atomic(wire.Window, uint64, wire.Op, int, uint64, uint64) (uint64, error) {
	return 0, nil
}

// One packet in a hundred is lost. Repairing inside the epoch keeps more than half of the bandwidth; raising the epoch,
// as the protocol was first described, sends all that is under way again.
func TestALostPacketDoesNotCostTheMessage(t *testing.T) {
	const bytes, operations, seeds = 1 << 20, 20, 5
	for _, op := range []wire.Op{wire.Put, wire.Get} {
		lossless := carries(t, link(1, 0, 6), op, bytes, 2, operations)
		ideal := time.Duration(float64(bytes) * operations / 1.25e9 * 1e9)
		assert.Greater(t, float64(ideal)/float64(lossless), 0.8, "of what the link carries")
		var repaired, raised time.Duration
		for seed := range uint64(seeds) {
			repaired += carries(t, link(seed, 0.01, 6), op, bytes, 2, operations) / seeds
			// Shorter ones: of 700 packets one is always lost.
			raised += carries(t, link(seed, 0.01, 0), op, bytes/16, 2, operations) / seeds
		}
		share, described := float64(lossless)/float64(repaired), float64(lossless)/16/float64(raised)
		t.Logf("%v: %.0f%% of the link without loss; at 1 %% loss %.0f%% of that with repair, %.1f%% without",
			op, 100*float64(ideal)/float64(lossless), 100*share, 100*described)
		assert.Greater(t, share, 0.5, "%v", op)
		assert.Greater(t, share, 2*described, "%v: repair pays", op)
	}
}

// Queues that overflow, and queues so long that a round trip takes 80 times as long when they are full, leave most of the
// link to be used; what is sent again is mostly what was lost.
func TestTheWindowFindsTheLinkWhateverItsQueue(t *testing.T) {
	const bytes, operations = 1 << 20, 20
	for _, op := range []wire.Op{wire.Put, wire.Get} {
		for _, mtu := range []int{1472, 16 << 10} {
			for _, queue := range []int{64 << 10, 1 << 20} {
				p := link(1, 0, 10)
				p.MTU, p.Queue = mtu, queue
				share := float64(bytes) * operations / 1.25e9 / carries(t, p, op, bytes, 2, operations).Seconds()
				t.Logf("%v in packets of %d bytes, a queue of %d: %.0f%% of the link", op, mtu, queue, 100*share)
				assert.Greater(t, share, 0.85, "%v, %d, %d", op, mtu, queue)
			}
		}
	}
}

// With a round trip of 11 µs, one packet lost in a hundred must not cost more than a few round trips.
func TestALostPacketCostsFewRoundTrips(t *testing.T) {
	const operations = 20_000
	for _, op := range []wire.Op{wire.Put, wire.Get} {
		lossless := carries(t, link(1, 0, 6), op, 8, 1, operations) / operations
		lossy := carries(t, link(2, 0.01, 6), op, 8, 1, operations) / operations
		t.Logf("%v of 8 bytes: %v, at 1 %% loss %v", op, lossless, lossy)
		assert.Less(t, lossy, 30*time.Microsecond)
		assert.Less(t, lossy, 2*lossless)
	}
}

// 100,000 tasks in one process, each with a few partners: what a task keeps grows with its partners, not with the job.
func TestStateGrowsWithPartnersNotWithTheJob(t *testing.T) {
	const partners = 2
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	perTask := func(tasks int) float64 {
		network, err := sim.New(sim.Config{Faults: chaos.Faults{Delay: time.Microsecond}})
		require.NoError(t, err)
		before := heapBytes()
		memory := &sink{}
		ends, endpoints := make([]*sim.End, tasks), make([]*Endpoint, tasks)
		for self := range tasks {
			ends[self] = network.Join(fabric.Task(self))
			c := Default()
			c.Self, c.Life = fabric.Task(self), 1
			c.MTU = ends[self].MTU
			c.Memory = func(fabric.Task, wire.Key) Memory { return memory }
			endpoints[self], err = New(c)
			require.NoError(t, err)
		}
		buffer, packets := make([]byte, 0, 1472), make([]fabric.Packet, 64)
		send := func(self int) {
			for {
				packet, to, class, ok := endpoints[self].Next(network.Now(), buffer)
				if !ok {
					break
				}
				_, err := ends[self].Send([]fabric.Packet{{Peer: to, Class: class, Data: append(packet, make([]byte, wire.TagLength)...)}})
				require.NoError(t, err)
			}
			if at, any := endpoints[self].Deadline(); any {
				ends[self].Timer(at)
			}
		}
		for self := range tasks {
			for i := range partners {
				peer := fabric.Task((self + 1 + i*i*i*977) % tasks)
				for _, op := range []wire.Op{wire.Put, wire.FetchAndAdd} {
					c := Command{Op: op, Peer: peer, Width: 8, Data: make([]byte, 8)}
					require.NoError(t, endpoints[self].Submit(0, c))
				}
			}
			send(self)
		}
		ended := 0
		for ended < tasks*partners*2 {
			self, any := network.Step(network.Now() + time.Hour)
			require.True(t, any)
			n, err := ends[self].Receive(packets)
			require.NoError(t, err)
			for _, p := range packets[:n] {
				var h wire.Header
				body, reason := h.Decode(p.Data)
				require.Equal(t, wire.OK, reason)
				endpoints[self].Receive(network.Now(), &h, body[:len(body)-wire.TagLength])
			}
			endpoints[self].Advance(network.Now())
			for _, n := range endpoints[self].Notifications(nil) {
				require.Equal(t, wire.OK, n.Reason)
				ended++
			}
			send(int(self))
		}
		for _, e := range endpoints {
			require.LessOrEqual(t, e.Partners(), 2*partners)
		}
		bytes := float64(heapBytes()-before) / float64(tasks)
		runtime.KeepAlive(endpoints)
		runtime.KeepAlive(network)
		return bytes
	}
	few, many := perTask(1000), perTask(100_000)
	t.Logf("a task with %d partners as initiator and %d as target keeps %.0f bytes in a job of 1000 tasks, and %.0f in one of 100,000", partners, partners, few, many)
	assert.Less(t, many, 1.5*few)
	assert.Less(t, many, 32_768.0)
}

func heapBytes() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
