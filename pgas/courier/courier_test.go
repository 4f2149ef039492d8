package courier_test

import (
	"context"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/pgas/courier"
	"evenkeel/pgas/gsm/credential"
	"evenkeel/pgas/gsm/engine"
	"evenkeel/pgas/gsm/epoch"
	"evenkeel/pgas/gsm/wire"
	"evenkeel/pgas/svd"
	"evenkeel/pgas/svd/directory"
	"evenkeel/runtime/fabric"
	"evenkeel/runtime/fabric/fabrictest"
	"evenkeel/runtime/fabric/relay"
	"evenkeel/runtime/fabric/udp"
)

// TestOverEngines: the directory over active messages, through a relay that loses,
// repeats, corrupts and reorders packets.
func TestOverEngines(t *testing.T) {
	const tasks = 3
	bad := relay.New(netip.MustParseAddr("127.0.0.1"), 1, relay.Impairments{Loss: 0.05, Duplication: 0.05, Corruption: 0.02, Reordering: 0.1, Delay: time.Millisecond})
	t.Cleanup(bad.Close)
	secret, err := credential.Generate()
	require.NoError(t, err)
	directories := make([]*directory.Server, tasks)
	var group sync.WaitGroup
	for i, m := range fabrictest.Meetings(tasks) {
		group.Go(func() {
			f, err := udp.Join(bad.Meeting(m), udp.Options{Address: "127.0.0.1", MTU: 1400})
			if !assert.NoError(t, err) {
				return
			}
			life, err := credential.NewLife()
			assert.NoError(t, err)
			handlers := &engine.Handlers{}
			c := engine.Config{Protocol: epoch.Default(), Fabric: f, Handlers: handlers, Notice: func(string) {}}
			c.Protocol.Job, c.Protocol.Life = 5, life
			c.Protocol.Memory = func(fabric.Task, wire.Key) epoch.Memory { return nil }
			c.Credential, err = credential.New(5, fabric.Task(i), life, secret)
			assert.NoError(t, err)
			e, err := engine.New(c)
			if !assert.NoError(t, err) {
				return
			}
			directories[i], err = directory.Serve(courier.New(e, handlers, 7, nil),
				directory.Config{Config: svd.Config{Tasks: tasks, Retry: time.Second, RetryMax: time.Second}})
			assert.NoError(t, err)
			t.Cleanup(func() {
				assert.NoError(t, directories[i].Close())
				assert.NoError(t, e.Close())
			})
		})
	}
	group.Wait()
	require.False(t, t.Failed())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for round := range 20 {
		home := directories[round%tasks]
		h, err := home.Allocate(svd.Spec{Address: 1, Size: 1, Blocking: 1, Element: 1})
		require.NoError(t, err)
		for _, d := range directories {
			_, err := d.Find(ctx, h)
			require.NoError(t, err)
		}
		require.NoError(t, home.Move(h, func(svd.Entry) (uint64, uint64) { return 2, 1 }))
		for _, d := range directories {
			e, err := d.Find(ctx, h)
			require.NoError(t, err)
			require.Equal(t, uint64(2), e.Address)
		}
		require.NoError(t, directories[(round+1)%tasks].Free(ctx, h))
		assert.ErrorContains(t, directories[(round+2)%tasks].Free(ctx, h), "freed before")
	}
	handles := make([]svd.Handle, tasks)
	for i, d := range directories {
		group.Go(func() {
			var err error
			handles[i], err = d.AllocateAll(ctx, svd.Spec{Address: 9, Size: 1, Blocking: 1, Element: 1})
			assert.NoError(t, err)
		})
	}
	group.Wait()
	require.Equal(t, handles[0], handles[1])
	require.Equal(t, handles[0], handles[2])
}
