package shm

import (
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"evenkeel/runtime/fabric"
	"evenkeel/runtime/fabric/fabrictest"
)

// join makes the fabrics of so many tasks in this process; all must succeed.
func join(t *testing.T, tasks int, o Options) ([]*Fabric, []fabric.Meeting) {
	fabrics, errs, meetings := tryJoin(tasks, func(int) Options { return o })
	for _, err := range errs {
		require.NoError(t, err)
	}
	return fabrics, meetings
}

func tryJoin(tasks int, options func(task int) Options) ([]*Fabric, []error, []fabric.Meeting) {
	meetings := fabrictest.Meetings(tasks)
	fabrics, errs := make([]*Fabric, tasks), make([]error, tasks)
	var all sync.WaitGroup
	for i, m := range meetings {
		all.Add(1)
		go func() {
			defer all.Done()
			fabrics[i], errs[i] = Join(m, options(i))
		}()
	}
	all.Wait()
	return fabrics, errs, meetings
}

func TestConformance(t *testing.T) {
	for name, c := range map[string]struct {
		tasks int
		o     Options
	}{
		"two tasks":                    {2, Options{}},
		"three tasks with small FIFOs": {3, Options{Slots: 4, Buffer: 1024}},
	} {
		t.Run(name, func(t *testing.T) {
			before := entries(t, "/dev/shm")
			fabrics, meetings := join(t, c.tasks, c.o)
			var ends []fabrictest.End
			for i, f := range fabrics {
				ends = append(ends, fabrictest.End{Fabric: f, Meeting: meetings[i], Priority: true, Bounded: true})
			}
			assert.Equal(t, before, entries(t, "/dev/shm"), "nothing has a name any more")
			fabrictest.Run(t, ends...)
		})
	}
}

// Whoever always has a full FIFO holds up nobody else, though the receiver takes few packets at a time.
func TestSendersTakeTurns(t *testing.T) {
	fabrics, _ := join(t, 3, Options{Slots: 8, Buffer: 64})
	to := fabrics[0]
	fill := func(from *Fabric) {
		for n := 1; n == 1; {
			var err error
			n, err = from.Send([]fabric.Packet{{Peer: 0, Data: []byte("more")}})
			require.NoError(t, err)
		}
		assert.Len(t, from.full, 1, "a FIFO that is full is remembered once")
	}
	came := map[fabric.Task]int{}
	var packets [2]fabric.Packet
	for range 20 {
		for _, from := range fabrics[1:] {
			fill(from)
			fill(from)
		}
		n, err := to.Receive(packets[:])
		require.NoError(t, err)
		for _, p := range packets[:n] {
			came[p.Peer]++
		}
	}
	assert.Equal(t, map[fabric.Task]int{1: 20, 2: 20}, came)
	for _, f := range fabrics {
		require.NoError(t, f.Close())
	}
}

// Who found a FIFO full hears when there is room again, and that once.
func TestRoomIsAnArrival(t *testing.T) {
	fabrics, _ := join(t, 2, Options{Slots: 4, Buffer: 64})
	defer fabrics[0].Close()
	defer fabrics[1].Close()
	n, err := fabrics[0].Send(make([]fabric.Packet, 9))
	require.NoError(t, err)
	require.Equal(t, 4, n, "to itself")
	batch := make([]fabric.Packet, 9)
	for i := range batch {
		batch[i].Peer = 1
	}
	n, err = fabrics[0].Send(batch)
	require.NoError(t, err)
	require.Equal(t, 4, n)
	var packets [8]fabric.Packet
	for n = 1; n > 0; {
		n, err = fabrics[0].Receive(packets[:])
		require.NoError(t, err)
	}
	require.True(t, fabrics[0].Arrived(), "room in its own FIFO")
	require.False(t, fabrics[0].Arrived())
	for n = 1; n > 0; {
		n, err = fabrics[1].Receive(packets[:])
		require.NoError(t, err)
	}
	assert.True(t, fabrics[0].Arrived())
	assert.False(t, fabrics[0].Arrived())
}

// The doorbell is rung for who sleeps and for nobody else, and is quiet again when its owner is up: who hears it for ever
// never sleeps again.
func TestDoorbellIsQuietAgain(t *testing.T) {
	fabrics, _ := join(t, 2, Options{})
	defer fabrics[0].Close()
	defer fabrics[1].Close()
	rings := func() bool {
		bell := []unix.PollFd{{Fd: int32(fabrics[1].Descriptors()[0]), Events: unix.POLLIN}}
		n, err := unix.Poll(bell, 0)
		require.NoError(t, err)
		return n == 1
	}
	send := func() {
		n, err := fabrics[0].Send([]fabric.Packet{{Peer: 1, Data: []byte("ding")}})
		require.NoError(t, err)
		require.Equal(t, 1, n)
	}
	drain := func() {
		var packets [4]fabric.Packet
		for n := 1; n > 0; {
			var err error
			n, err = fabrics[1].Receive(packets[:])
			require.NoError(t, err)
		}
	}
	send()
	assert.False(t, rings(), "nobody sleeps")
	assert.False(t, fabrics[1].Arm(), "a packet is there")
	fabrics[1].Disarm()
	drain()
	require.True(t, fabrics[1].Arm())
	send()
	assert.True(t, rings())
	fabrics[1].Disarm()
	assert.False(t, rings())
	send()
	assert.False(t, rings(), "its owner is up")
}

// More tasks than bits in a word; each sends to all, itself too.
func TestManyTasks(t *testing.T) {
	const tasks = 67
	fabrics, _ := join(t, tasks, Options{Slots: 4, Buffer: 64})
	for _, f := range fabrics {
		for peer := range tasks {
			n, err := f.Send([]fabric.Packet{{Peer: fabric.Task(peer), Data: []byte{byte(peer)}}})
			require.NoError(t, err)
			require.Equal(t, 1, n)
		}
	}
	for _, f := range fabrics {
		came := map[fabric.Task]int{}
		var packets [10]fabric.Packet
		for {
			n, err := f.Receive(packets[:])
			require.NoError(t, err)
			if n == 0 {
				break
			}
			for _, p := range packets[:n] {
				require.Equal(t, []byte{byte(f.Self())}, p.Data)
				came[p.Peer]++
			}
		}
		assert.Len(t, came, tasks)
		for task, n := range came {
			assert.Equal(t, 1, n, "from task %d", task)
		}
	}
	for _, f := range fabrics {
		require.NoError(t, f.Close())
	}
}

// A slot that says that its packet is longer than a buffer, as a broken sender
// might, shows no memory beyond it.
func TestLengthBeyondTheBuffer(t *testing.T) {
	fabrics, _ := join(t, 2, Options{Slots: 4, Buffer: 128})
	defer fabrics[0].Close()
	defer fabrics[1].Close()
	n, err := fabrics[0].Send([]fabric.Packet{{Peer: 1, Data: make([]byte, 100)}})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	s := fabrics[0].senders[fabric.Control][1]
	s.slot(0).word |= lengthMask
	var packets [1]fabric.Packet
	n, err = fabrics[1].Receive(packets[:])
	require.NoError(t, err)
	require.Equal(t, 1, n)
	assert.Len(t, packets[0].Data, 128)
}

func TestTasksThatDisagree(t *testing.T) {
	fabrics, errs, _ := tryJoin(3, func(task int) Options { return Options{Slots: 8 << (task / 2)} })
	for task, err := range errs {
		assert.Nil(t, fabrics[task])
		assert.ErrorContains(t, err, "FIFOs", "task %d", task)
	}
	_, errs, _ = tryJoin(2, func(int) Options { return Options{Slots: 5} })
	for _, err := range errs {
		assert.ErrorContains(t, err, "power of two")
	}
	_, errs, _ = tryJoin(2, func(int) Options { return Options{Buffer: 100} })
	for _, err := range errs {
		assert.ErrorContains(t, err, "multiple of 64")
	}
	_, errs, _ = tryJoin(2, func(int) Options { return Options{Directory: "/nowhere"} })
	for _, err := range errs {
		assert.ErrorContains(t, err, "/nowhere")
	}
}

// Tasks whose directories are different file systems are on different nodes.
func TestNodes(t *testing.T) {
	other := t.TempDir()
	fabrics, errs, _ := tryJoin(4, func(task int) Options {
		if task%2 == 1 {
			return Options{Directory: other}
		}
		return Options{}
	})
	for task, err := range errs {
		require.NoError(t, err)
		f := fabrics[task]
		assert.Equal(t, []fabric.Task{fabric.Task(task % 2), fabric.Task(task%2 + 2)}, f.Tasks())
		assert.False(t, f.Reaches(fabric.Task(1-task%2)))
		for _, p := range []fabric.Packet{{Peer: fabric.Task(1 - task%2)}, {Peer: 3 + fabric.Task(task%2)}, {Peer: 1 << 31},
			{Peer: f.Self(), Class: fabric.Classes}} {
			n, err := f.Send([]fabric.Packet{p})
			assert.Zero(t, n, "%+v", p)
			assert.ErrorIs(t, err, fabric.ErrPeer, "%+v", p)
		}
		require.NoError(t, f.Close())
	}
}

// Two tasks have as much memory as their packets needed until now.
func TestMemoryFollowsWhatWasSent(t *testing.T) {
	const pages, buffer, slots = 4096, 8192, 64
	fabrics, _ := join(t, 2, Options{Slots: slots, Buffer: buffer})
	held := func() int64 {
		var s unix.Stat_t
		require.NoError(t, unix.Fstat(fabrics[0].area, &s))
		return s.Blocks * 512
	}
	pass := func(class fabric.Class, length, packets int) {
		received := make([]fabric.Packet, 1)
		for range packets {
			n, err := fabrics[0].Send([]fabric.Packet{{Peer: 1, Class: class, Data: make([]byte, length)}})
			require.NoError(t, err)
			require.Equal(t, 1, n)
			n, err = fabrics[1].Receive(received)
			require.NoError(t, err)
			require.Equal(t, 1, n)
			require.Len(t, received[0].Data, length)
		}
	}
	none := held()
	pass(fabric.Control, 56, 1000)
	short := held()
	assert.LessOrEqual(t, short-none, int64(2*(slots*64+2*pages)), "the slots of two classes")
	pass(fabric.Bulk, 100, 3)
	assert.LessOrEqual(t, held()-short, int64(3*pages), "three packets")
	pass(fabric.Bulk, buffer, 2*slots)
	full := held()
	assert.InDelta(t, slots*buffer, full-short, 2*pages, "all buffers of a class")
	pass(fabric.Bulk, buffer, 10*slots)
	assert.Equal(t, full, held(), "no more than that")
	for _, f := range fabrics {
		require.NoError(t, f.Close())
	}
}

// No room in the directory: an error that says so, and no task dies of a SIGBUS.
func TestNoRoom(t *testing.T) {
	directory := t.TempDir()
	if err := unix.Mount("none", directory, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("a small file system can't be mounted: %v", err)
	}
	defer unix.Unmount(directory, 0)
	fabrics, errs, _ := tryJoin(2, func(int) Options { return Options{Directory: directory} })
	for _, err := range errs {
		require.NoError(t, err)
	}
	long := make([]fabric.Packet, 64)
	for i := range long {
		long[i] = fabric.Packet{Peer: 1, Class: fabric.Bulk, Data: make([]byte, 8192)}
	}
	sent, err := fabrics[0].Send(long)
	assert.Less(t, sent, 64)
	assert.ErrorContains(t, err, "no room")
	n, err := fabrics[0].Send([]fabric.Packet{{Peer: 1}})
	assert.Equal(t, 1, n, "what needs no more memory goes")
	assert.NoError(t, err)
	n, err = fabrics[1].Receive(make([]fabric.Packet, 64))
	assert.Equal(t, sent+1, n)
	assert.NoError(t, err)
	for _, f := range fabrics {
		require.NoError(t, f.Close())
	}
}

func entries(t *testing.T, directory string) (names []string) {
	all, err := os.ReadDir(directory)
	require.NoError(t, err)
	for _, e := range all {
		if len(e.Name()) > 15 && e.Name()[:15] == "evenkeel-fifos-" {
			names = append(names, e.Name())
		}
	}
	return names
}
