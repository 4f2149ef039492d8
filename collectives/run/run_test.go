package run

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/collectives"
	"evenkeel/collectives/carrier"
	"evenkeel/runtime/fabric"
	"evenkeel/runtime/fabric/fabrictest"
	"evenkeel/runtime/fabric/shm"
	"evenkeel/runtime/fabric/udp"
)

var joins = map[string]func(fabric.Meeting) (fabric.Fabric, error){
	"udp": func(m fabric.Meeting) (fabric.Fabric, error) { return udp.Join(m, udp.Options{Address: "127.0.0.1"}) },
	"shm": func(m fabric.Meeting) (fabric.Fabric, error) { return shm.Join(m, shm.Options{}) },
}

// lossy loses every so many-th packet.
type lossy struct {
	fabric.Fabric
	every, count int
}

func (l *lossy) Send(packets []fabric.Packet) (int, error) {
	for i := range packets {
		if l.count++; l.count%l.every == 0 {
			continue
		}
		if n, err := l.Fabric.Send(packets[i : i+1]); n == 0 || err != nil {
			return i, err
		}
	}
	return len(packets), nil
}

func sum(before, after []byte) []byte {
	for i := 0; i < len(before); i += 8 {
		binary.LittleEndian.PutUint64(before[i:], binary.LittleEndian.Uint64(before[i:])+binary.LittleEndian.Uint64(after[i:]))
	}
	return before
}

// TestOperations: broadcasts and reductions of several teams, with every root and of
// many sizes, over every fabric, also where it loses packets.
func TestOperations(t *testing.T) {
	for name, join := range joins {
		for _, every := range []int{0, 7} {
			t.Run(fmt.Sprint(name, ", lost: 1 in ", every), func(t *testing.T) {
				const tasks = 6
				var group sync.WaitGroup
				for task, m := range fabrictest.Meetings(tasks) {
					group.Go(func() { operate(t, join, m, fabric.Task(task), tasks, every) })
				}
				group.Wait()
			})
		}
	}
}

func operate(t *testing.T, join func(fabric.Meeting) (fabric.Fabric, error), m fabric.Meeting, self fabric.Task, tasks, every int) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	f, err := join(m)
	if !assert.NoError(t, err) {
		return
	}
	if every > 0 {
		f = &lossy{Fabric: f, every: every}
	}
	link := collectives.Link{Latency: 5000, Overhead: 1000, Gap: 1000, PerByte: 2}
	nodes := func(t collectives.Task) uint32 { return uint32(t) / 2 }
	j, err := Start(carrier.Over(f), Config{Tasks: tasks, Nodes: nodes, Network: collectives.Network{Within: link, Between: link}, Retry: 3 * time.Millisecond, RetryMax: 20 * time.Millisecond})
	if !assert.NoError(t, err) {
		return
	}
	defer func() {
		_, _ = m.Exchange(nil) // the others may need an answer
		assert.NoError(t, j.Close())
	}()
	teams := map[uint32][]fabric.Task{1: {0, 1, 2, 3, 4, 5}, 2: {4, 2, 0}, 3: {5, 3, 1}}
	for _, number := range []uint32{1, 2, 3} {
		members := teams[number]
		g, err := collectives.NewGroup(members, nodes)
		assert.NoError(t, err)
		team, err := j.Team(number, g)
		if err != nil {
			assert.ErrorContains(t, err, "is not of team")
			continue
		}
		random := rand.New(rand.NewSource(int64(number))) // alike in all members
		for round := range 12 {
			root := members[random.Intn(len(members))]
			data := make([]byte, []int{0, 1, 100, 5000, 60000}[random.Intn(5)])
			random.Read(data)
			mine := data
			if self != root {
				mine = nil
			}
			got, err := team.Broadcast(ctx, root, mine)
			if !assert.NoError(t, err) || !assert.Equal(t, len(data), len(got)) || len(data) > 0 && !assert.Equal(t, data, got, "round %d", round) {
				return
			}
			values := make([]byte, 8*[]int{0, 1, 700, 4000}[random.Intn(4)])
			for i := 0; i < len(values); i += 8 {
				binary.LittleEndian.PutUint64(values[i:], uint64(self)+uint64(i))
			}
			total, err := team.Allreduce(ctx, values, 8, sum)
			if !assert.NoError(t, err) || !assert.Equal(t, len(values), len(total)) {
				return
			}
			for i := 0; i < len(total); i += 8 {
				want := uint64(len(members) * i)
				for _, member := range members {
					want += uint64(member)
				}
				if !assert.Equal(t, want, binary.LittleEndian.Uint64(total[i:])) {
					return
				}
			}
		}
		assert.NoError(t, team.Barrier(ctx))
		assert.NoError(t, team.Notify(ctx, members[1]))
	}
}

// TestDifferentRoots: members that do not agree on the root are told so.
func TestDifferentRoots(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var group sync.WaitGroup
	for task, m := range fabrictest.Meetings(2) {
		group.Go(func() {
			f, err := shm.Join(m, shm.Options{})
			if !assert.NoError(t, err) {
				return
			}
			j, err := Start(carrier.Over(f), Config{Tasks: 2, Retry: time.Millisecond, RetryMax: time.Millisecond})
			if !assert.NoError(t, err) {
				return
			}
			g, _ := collectives.NewGroup([]fabric.Task{0, 1, 2}, nil)
			team, err := j.Team(9, g)
			assert.NoError(t, err)
			_, err = j.Team(9, g)
			assert.ErrorContains(t, err, "has a team 9 already")
			if task == 1 {
				_, err = team.Broadcast(ctx, 2, nil)
				assert.ErrorContains(t, err, "expects it of task 2, but task 0 sent it")
				_, err = team.Broadcast(ctx, 7, nil)
				assert.ErrorContains(t, err, "task 7 is not of the group")
			} else {
				short, stop := context.WithTimeout(ctx, 300*time.Millisecond)
				_, err = team.Broadcast(short, 0, []byte("x")) // task 2 is not there
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				stop()
				_, err = team.Reduce(ctx, 0, []byte("odd"), 2, sum)
				assert.ErrorContains(t, err, "3 bytes in elements of 2")
			}
			_, err = m.Exchange(nil)
			assert.NoError(t, err)
			assert.NoError(t, j.Close())
		})
	}
	group.Wait()
	require.False(t, t.Failed())
}
