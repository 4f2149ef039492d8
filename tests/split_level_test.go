package tests

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
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
func startLevel(t *testing.T, units int, more ...string) (j *Running, rank0 int) {
	t.Helper()
	arguments := append([]string{strconv.Itoa(units)}, more...)
	j = Start(t, Run{Preload: linked, Mpirun: []string{"--bind-to", "core"}}, Program("split_level"), arguments...)
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
// once in the job that runs. It ends before so much else has changed that the report tells of that alone.
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
		j := Start(t, run, "taskset", "-c", c.before, Program("split_level"), "80", "10", "sleep")
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

// A rank sees that its control group is limited while a job runs.
func TestRunningJobsSeeTheControlGroup(t *testing.T) {
	twoCores(t)
	group := controlGroup(t, 0.25)
	over := filepath.Join(t.TempDir(), "over")
	j, rank0 := startLevel(t, 60000, "10", "until", over)
	require.NoError(t, os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(rank0)), 0o644))
	j.untilSaid(t, 0, "shared anew while it ran: the control group of rank 0 allows 0.25 cores instead of all cores")
	require.NoError(t, os.WriteFile(over, nil, 0o644))
	r := j.Wait(t)
	require.Equal(t, 0, r.Status, r)
}

// controlGroups are the files that tell a rank's limit, here of the test's own, which limit nothing.
type controlGroups struct {
	groups string            // of /proc/PID/cgroup
	files  map[string]string // below /sys/fs/cgroup
	limit  string            // the file with the limit that the test changes, in microseconds of each 100,000
	format string            // of what it says
}

var version2 = controlGroups{
	groups: "0::/outer/inner\n",
	files: map[string]string{
		"cgroup.controllers": "cpu", "cpu.max": "max 100000", "outer/cpu.max": "max 100000", "outer/inner/cpu.max": "900000 100000",
	},
	limit: "outer/cpu.max", format: "%d 100000",
}

// A group of another controller's hierarchy has no say, whatever its name.
var version1 = controlGroups{
	groups: "4:cpuset:/strict\n3:cpuacct,cpu:/outer/inner\n2:memory:/strict\n0::/\n",
	files: map[string]string{
		"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000",
		"cpu/outer/cpu.cfs_quota_us": "-1", "cpu/outer/cpu.cfs_period_us": "100000",
		"cpu/outer/inner/cpu.cfs_quota_us": "900000", "cpu/outer/inner/cpu.cfs_period_us": "100000",
		"cpu/strict/cpu.cfs_quota_us": "5", "cpu/strict/cpu.cfs_period_us": "100000",
	},
	limit: "cpu/outer/cpu.cfs_quota_us", format: "%d",
}

// start starts a job of which rank 0 finds its limit in these files: nine cores, until limit is called.
func (c controlGroups) start(t *testing.T, arguments ...string) (j *Running, limit func(microseconds int)) {
	t.Helper()
	twoCores(t)
	requireMounts(t)
	root, groups := t.TempDir(), filepath.Join(t.TempDir(), "groups")
	write := func(path, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	write(groups, c.groups)
	for name, text := range c.files {
		write(filepath.Join(root, name), text+"\n")
	}
	onRank0 := fmt.Sprintf(`[ $OMPI_COMM_WORLD_RANK != 0 ] || { mount --bind %s /sys/fs/cgroup && mount --bind %s /proc/$$/cgroup; } && exec "$@"`,
		root, groups)
	command := append([]string{"-m", "sh", "-c", onRank0, "sh", Program("split_level")}, arguments...)
	j = Start(t, Run{Preload: linked, Mpirun: []string{"--bind-to", "core"}}, "unshare", command...)
	j.Until(t, "begun")
	return j, func(microseconds int) { write(filepath.Join(root, c.limit), fmt.Sprintf(c.format+"\n", microseconds)) }
}

// limited runs a job that, when it has said that word, waits until rank 0's limit has been made nearly nothing.
func (c controlGroups) limited(t *testing.T, word string, arguments ...string) Result {
	t.Helper()
	changed := filepath.Join(t.TempDir(), "changed")
	j, limit := c.start(t, append(arguments, changed)...)
	j.Until(t, word)
	limit(10)
	require.NoError(t, os.WriteFile(changed, nil, 0o644))
	return j.Wait(t)
}

// A rank leaves work to the other when its control group, or one around it, is limited while a job runs.
func TestRunningJobsFollowTheControlGroup(t *testing.T) {
	for name, groups := range map[string]controlGroups{"version 1": version1, "version 2": version2} {
		t.Run(name, func(t *testing.T) {
			r := groups.limited(t, "looked", "32", "50", "hold")
			assert.Contains(t, r.Stdout, "shared anew while it ran: the control group of rank 0 allows 0.0001 cores instead of 9 cores")
			assertLeft(t, r)
		})
	}
}

// A rank whose control group is limited between two jobs has no share of the second one that is worth
// a unit, and begins none of the other rank's.
func TestTheNextJobFollowsTheControlGroup(t *testing.T) {
	r := version2.limited(t, "between", "32", "10", "between")
	assert.Contains(t, r.Stdout, "split anew: the control group of rank 0 allows 0.0001 cores instead of 9 cores")
	assert.Zero(t, found(t, r, "own"), r)
	assert.Equal(t, 32, found(t, r, "other"))
}

// assertLeft says that rank 0, which had run a dozen units of 32 when its resources changed, began
// no more than it can begin until it looks again; the other rank had begun one.
func assertLeft(t *testing.T, r Result) {
	t.Helper()
	assert.LessOrEqual(t, found(t, r, "own"), 13+5, r)
	assert.Equal(t, 32, found(t, r, "own")+found(t, r, "other"))
}

// Of many changes the report tells the newest.
func TestReportsTellTheNewestChanges(t *testing.T) {
	over := filepath.Join(t.TempDir(), "over")
	j, limit := version2.start(t, "60000", "10", "until", over)
	before := "9 cores"
	for i := range 14 {
		microseconds, now := 25000, "0.25"
		if i%2 == 1 {
			microseconds, now = 50000, "0.5"
		}
		from := len(j.stdout.text())
		limit(microseconds)
		j.untilSaid(t, from, fmt.Sprintf("allows %s cores instead of %s", now, before))
		before = now
	}
	require.NoError(t, os.WriteFile(over, nil, 0o644))
	r := j.Wait(t)
	require.Equal(t, 0, r.Status, r)
	_, report, _ := strings.Cut(r.Stdout, "tasks for 2 ranks")
	assert.Contains(t, report, "allows 0.5 cores instead of 0.25")
	assert.NotContains(t, report, "instead of 9 cores")
}

// Somebody else's load on a rank's core is seen when it comes, and when it is given
// a lower priority.
func TestRunningJobsFollowTheLoadOfOthers(t *testing.T) {
	twoCores(t)
	over := filepath.Join(t.TempDir(), "over")
	j, _ := startLevel(t, 60000, "10", "until", over)
	j.Until(t, "looked") // so that it is known how it was before
	before := len(j.stdout.text())
	other := compete(t)
	j.untilOthers(t, before, func(now, before float64) bool { return now > before })
	before = len(j.stdout.text())
	require.NoError(t, syscall.Setpriority(syscall.PRIO_PROCESS, other, 19))
	j.untilOthers(t, before, func(now, before float64) bool { return now < before })
	require.NoError(t, os.WriteFile(over, nil, 0o644))
	r := j.Wait(t)
	require.Equal(t, 0, r.Status, r)
}

// untilOthers returns when the job has said, after so much of its output, that the load of
// others has changed in that way.
func (j *Running) untilOthers(t *testing.T, from int, changed func(now, before float64) bool) {
	t.Helper()
	said := regexp.MustCompile(`with (\S+) threads of others instead of (\S+?)[;\n]`)
	require.Eventually(t, func() bool {
		for _, m := range said.FindAllStringSubmatch(j.stdout.text()[from:], -1) {
			now, err := strconv.ParseFloat(m[1], 64)
			assert.NoError(t, err)
			before, err := strconv.ParseFloat(m[2], 64)
			assert.NoError(t, err)
			if changed(now, before) {
				return true
			}
		}
		return false
	}, time.Minute, 20*time.Millisecond, "the load of others: %s\n%s", &j.stdout, &j.stderr)
}

// untilSaid returns when the program has written that after so much of its output.
func (j *Running) untilSaid(t *testing.T, from int, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(j.stdout.text()[from:], text) }, time.Minute, 5*time.Millisecond,
		"waiting for %q\n%s", text, &j.stderr)
}

// So is a change of the rank's own priority, where that counts because of others: beside one at the
// highest niceness, the other rank would do 22 units and more before it has done one.
func TestRunningJobsFollowTheirPriority(t *testing.T) {
	twoCores(t)
	compete(t)
	runtime.LockOSThread() // for ever: what the test starts has this thread's priority
	if syscall.Setpriority(syscall.PRIO_PROCESS, 0, 0) != nil {
		t.Skip("the tests run at a lower priority, which may not be raised here")
	}
	changed := filepath.Join(t.TempDir(), "changed")
	j, rank0 := startLevel(t, 32, "50", "hold", changed)
	j.Until(t, "looked")
	require.NoError(t, syscall.Setpriority(syscall.PRIO_PROCESS, rank0, 19))
	require.NoError(t, os.WriteFile(changed, nil, 0o644))
	r := j.Wait(t)
	assert.Contains(t, r.Stdout, "rank 0 has the niceness 19 instead of 0")
	assertLeft(t, r)
}
