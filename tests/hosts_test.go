package tests

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/runtime/job"
	"evenkeel/runtime/profile"
	"evenkeel/tests/hosts"
)

// onHosts runs a program on two ranks of each host under evenkeel.
func onHosts(t *testing.T, c *hosts.Cluster, program string, args ...string) Result {
	t.Helper()
	j := startOnHosts(t, c, program, args...)
	r := j.Wait(t)
	assertNothingLeftOnHosts(t, c)
	return r
}

func startOnHosts(t *testing.T, c *hosts.Cluster, program string, args ...string) *Running {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "profile")
	env := []string{"LD_PRELOAD=" + Library, "EVENKEEL_OUT=" + dir}
	return start(t, dir, c.Mpirun(t.Context(), 2*c.Count(), env, append([]string{program}, args...)...))
}

// onHost is what a command prints that runs on one host.
func onHost(t *testing.T, c *hosts.Cluster, host int, program string, args ...string) string {
	t.Helper()
	text, err := c.Command(t.Context(), host, program, args...).CombinedOutput()
	require.NoError(t, err, "%s", text)
	return string(text)
}

func assertNothingLeftOnHosts(t *testing.T, c *hosts.Cluster) {
	t.Helper()
	for host := range c.Count() {
		assert.Eventually(t, func() bool {
			return !strings.Contains(onHost(t, c, host, "sh", "-c", "ls /dev/shm; pgrep -af 'evenkeel watc[h]' || true"), "evenkeel")
		}, 30*time.Second, 50*time.Millisecond, "something is left on host %d", host)
	}
}

func TestClocksOfHostsAreAligned(t *testing.T) {
	for _, offset := range []time.Duration{3*time.Second + 123456*time.Nanosecond, -time.Second - 789*time.Nanosecond} {
		t.Run(offset.String(), func(t *testing.T) {
			c := hosts.New(t, hosts.Spec{Count: 2, Slots: 2, ClockOffset: map[int]time.Duration{1: offset}})
			assertTrue(t, sharedCores, func() (truth, *profile.Profile) {
				path := filepath.Join(t.TempDir(), "truth.json")
				r := onHosts(t, c, Program("truth"), "-r", "random", "3", "60", path, "8000")
				require.Equal(t, 0, r.Status, r)
				p := r.Profile(t)
				assertAligned(t, c, p, offset)
				return readTruth(t, path), p
			})
		})
	}
}

// A host that lacks the library is known to the ranks of the others.
func TestHostWithoutEvenkeel(t *testing.T) {
	c := hosts.New(t, hosts.Spec{Count: 2, Slots: 2})
	dir := filepath.Join(t.TempDir(), "profile")
	j := start(t, dir, c.Mpirun(t.Context(), 2, nil, Program("ends"), "reduce", ":",
		"-np", "2", "-x", "LD_PRELOAD="+Library, "-x", "EVENKEEL_OUT="+dir, Program("ends"), "reduce"))
	assertUnaffected(t, j.Wait(t), "2 of the 4 ranks of MPI_COMM_WORLD do not run under evenkeel (rank 0 is the first)", "this run is not recorded")
	assertNothingLeftOnHosts(t, c)
	assert.NoDirExists(t, dir)
}

// assertAligned checks what a profile of two ranks on each of two hosts says of
// them, the second of which has its clock offset.
func assertAligned(t *testing.T, c *hosts.Cluster, p *profile.Profile, offset time.Duration) {
	t.Helper()
	assert.True(t, p.Complete, p.Notes)
	require.Len(t, p.Nodes, 2)
	assert.Equal(t, []string{c.Name(0), c.Name(1)}, []string{p.Nodes[0].Host, p.Nodes[1].Host})
	require.NotNil(t, p.Nodes[1].ClockOffset)
	known := *p.Nodes[1].ClockError
	assert.LessOrEqual(t, math.Abs(*p.Nodes[1].ClockOffset-offset.Seconds()), known, "the offset is recovered")
	assert.Positive(t, known)
	assert.Less(t, known, 1e-2)
	for i, rank := range p.Ranks {
		assert.Equal(t, i/2, rank.Node)
	}
	across := 0.0
	for _, pair := range p.WaitsFor {
		if pair.Waiter/2 != pair.Culprit/2 {
			across += pair.Cost
		}
	}
	assert.Positive(t, across, "ranks wait for ranks of the other host")
}

func TestStatusOnEachHost(t *testing.T) {
	c := hosts.New(t, hosts.Spec{Count: 2, Slots: 2, ClockOffset: map[int]time.Duration{1: time.Minute}})
	j := startOnHosts(t, c, Program("ends"), "hang", "3")
	j.Until(t, "met")
	for host := range 2 {
		var s job.Status
		require.Eventually(t, func() bool {
			s = job.Status{}
			require.NoError(t, json.Unmarshal([]byte(onHost(t, c, host, Evenkeel, "status", "--json")), &s))
			return s.Ranks[0].State == job.InMPI
		}, time.Minute, 10*time.Millisecond)
		require.Len(t, s.Ranks, 2)
		assert.Equal(t, 2, s.Absent)
		for i, r := range s.Ranks {
			assert.Equal(t, 2*host+i, r.Rank)
			assert.Equal(t, c.Name(host), r.Host)
			assert.Less(t, r.For, time.Minute.Seconds(), "the host's own clock is meant")
		}
		if host == 1 {
			assert.Equal(t, []int{3}, ranksOf(s.Ranks[0].WaitsFor))
			assert.Equal(t, job.Computing, s.Ranks[1].State)
		}
	}
	text := onHost(t, c, 0, Evenkeel, "status")
	assert.Contains(t, text, "2 more ranks are on other hosts: run evenkeel status there too.")
}

func TestNothingIsLostOfOtherHosts(t *testing.T) {
	c := hosts.New(t, hosts.Spec{Count: 2, Slots: 2})
	for _, way := range [][]string{{"kill", "3"}, {"abort", "7"}} {
		t.Run(strings.Join(way, " "), func(t *testing.T) {
			r := onHosts(t, c, Program("ends"), way...)
			assert.NotEqual(t, 0, r.Status)
			p := r.Profile(t)
			assert.False(t, p.Complete)
			require.Len(t, p.Ranks, 4, fmt.Sprint(p.Notes))
			require.Len(t, p.Nodes, 2)
			assert.GreaterOrEqual(t, Calls(p)["MPI_Barrier"], int64(400))
			if way[0] == "kill" {
				assert.Contains(t, strings.Join(p.Notes, "\n"), "Ranks 0, 1, 2, 3 ended without MPI_Finalize, killed or crashed")
				assert.Equal(t, 3, p.Culprits[0].Rank)
			} else {
				assert.Contains(t, strings.Join(p.Notes, "\n"), "Rank 0 called MPI_Abort(7)")
			}
			assert.Contains(t, r.Stderr, "parallel efficiency")
		})
	}
}
