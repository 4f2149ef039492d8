package tests

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"evenkeel/tests/hosts"
)

// schedulesTried is how many schedules the program collective goes through, each with every root.
const schedulesTried = 7

func assertCollectives(t *testing.T, r Result, ranks int) {
	t.Helper()
	assert.Zero(t, r.Status, "%v", r)
	assert.Contains(t, r.Stdout, fmt.Sprintf("%d times by %d schedules among %d tasks\n", schedulesTried*ranks, schedulesTried, ranks))
}

// Broadcast, reduction and barrier by every kind of schedule and from every root, over each fabric; each rank
// checks what it gets.
func TestCollectivesOverFabrics(t *testing.T) {
	for _, fabric := range []string{"shm", "udp", "mpi"} {
		for _, ranks := range []int{2, 3, 8} {
			r := Mpirun(t, Run{Ranks: ranks, Preload: "none"}, Program("collective"), fabric)
			assertCollectives(t, r, ranks)
		}
	}
}

// The same between two hosts with two ranks each.
func TestCollectivesAcrossHosts(t *testing.T) {
	c := hosts.New(t, hosts.Spec{Count: 2, Slots: 2})
	for _, fabric := range []string{"auto", "udp", "mpi"} {
		assertCollectives(t, onHosts(t, c, Program("collective"), fabric), 4)
	}
}
