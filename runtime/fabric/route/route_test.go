package route

import (
	"sync"
	"testing"
	"time"

	"github.com/pkg/errors"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/runtime/config"
	"evenkeel/runtime/fabric"
	"evenkeel/runtime/fabric/fabrictest"
	"evenkeel/runtime/fabric/shm"
	"evenkeel/runtime/fabric/udp"
)

func each(tasks int, make func(m fabric.Meeting) (*Fabric, error)) ([]*Fabric, []error, []fabric.Meeting) {
	meetings := fabrictest.Meetings(tasks)
	fabrics, errs := []*Fabric{}, []error{}
	for range meetings {
		fabrics, errs = append(fabrics, nil), append(errs, nil)
	}
	var all sync.WaitGroup
	for i, m := range meetings {
		all.Add(1)
		go func() {
			defer all.Done()
			fabrics[i], errs[i] = make(m)
		}()
	}
	all.Wait()
	return fabrics, errs, meetings
}

// Tasks of two nodes: those of one share memory.
func nodes(t *testing.T, tasks int) ([]*Fabric, []fabric.Meeting) {
	directories := []string{t.TempDir(), t.TempDir()}
	fabrics, errs, meetings := each(tasks, func(m fabric.Meeting) (*Fabric, error) {
		s, err := shm.Join(m, shm.Options{Directory: directories[m.Self()%2]})
		if err != nil {
			return nil, err
		}
		u, err := udp.Join(m, udp.Options{Address: "127.0.0.1", MTU: 8200})
		if err != nil {
			return nil, err
		}
		return New(20*time.Microsecond, Way{SharedMemory, s, s.Reaches}, Way{UDP, u, nil})
	})
	for _, err := range errs {
		require.NoError(t, err)
	}
	return fabrics, meetings
}

func TestConformance(t *testing.T) {
	for _, tasks := range []int{2, 3} { // all on different nodes; some on the same
		fabrics, meetings := nodes(t, tasks)
		var ends []fabrictest.End
		for i, f := range fabrics {
			ends = append(ends, fabrictest.End{Fabric: f, Meeting: meetings[i]})
		}
		fabrictest.Run(t, ends...)
	}
}

func TestEachPairHasItsWay(t *testing.T) {
	fabrics, _ := nodes(t, 4)
	for self, f := range fabrics {
		defer f.Close()
		for peer := range fabric.Task(4) {
			same := int(peer)%2 == self%2
			assert.Equal(t, map[bool]string{true: SharedMemory, false: UDP}[same], f.Way(peer))
			assert.Equal(t, same, f.Lossless(peer))
		}
		assert.Equal(t, "shared memory, UDP", f.String())
	}
}

// What claims over UDP to come from a task of the node does not: it would be
// believed without a tag.
func TestPacketsThatGoAstray(t *testing.T) {
	fabrics, _ := nodes(t, 4)
	for _, f := range fabrics {
		defer f.Close()
	}
	// Task 2 shares a node with 0, and sends to it by the other way.
	n, err := fabrics[2].ways[1].fabric.Send([]fabric.Packet{{Peer: 0, Data: []byte("forged")}})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	n, err = fabrics[1].Send([]fabric.Packet{{Peer: 0, Data: []byte("real")}})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	var came []string
	for len(came) < 1 || fabrics[0].Foreign() < 1 {
		var packets [4]fabric.Packet
		fabrics[0].Wait(time.Second)
		n, err := fabrics[0].Receive(packets[:])
		require.NoError(t, err)
		for _, p := range packets[:n] {
			came = append(came, string(p.Data))
		}
	}
	assert.Equal(t, []string{"real"}, came)
}

func settings(values ...string) config.Config {
	c, _ := config.Load(values)
	return c
}

func TestSettings(t *testing.T) {
	noMPI := errors.New("no MPI here")
	join := func(mpi func() (fabric.Sleeper, error), values ...string) (*Fabric, error) {
		fabrics, errs, _ := each(2, func(m fabric.Meeting) (*Fabric, error) {
			return Join(m, Options{Settings: settings(values...), MPI: mpi})
		})
		t.Cleanup(func() {
			for _, f := range fabrics {
				if f != nil {
					assert.NoError(t, f.Close())
				}
			}
		})
		assert.Equal(t, errs[0] == nil, errs[1] == nil)
		return fabrics[0], errs[0]
	}
	failing := func() (fabric.Sleeper, error) { return nil, noMPI }

	f, err := join(nil)
	require.NoError(t, err)
	assert.Equal(t, "shared memory", f.String(), "a job on one node needs no network")
	f, err = join(nil, "EVENKEEL_FABRIC_NODE=0")
	require.NoError(t, err)
	assert.Equal(t, UDP, f.Way(1))
	_, err = join(failing, "EVENKEEL_FABRIC=mpi", "EVENKEEL_FABRIC_NODE=0")
	assert.ErrorIs(t, err, noMPI)
	_, err = join(nil, "EVENKEEL_FABRIC=mpi", "EVENKEEL_FABRIC_NODE=0")
	assert.ErrorContains(t, err, "EVENKEEL_FABRIC=mpi")
	_, err = join(failing, "EVENKEEL_UDP_ADDRESS=203.0.113.0/24", "EVENKEEL_FABRIC_NODE=0")
	assert.ErrorContains(t, err, "203.0.113.0/24")
	assert.ErrorContains(t, err, "no MPI here")
	_, err = join(failing, "EVENKEEL_UDP_ADDRESS=203.0.113.0/24", "EVENKEEL_FABRIC_NODE=0", "EVENKEEL_FABRIC=udp")
	assert.ErrorContains(t, err, "203.0.113.0/24")
	assert.NotContains(t, err.Error(), "no MPI here")
	_, errs, _ := each(2, func(m fabric.Meeting) (*Fabric, error) {
		return Join(m, Options{Settings: settings("EVENKEEL_SHM_SLOTS=" + []string{"8", "16"}[m.Self()])})
	})
	for _, err := range errs {
		assert.ErrorContains(t, err, "FIFOs")
	}
	_, err = New(0)
	assert.Error(t, err)
}
