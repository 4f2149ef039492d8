package directory

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/collectives"
	"evenkeel/pgas/svd"
)

// The oldest reader of several is waited for, and none that has ended or was closed.
func TestTheOldestReader(t *testing.T) {
	d := single(t)
	a, b, c := d.NewReader(), d.NewReader(), d.NewReader()
	for _, r := range []*Reader{a, b, c} {
		r.Enter()
		d.readers.next()
	}
	for age, end := range []func(){func() {}, a.Exit, b.Close, c.Close} {
		end()
		require.EqualValues(t, age+1, d.readers.oldest())
	}
	require.Equal(t, []*Reader{a}, d.readers.all)
}

// TestReadersAreSeenBehindTheirStores is a litmus test (store buffering) of what a Reader and those who wait for it
// keep in order. The reader stores to memory that is in no cache, Enters, and looks an object up: the processor
// looks while the store that Enter has made still waits behind the others for the memory. Who frees the object
// meanwhile must see the reader nevertheless, and not poison its memory.
func TestReadersAreSeenBehindTheirStores(t *testing.T) {
	t.Run("by interrupts, where there are any", readersAreSeenBehindTheirStores)
	t.Run("by themselves", func(t *testing.T) {
		was := interrupts
		interrupts = func() bool { return false }
		defer func() { interrupts = was }()
		readersAreSeenBehindTheirStores(t)
	})
}

func readersAreSeenBehindTheirStores(t *testing.T) {
	if runtime.GOMAXPROCS(0) < 2 {
		t.Skip("takes two processors at a time")
	}
	const rounds, longest = 10000, 2 * time.Second // where others want the processors a round takes some milliseconds
	const poison, over = 1 << 63, 1 << 62          // no handles of these objects
	var word atomic.Uint64                         // the object's memory
	released := make(chan struct{}, 1)
	d, err := New(Config{Send: func(svd.Task, []byte) {}, Released: func(svd.Range) {
		word.Store(poison)
		released <- struct{}{}
	}, Config: svd.Config{Tasks: 1, Limit: 1400, Retry: time.Second, RetryMax: time.Second,
		Network: collectives.Network{Between: collectives.Link{Latency: 1000, Overhead: 500, Gap: 500, PerByte: 0.5}}}})
	require.NoError(t, err)

	var object, reading atomic.Uint64 // the handle of the present object, and of the one that the reader reads
	met, poisoned := 0, 0
	var group sync.WaitGroup
	group.Go(func() {
		r := d.NewReader()
		defer r.Close()
		const stores = 40 // a processor remembers some more
		far := make([]uint64, 1<<23)
		for i := range far {
			far[i] = 1
		}
		place := uint32(1)
		last := svd.Handle(0)
		for {
			h := svd.Handle(object.Load())
			if h == over {
				return
			}
			if h == last {
				runtime.Gosched() // who frees may wait for this processor
				continue
			}
			last = h
			reading.Store(uint64(h))
			for range place >> 20 { // freeing takes some time too, until it looks for readers
			}
			for range stores {
				place = place*1664525 + 1013904223
				far[place>>9] = 2
			}
			r.Enter()
			if d.Lookup(h) != nil {
				met++
				for range 3000 {
					if word.Load() != uint64(h) {
						poisoned++
						break
					}
				}
			}
			r.Exit()
		}
	})
	round := 0
	for begin := time.Now(); round < rounds && time.Since(begin) < longest; round++ {
		h, err := d.Allocate(svd.Spec{Address: 5, Size: 1, Blocking: 1, Element: 1})
		require.NoError(t, err)
		word.Store(uint64(h))
		object.Store(uint64(h))
		for reading.Load() != uint64(h) {
		}
		require.NoError(t, d.Free(t.Context(), h))
		select {
		case <-released:
		case <-time.After(20 * time.Second):
			t.Fatal("the reader has not seen that someone waits for it")
		}
	}
	object.Store(over)
	group.Wait()
	t.Logf("of %d objects the reader met %d", round, met)
	assert.Positive(t, met)
	assert.Zero(t, poisoned, "times that memory was given away which a reader looked at")
}
