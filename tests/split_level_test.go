package tests

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// twoCores leaves out machines that have no second core to give or to take.
func twoCores(t *testing.T) {
	t.Helper()
	var set unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &set))
	if !set.IsSet(0) || !set.IsSet(1) {
		t.Skip("cores 0 and 1 are needed, and may not be used here")
	}
}

// What a rank shows of its resources while a job runs, others read at any time: all of one moment.
func TestResourcesAreReadWhileTheyAreShown(t *testing.T) {
	r := Command(t, Run{}, Program("resources_threads"), "2000")
	assert.Positive(t, found(t, r, "looks"))
	assert.Zero(t, found(t, r, "torn"))
}

// startLevel starts a job that runs for a while, each rank on its core, and returns when it
// does, with the process of rank 0.
func startLevel(t *testing.T, units int) (j *Running, rank0 int) {
	t.Helper()
	j = Start(t, Run{Preload: linked, Mpirun: []string{"--bind-to", "core"}}, Program("split_level"), strconv.Itoa(units), "10")
	j.Until(t, "begun")
	eachProcess(t, j.Dir, "split_level", func(pid int) {
		environment, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if strings.Contains(string(environment), "OMPI_COMM_WORLD_RANK=0\x00") {
			rank0 = pid
		}
	})
	require.NotZero(t, rank0)
	return j, rank0
}

// compete starts a process that computes on core 0 until the test is over.
func compete(t *testing.T) (pid int) {
	t.Helper()
	c := exec.Command("taskset", "-c", "0", "sh", "-c", "while :; do :; done")
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
	})
	return c.Process.Pid
}

// Cores that a rank is given, or that are taken from it, change how much it runs at
// once in the job that runs.
func TestRunningJobsFollowTheAffinityMask(t *testing.T) {
	twoCores(t)
	for _, c := range []struct {
		before      string
		after       []int
		first, last int
		reason      string
	}{
		{"0", []int{0, 1}, 1, 2, "shared anew while it ran: rank 0 has 2 cores instead of 1"},
		{"0,1", []int{0}, 2, 1, "shared anew while it ran: rank 0 has 1 cores instead of 2"},
	} {
		run := Run{Ranks: 1, Preload: linked, Mpirun: []string{"--bind-to", "none"}}
		j := Start(t, run, "taskset", "-c", c.before, Program("split_level"), "160", "10", "sleep")
		j.Until(t, "begun")
		eachProcess(t, j.Dir, "split_level", func(pid int) {
			var set unix.CPUSet
			for _, core := range c.after {
				set.Set(core)
			}
			require.NoError(t, unix.SchedSetaffinity(pid, &set))
		})
		r := j.Wait(t)
		assert.Equal(t, c.first, found(t, r, "first"), r)
		assert.Equal(t, c.last, found(t, r, "last"), r)
		assert.Contains(t, r.Stdout, c.reason)
	}
}

// controlGroup makes a group whose processes have this share of a core, or leaves the
// test out where that can't be had.
func controlGroup(t *testing.T, share float64) (directory string) {
	t.Helper()
	period := 100000
	quota := strconv.Itoa(int(share * float64(period)))
	root, limits := "/sys/fs/cgroup", [][2]string{{"cpu.max", quota + " " + strconv.Itoa(period)}}
	if _, err := os.Stat(root + "/cgroup.controllers"); err != nil {
		root, limits = root+"/cpu", [][2]string{{"cpu.cfs_period_us", strconv.Itoa(period)}, {"cpu.cfs_quota_us", quota}}
	}
	directory = filepath.Join(root, "evenkeel-test-"+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(directory, 0o755); err != nil {
		t.Skipf("a control group can't be made here: %v", err)
	}
	t.Cleanup(func() {
		assert.Eventually(t, func() bool { return os.Remove(directory) == nil }, 10*time.Second, 20*time.Millisecond)
	})
	for _, limit := range limits {
		if err := os.WriteFile(filepath.Join(directory, limit[0]), []byte(limit[1]), 0o644); err != nil {
			t.Skipf("the time of a control group can't be limited here: %v", err)
		}
	}
	return directory
}

// A rank whose control group is limited while a job runs leaves work to the other.
func TestRunningJobsFollowTheControlGroup(t *testing.T) {
	twoCores(t)
	group := controlGroup(t, 0.25)
	j, rank0 := startLevel(t, 160)
	require.NoError(t, os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(rank0)), 0o644))
	r := j.Wait(t)
	assert.Less(t, found(t, r, "own"), found(t, r, "other"), r)
	assert.Contains(t, r.Stdout, "shared anew while it ran: the control group of rank 0 allows 0.25 cores instead of all cores")
}

// So is the limit as version 2 of control groups tells it, here in files of the test's own,
// which limit nothing.
func TestRunningJobsFollowAControlGroupOfVersion2(t *testing.T) {
	twoCores(t)
	requireMounts(t)
	group := t.TempDir()
	limit := func(cpuMax string) {
		require.NoError(t, os.WriteFile(filepath.Join(group, "cpu.max"), []byte(cpuMax+"\n"), 0o644))
	}
	require.NoError(t, os.WriteFile(filepath.Join(group, "cgroup.controllers"), []byte("cpu\n"), 0o644))
	limit("max 100000")
	onRank0 := fmt.Sprintf(`[ $OMPI_COMM_WORLD_RANK != 0 ] || mount --bind %s /sys/fs/cgroup; exec "$@"`, group)
	j := Start(t, Run{Preload: linked, Mpirun: []string{"--bind-to", "core"}},
		"unshare", "-m", "sh", "-c", onRank0, "sh", Program("split_level"), "160", "10")
	j.Until(t, "begun")
	limit("25000 100000")
	r := j.Wait(t)
	require.Equal(t, 0, r.Status, r)
	assert.Contains(t, r.Stdout, "shared anew while it ran: the control group of rank 0 allows 0.25 cores instead of all cores")
}

// Somebody else's load on a rank's core is seen when it comes, and when it is given
// a lower priority.
func TestRunningJobsFollowTheLoadOfOthers(t *testing.T) {
	twoCores(t)
	j, _ := startLevel(t, 400)
	time.Sleep(500 * time.Millisecond) // so that it is known how it was before
	other := compete(t)
	time.Sleep(700 * time.Millisecond)
	require.NoError(t, syscall.Setpriority(syscall.PRIO_PROCESS, other, 19))
	r := j.Wait(t)
	require.Equal(t, 0, r.Status, r)
	came, went := false, false
	for _, m := range regexp.MustCompile(`with (\S+) threads of others instead of (\S+?)[;\n]`).FindAllStringSubmatch(r.Stdout, -1) {
		now, err := strconv.ParseFloat(m[1], 64)
		require.NoError(t, err)
		before, err := strconv.ParseFloat(m[2], 64)
		require.NoError(t, err)
		came = came || now > before
		went = went || came && now < before
	}
	assert.True(t, came && went, r.Stdout)
}

// So is a change of the rank's own priority, where that counts because of others.
func TestRunningJobsFollowTheirPriority(t *testing.T) {
	twoCores(t)
	compete(t)
	j, rank0 := startLevel(t, 220)
	time.Sleep(500 * time.Millisecond)
	require.NoError(t, syscall.Setpriority(syscall.PRIO_PROCESS, rank0, 10))
	r := j.Wait(t)
	require.Equal(t, 0, r.Status, r)
	assert.Contains(t, r.Stdout, "rank 0 has the niceness 10 instead of 0")
	assert.Less(t, found(t, r, "own"), found(t, r, "other"), r)
}
