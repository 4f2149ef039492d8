package tests

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/runtime/profile"
)

// ending is a way in which ends.c comes to its end, and what is told of it.
type ending struct {
	way     []string
	states  []string // of the ranks
	note    string   // a part of the notes
	culprit int      // the rank that was waited for in the end, or -1
}

var endings = []ending{
	{[]string{"abort", "3"}, []string{"aborted", "killed"}, `Rank 0 called MPI_Abort\(3\)`, -1},
	{[]string{"exit", "4"}, []string{"exited", "exited"}, `Ranks 0, 1 left through exit\(\) without MPI_Finalize`, -1},
	{[]string{"exit", "0"}, []string{"exited", "exited"}, `Ranks 0, 1 left through exit\(\) without MPI_Finalize`, -1},
	{[]string{"leave", "1"}, []string{"killed", "exited"}, `Rank 1 left through exit\(\) without MPI_Finalize`, 1},
	{[]string{"_exit", "5"}, []string{"killed", "killed"}, `Ranks 0, 1 ended without MPI_Finalize, killed or crashed`, -1},
	{[]string{"segfault", "1"}, []string{"killed", "killed"}, `Ranks 0, 1 ended without MPI_Finalize, killed or crashed`, 1},
	{[]string{"kill", "1"}, []string{"killed", "killed"}, `Ranks 0, 1 ended without MPI_Finalize, killed or crashed`, 1},
	{[]string{"terminate", "0"}, []string{"killed", "killed"}, `Ranks 0, 1 ended without MPI_Finalize, killed or crashed`, 0},
	{[]string{"exec"}, []string{"killed", "killed"}, `Ranks 0, 1 ended without MPI_Finalize, killed or crashed`, -1},
}

// However a job ends, what it recorded until then is told, and the program's
// output and status are its own.
func TestNothingIsLostAtABadEnd(t *testing.T) {
	for _, e := range endings {
		t.Run(strings.Join(e.way, " "), func(t *testing.T) {
			t.Parallel()
			without := Mpirun(t, Run{Preload: "none"}, Program("ends"), e.way...)
			with := Mpirun(t, Run{}, Program("ends"), e.way...)
			AssertNothingLeft(t, with.Dir)
			assert.Equal(t, without.Status, with.Status, with)
			assert.Equal(t, without.Stdout, with.Stdout)
			assert.Equal(t, 1, strings.Count(with.Stderr, "parallel efficiency"), "the summary is shown once")
			assertToldOf(t, e, with.Profile(t))
		})
	}
}

// assertToldOf compares a profile of ends.c with how that ended.
func assertToldOf(t *testing.T, e ending, p *profile.Profile) {
	t.Helper()
	assert.False(t, p.Complete)
	assert.Regexp(t, e.note, strings.Join(p.Notes, "\n"))
	var states []string
	for _, r := range p.Ranks {
		states = append(states, r.State)
	}
	assert.Equal(t, e.states, states)
	assert.GreaterOrEqual(t, Calls(p)["MPI_Barrier"], int64(200), "the hundred barriers before")
	assert.InDelta(t, p.Total.Useful+p.Total.MPI, p.Ranks[0].Elapsed+p.Ranks[1].Elapsed, 1e-6)
	if e.culprit >= 0 {
		require.NotEmpty(t, p.Culprits)
		assert.Equal(t, e.culprit, p.Culprits[0].Rank)
	}
}

func TestAGoodEndLeavesNothingElse(t *testing.T) {
	r := Mpirun(t, Run{}, Program("ends"), "finalize")
	AssertNothingLeft(t, r.Dir)
	p := r.Profile(t)
	assert.True(t, p.Complete)
	assert.Empty(t, p.Notes)
	assert.Equal(t, int64(200), Calls(p)["MPI_Barrier"])
	assert.Equal(t, 1, strings.Count(r.Stderr, "parallel efficiency"), "the summary is shown once")
}

// A file that mpirun writes to would lose what others write into it meanwhile.
func TestTheSummaryOfABadEndIsWholeInAFile(t *testing.T) {
	for _, way := range [][]string{{"abort", "3"}, {"kill", "1"}, {"exit", "4"}} {
		t.Run(strings.Join(way, " "), func(t *testing.T) {
			t.Parallel()
			dir, file := filepath.Join(t.TempDir(), "profile"), filepath.Join(t.TempDir(), "stderr")
			Command(t, Run{}, "sh", slices.Concat([]string{"-c", `mpirun "$@" 2>"$0"`, file}, Run{}.mpirun(dir, Program("ends"), way))...)
			AssertNothingLeft(t, dir)
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.Equal(t, 1, strings.Count(string(text), "parallel efficiency"), "%s", text)
			assert.Contains(t, string(text), "All of it: evenkeel report")
			assert.NotContains(t, string(text), "\x00")
		})
	}
}

// A signal to mpirun, which passes it on to the ranks.
func TestNothingIsLostWhenMpirunIsEnded(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			ended := func(preload string) Result {
				j := Start(t, Run{Preload: preload}, Program("ends"), "hang", "1")
				j.Until(t, "met")
				j.Signal(s)
				return j.Wait(t)
			}
			without, with := ended("none"), ended("")
			AssertNothingLeft(t, with.Dir)
			assert.Equal(t, without.Status, with.Status, with)
			assert.Equal(t, without.Stdout, with.Stdout)
			assert.Contains(t, with.Stderr, "parallel efficiency")
			assertToldOf(t, ending{nil, []string{"killed", "killed"}, "ended without MPI_Finalize", -1}, with.Profile(t))
		})
	}
}

func TestNothingIsLeftWhenMpirunIsKilled(t *testing.T) {
	j := Start(t, Run{}, Program("ends"), "hang", "1")
	j.Until(t, "met")
	j.Signal(syscall.SIGKILL)
	r := j.Wait(t)
	AssertNothingLeft(t, r.Dir)
	assertToldOf(t, ending{nil, []string{"killed", "killed"}, "ended without MPI_Finalize", -1}, r.Profile(t))
}

// ours are the lines that evenkeel wrote, but for the summary.
func ours(stderr string) []string {
	return regexp.MustCompile(`(?m)^evenkeel: .*$`).FindAllString(stderr, -1)
}

// requireMounts runs the test where file systems can be mounted, and in CI.
func requireMounts(t *testing.T) {
	t.Helper()
	output, err := exec.Command("unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", t.TempDir()).CombinedOutput()
	if err == nil {
		return
	}
	if os.Getenv("CI") == "true" {
		require.NoError(t, err, "in CI this test must run: %s", output)
	}
	t.Skipf("it takes root to mount small file systems: %s", output)
}

// elsewhere has Open MPI keep its own shared memory where there is room.
var elsewhere = []string{"--mca", "btl_vader_backing_directory", "/tmp", "--mca", "osc", "^sm"}

// runOn runs a program with a small file system mounted at a path, by default
// the profile's directory, which only that run sees. Temporary files go to a
// directory of its own; what is kept of a profile there is returned.
func runOn(t *testing.T, mount, size string, r Run, program string, args ...string) (Result, string) {
	t.Helper()
	requireMounts(t)
	temporary, err := os.MkdirTemp("/tmp", "ek") // Open MPI's sockets are there: a short name
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(temporary) })
	dir := filepath.Join(t.TempDir(), "profile")
	require.NoError(t, os.Mkdir(dir, 0o755))
	if mount == "" {
		mount = dir
	}
	script := fmt.Sprintf(`mount -t tmpfs -o size=%s tmpfs %s && export TMPDIR=%s && exec mpirun "$@"`, size, mount, temporary)
	command := append([]string{"-m", "sh", "-c", script, "sh"}, r.mpirun(dir, Program(program), args)...)
	result := Command(t, r, "unshare", command...)
	result.Dir = dir
	kept, err := filepath.Glob(filepath.Join(temporary, "profile-*"))
	require.NoError(t, err)
	require.LessOrEqual(t, len(kept), 1)
	return result, strings.Join(kept, "")
}

// assertUnaffected checks that the program ran as it does without evenkeel and
// that there is one line that says what is wrong, and why.
func assertUnaffected(t *testing.T, r Result, what, why string) {
	t.Helper()
	assert.Equal(t, 0, r.Status, r)
	assert.Equal(t, "met\n", r.Stdout)
	AssertNothingLeft(t, r.Dir)
	lines := ours(r.Stderr)
	require.Len(t, lines, 1, r)
	assert.Contains(t, lines[0], what)
	assert.Contains(t, lines[0], why)
}

func TestFullDisk(t *testing.T) {
	r, kept := runOn(t, "", "4k", Run{}, "ends", "finalize")
	assertUnaffected(t, r, "the profile goes to "+kept, "no space left on device")
	require.NotEmpty(t, kept)
	p, err := profile.Read(filepath.Join(kept, "profile.json"))
	require.NoError(t, err)
	assert.Equal(t, int64(200), Calls(p)["MPI_Barrier"])
	assert.Contains(t, r.Stderr, "parallel efficiency")
}

func TestNoDiskAtAll(t *testing.T) {
	r := Mpirun(t, Run{Env: []string{"EVENKEEL_OUT=/proc/evenkeel", "TMPDIR=/proc"}, Mpirun: []string{"--mca", "orte_tmpdir_base", "/tmp"}},
		Program("ends"), "finalize")
	assertUnaffected(t, r, "the profile is not kept", "/proc/evenkeel")
	assert.Contains(t, r.Stderr, "parallel efficiency", "the summary is still shown")
}

func TestOutputDirectoryThatCannotBeMade(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	temporary, err := os.MkdirTemp("/tmp", "ek")
	require.NoError(t, err)
	defer os.RemoveAll(temporary)
	r := Mpirun(t, Run{Env: []string{"EVENKEEL_OUT=" + file + "/profile", "TMPDIR=" + temporary}}, Program("ends"), "finalize")
	assertUnaffected(t, r, "the profile goes to "+temporary+"/profile-", "not a directory")
}

func TestFullSharedMemory(t *testing.T) {
	for _, size := range []string{"4k", "300k"} {
		t.Run(size, func(t *testing.T) {
			r, _ := runOn(t, "/dev/shm", size, Run{Mpirun: elsewhere}, "ends", "finalize")
			assertUnaffected(t, r, "this run is not recorded", "/dev/shm")
			assert.NoFileExists(t, filepath.Join(r.Dir, "profile.json"))
		})
	}
}

// Room for what two ranks must have, and for a little of their history, where
// a write beyond would be a SIGBUS.
func TestHistoryIsThinnedWhereSharedMemoryIsSmall(t *testing.T) {
	env := []string{"EVENKEEL_HISTORY=16777216", "EVENKEEL_TIME=all"}
	r, _ := runOn(t, "/dev/shm", "2200k", Run{Mpirun: slices.Concat(yield, elsewhere), Env: env},
		"truth", "random", "1", "8000", filepath.Join(t.TempDir(), "truth.json"), "50")
	require.Equal(t, 0, r.Status, r)
	assert.Empty(t, ours(r.Stderr))
	p := r.Profile(t)
	assert.Equal(t, int64(4001*2), Calls(p)["MPI_Barrier"])
	assert.Positive(t, p.Quality.SampleLevel)
	assert.Greater(t, p.Quality.Events, int64(500))
}

func TestWithoutTheRuntimeTheWatcherMakesTheProfile(t *testing.T) {
	foreign := filepath.Join(t.TempDir(), "foreign.so")
	source := filepath.Join(t.TempDir(), "foreign.c")
	require.NoError(t, os.WriteFile(source, []byte("const unsigned ek_runtime[16] = {999, 64};\n"), 0o644))
	text, err := exec.Command("cc", "-shared", "-fPIC", "-o", foreign, source).CombinedOutput()
	require.NoError(t, err, "%s", text)
	for problem, library := range map[string]string{
		"the runtime is missing (/nowhere/libevenkeel-runtime.so": "/nowhere/libevenkeel-runtime.so",
		"is of another version (999, not":                         foreign,
	} {
		for _, way := range []string{"finalize", "kill"} {
			t.Run(filepath.Base(library)+" "+way, func(t *testing.T) {
				r := Mpirun(t, Run{Env: []string{"EVENKEEL_RUNTIME=" + library}}, Program("ends"), way, "1")
				AssertNothingLeft(t, r.Dir)
				lines := ours(r.Stderr)
				require.Len(t, lines, 1, r)
				assert.Contains(t, lines[0], problem)
				assert.Equal(t, "met\n", r.Stdout)
				assert.Contains(t, r.Stderr, "parallel efficiency")
				p := r.Profile(t)
				assert.Equal(t, way == "finalize", p.Complete)
				assert.GreaterOrEqual(t, Calls(p)["MPI_Barrier"], int64(200))
				if way == "kill" {
					require.NotEmpty(t, p.Culprits)
					assert.Equal(t, 1, p.Culprits[0].Rank)
				}
			})
		}
	}
}

// Go would end the process, where batch systems limit what a process may have.
func TestRanksWithLittleRoomAreLeftAlone(t *testing.T) {
	run := func(limit, preload string) Result {
		return Mpirun(t, Run{Preload: preload}, "sh", "-c", "ulimit "+limit+`; exec "$0" finalize`, Program("ends"))
	}
	for _, limit := range []string{"-v 800000", "-v 1600000"} {
		r := run(limit, "")
		assertUnaffected(t, r, "the address space is limited (ulimit -v)", "there will be no report")
		assert.NoDirExists(t, r.Dir)
	}
	told := 0
	for files := 16; files <= 28; files += 2 {
		limit := fmt.Sprint("-n ", files)
		without, with := run(limit, "none"), run(limit, "")
		assert.Equal(t, without.Status, with.Status, with)
		assert.Equal(t, without.Stdout, with.Stdout)
		told += len(ours(with.Stderr))
	}
	assert.Positive(t, told, "there were enough files always")
}

// Who may start few processes may start few threads; root may start any.
func TestRanksWithFewThreadsAreLeftAlone(t *testing.T) {
	if os.Getuid() != 0 {
		require.NotEqual(t, "true", os.Getenv("CI"), "in CI this test must run")
		t.Skip("it takes root to be another user, who has no other processes")
	}
	home, err := os.MkdirTemp("/tmp", "ek") // Open MPI's sockets are there: a short name
	require.NoError(t, err)
	defer os.RemoveAll(home)
	const nobody = 64321
	require.NoError(t, os.Chown(home, nobody, nobody))
	as := []string{fmt.Sprint("--reuid=", nobody), fmt.Sprint("--regid=", nobody), "--clear-groups", "env", "-C", home, "HOME=" + home, "TMPDIR=" + home,
		"EVENKEEL_OUT=" + filepath.Join(home, "profile"), "mpirun", "-np", "1", "prlimit"}
	told := 0
	for threads := 8; threads <= 14; threads++ {
		run := func(preload string) Result {
			return Command(t, Run{}, "setpriv", append(as, fmt.Sprint("--nproc=", threads), "env", "LD_PRELOAD="+preload, Program("ends"), "finalize")...)
		}
		without, with := run(""), run(Library)
		AssertNothingLeft(t, filepath.Join(home, "profile"))
		if without.Stdout != "met\n" {
			continue // MPI itself has too few
		}
		assert.Equal(t, without.Status, with.Status, with)
		assert.Equal(t, without.Stdout, with.Stdout)
		if strings.Contains(with.Stderr, "too few threads may be started (ulimit -u)") {
			told++
			assert.NotEqual(t, strings.Contains(with.Stderr, "there will be no report"), strings.Contains(with.Stderr, "── evenkeel ──"), with.Stderr)
		}
	}
	assert.Positive(t, told, "there were enough threads always")
}

func TestWithoutTheCommandThereIsNoWatcher(t *testing.T) {
	lib := filepath.Join(t.TempDir(), "lib")
	require.NoError(t, os.Mkdir(lib, 0o755))
	for _, name := range []string{"libevenkeel.so", "libevenkeel-runtime.so"} {
		content, err := os.ReadFile(filepath.Join(Build, "lib", name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(lib, name), content, 0o755))
	}
	j := Start(t, Run{Preload: filepath.Join(lib, "libevenkeel.so")}, Program("ends"), "hang", "0")
	j.Until(t, "met")
	for _, process := range processes(t, j.Dir) {
		assert.NotContains(t, process, "watch")
	}
	j.Signal(syscall.SIGTERM)
	j.Wait(t)
	for _, path := range Segments(t, j.Dir) { // nobody else does
		os.Remove(path)
	}

	r := Mpirun(t, Run{Preload: filepath.Join(lib, "libevenkeel.so")}, Program("ends"), "finalize")
	assert.Empty(t, ours(r.Stderr))
	assert.True(t, r.Profile(t).Complete)
	AssertNothingLeft(t, r.Dir)

	// And without the runtime, too, there is nobody to make a profile.
	require.NoError(t, os.Remove(filepath.Join(lib, "libevenkeel-runtime.so")))
	r = Mpirun(t, Run{Preload: filepath.Join(lib, "libevenkeel.so")}, Program("ends"), "finalize")
	assertUnaffected(t, r, "the runtime is missing", "libevenkeel-runtime.so")
}

// Where some ranks were started without evenkeel the others can't be recorded. They
// neither wait for them nor leave anything open in which the program's own
// operations could get caught, and the first of them says so.
func TestJobOfWhichSomeRanksAreWithoutEvenkeel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ranks   int
		without string
		who     string
	}{
		{2, "0", "1 of the 2 ranks of MPI_COMM_WORLD does not run under evenkeel (rank 0)"},
		{4, "2|3", "2 of the 4 ranks of MPI_COMM_WORLD do not run under evenkeel (rank 2 is the first)"},
		{4, "0|2", "2 of the 4 ranks of MPI_COMM_WORLD do not run under evenkeel (rank 0 is the first)"},
	} {
		script := fmt.Sprintf(`case $OMPI_COMM_WORLD_RANK in %s) unset EVENKEEL_OUT;; *) export LD_PRELOAD=%s;; esac; exec "$@"`, c.without, Library)
		r := Mpirun(t, Run{Ranks: c.ranks, Preload: "none"}, "sh", "-c", script, "sh", Program("ends"), "reduce")
		assertUnaffected(t, r, "evenkeel: "+c.who+"; this run is not recorded", "Start all ranks with it, or none")
		assert.NoDirExists(t, r.Dir)
		AssertNothingLeft(t, r.Dir)
	}
}

// The watcher is there before MPI_Init, which may end the job.
func TestJobThatEndsInMPIInit(t *testing.T) {
	t.Parallel()
	run := func(preload string) Result {
		return Mpirun(t, Run{Preload: preload, Mpirun: []string{"--mca", "pml", "none_of_that_name"}}, Program("ends"), "finalize")
	}
	without, with := run("none"), run("")
	require.NotEqual(t, 0, without.Status, without)
	assert.Equal(t, without.Status, with.Status, with)
	assert.Empty(t, with.Stdout)
	assert.Empty(t, ours(with.Stderr))
	assert.NoDirExists(t, with.Dir)
	AssertNothingLeft(t, with.Dir)
}

// One that is switched off in some ranks is so in all, at once.
func TestJobOfWhichSomeRanksAreSwitchedOff(t *testing.T) {
	script := `[ $OMPI_COMM_WORLD_RANK = 1 ] || export EVENKEEL_ENABLE=0; exec "$@"`
	r := Mpirun(t, Run{}, "sh", "-c", script, "sh", Program("ends"), "finalize")
	assert.Equal(t, 0, r.Status, r)
	assert.Equal(t, "met\n", r.Stdout)
	assert.Empty(t, ours(r.Stderr))
	assert.NoDirExists(t, r.Dir)
}

// The watcher must not keep mpirun: it ends when the last rank has the profile
// made, not after.
func TestTheWatcherLeavesBeforeTheRanksDo(t *testing.T) {
	r := Mpirun(t, Run{}, Program("ends"), "fork-run") // each rank's child outlives it by a second
	assert.True(t, r.Profile(t).Complete)
	for _, process := range processes(t, r.Dir) {
		assert.NotContains(t, process, "watch")
	}
}

// Loading Go changes nothing of what the program does with signals.
func TestSignalsAreTheProgramsOwn(t *testing.T) {
	without := Mpirun(t, Run{Preload: "none"}, Program("signals"))
	with := Mpirun(t, Run{}, Program("signals"))
	require.Equal(t, 0, without.Status, without)
	assert.Regexp(t, `threads that take them: SIGUSR1 \d+, SIGURG \d+, SIGALRM \d+\n`, without.Stdout)
	assert.Equal(t, strings.Split(without.Stdout, "\n"), strings.Split(with.Stdout, "\n"))
	assert.NotEmpty(t, with.Profile(t).CallSites)
}
