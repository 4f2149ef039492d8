package tests

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/runtime/history"
	"evenkeel/runtime/job"
	"evenkeel/runtime/profile"
)

// name is the job's, as its segment has it.
func (j *Running) name(t *testing.T) string {
	t.Helper()
	paths := Segments(t, j.Dir)
	require.Len(t, paths, 1)
	return strings.Split(filepath.Base(paths[0]), ".")[2]
}

// status is what `evenkeel status` says of the job, once it says that.
func (j *Running) status(t *testing.T, that func(job.Status) bool) job.Status {
	t.Helper()
	name := j.name(t)
	var s job.Status
	require.Eventually(t, func() bool {
		r := Command(t, Run{}, Evenkeel, "status", "--json", name)
		require.Equal(t, 0, r.Status, r)
		s = job.Status{}
		require.NoError(t, json.Unmarshal([]byte(r.Stdout), &s))
		return that(s)
	}, time.Minute, 10*time.Millisecond)
	return s
}

func inMPI(ranks ...int) func(job.Status) bool {
	return func(s job.Status) bool {
		for _, r := range ranks {
			if s.Ranks[r].State != job.InMPI {
				return false
			}
		}
		return true
	}
}

func ranksOf(tasks []history.Task) []int {
	ranks := []int{}
	for _, t := range tasks {
		ranks = append(ranks, t.Rank)
	}
	return ranks
}

// A job that hangs, since rank 1 does not come to the barrier.
func TestStatusNamesTheRankThatIsWaitedFor(t *testing.T) {
	j := Start(t, Run{Ranks: 3}, Program("ends"), "hang", "1")
	j.Until(t, "met")
	s := j.status(t, inMPI(0, 2))
	assert.Equal(t, j.name(t), s.Job)
	require.Len(t, s.Ranks, 3)
	for _, i := range []int{0, 2} {
		r := s.Ranks[i]
		assert.Equal(t, "MPI_Barrier", r.Call)
		assert.Equal(t, "MPI_COMM_WORLD", r.Comm)
		assert.Equal(t, uint64(100), *r.Sequence)
		assert.Equal(t, []int{1}, ranksOf(r.WaitsFor))
		assert.Equal(t, "ends.c", filepath.Base(r.File))
		assert.Positive(t, r.Line)
		assert.Positive(t, r.For)
	}
	assert.Equal(t, job.Computing, s.Ranks[1].State)
	require.Len(t, s.WaitedFor, 1)
	assert.Equal(t, 1, s.WaitedFor[0].Rank)
	assert.Equal(t, []int{0, 2}, ranksOf(s.WaitedFor[0].Waiting))
	assert.Empty(t, s.Cycles)

	// Since when: what it says grows as time does, and by no more.
	before, first := time.Now(), s.Ranks[0].For
	time.Sleep(300 * time.Millisecond)
	later := j.status(t, inMPI(0, 2)).Ranks[0].For
	assert.Greater(t, later-first, 0.3)
	assert.Less(t, later-first, 1+time.Since(before).Seconds())

	text := Command(t, Run{}, Evenkeel, "status", j.name(t))
	assert.Equal(t, 0, text.Status, text)
	assert.Contains(t, text.Stdout, "Rank 1 is waited for by 0, 2.")
	assert.Contains(t, text.Stdout, "(ends.c:")
}

func TestStatusShowsADeadlock(t *testing.T) {
	j := Start(t, Run{Ranks: 3}, Program("ends"), "deadlock")
	j.Until(t, "met")
	s := j.status(t, inMPI(0, 1, 2))
	for i, r := range s.Ranks {
		assert.Equal(t, "MPI_Recv", r.Call)
		assert.Equal(t, "deadlock", r.Function)
		assert.Equal(t, []int{(i + 1) % 3}, ranksOf(r.WaitsFor))
		assert.Nil(t, r.Sequence)
	}
	require.Len(t, s.Cycles, 1)
	assert.Equal(t, []int{0, 1, 2}, ranksOf(s.Cycles[0]))
	text := Command(t, Run{}, Evenkeel, "status", j.name(t))
	assert.Contains(t, text.Stdout, "Ranks 0, 1, 2 wait for each other in a circle")
}

// Where calls are sampled, too, status knows of as much time in MPI as a report before it.
func TestStatusEstimatesTheTimeInMPI(t *testing.T) {
	j := Start(t, Run{}, Program("thick"), "copy", "100000000")
	require.Eventually(t, func() bool { // the job is known
		return len(Segments(t, j.Dir)) == 1 && Command(t, Run{}, Evenkeel, "status", j.name(t)).Status == 0
	}, time.Minute, 10*time.Millisecond)
	j.status(t, func(s job.Status) bool { return len(s.Ranks) == 2 && s.Ranks[0].MPI > 0.1 && s.Ranks[1].MPI > 0.1 })
	r := Command(t, Run{}, Evenkeel, "report", "--json", j.name(t))
	require.Equal(t, 0, r.Status, r)
	p, err := profile.Decode([]byte(r.Stdout))
	require.NoError(t, err)
	require.Less(t, p.Quality.TimedCalls, p.Quality.Calls/2, "they are sampled")
	s := j.status(t, func(job.Status) bool { return true })
	for i, r := range s.Ranks {
		assert.Greater(t, r.MPI, 0.9*p.Ranks[i].MPI, "rank %d", i)
	}
	j.Signal(syscall.SIGTERM)
	j.Wait(t)
}

// On a terminal, until the user quits, or until the job ends.
func TestTopOnATerminal(t *testing.T) {
	j := Start(t, Run{Ranks: 3}, Program("ends"), "hang", "1")
	j.Until(t, "met")
	j.status(t, inMPI(0, 2))
	for _, end := range []struct {
		by   func(terminal *os.File)
		says string
	}{
		{func(terminal *os.File) { terminal.WriteString("q") }, ""},
		{func(*os.File) { j.Signal(syscall.SIGTERM) }, "has ended"},
	} {
		top := exec.Command(Evenkeel, "top", "--every", "50ms", j.name(t))
		top.Env = append(os.Environ(), "TERM=xterm", "LC_ALL=C.UTF-8")
		terminal, err := pty.StartWithSize(top, &pty.Winsize{Rows: 24, Cols: 160})
		require.NoError(t, err)
		defer terminal.Close()
		time.AfterFunc(time.Minute, func() { terminal.Close() })
		words := bufio.NewReader(terminal)
		until := func(want string) {
			for text := ""; !strings.Contains(text, want); {
				c, _, err := words.ReadRune()
				require.NoError(t, err, "%q in %q", want, text)
				text += string(c)
			}
		}
		until("██████████") // ranks 0 and 2 wait all the time
		end.by(terminal)
		until(end.says)
		go io.Copy(io.Discard, words)
		require.NoError(t, top.Wait())
	}
	j.Wait(t)
	AssertNothingLeft(t, j.Dir)
}

// Looking changes nothing: the job goes on, or hangs on, as it did, and what it
// leaves in the end is the same.
func TestReportOfARunningJob(t *testing.T) {
	j := Start(t, Run{}, Program("ends"), "hang", "0")
	j.Until(t, "met")
	j.status(t, inMPI(1))
	waited := 0.0
	for range 3 {
		r := Command(t, Run{}, Evenkeel, "report", "--json", j.name(t))
		require.Equal(t, 0, r.Status, r)
		p, err := profile.Decode([]byte(r.Stdout))
		require.NoError(t, err)
		assert.False(t, p.Complete)
		assert.Contains(t, strings.Join(p.Notes, " "), "The job is still running")
		assert.Equal(t, []string{"running", "running"}, []string{p.Ranks[0].State, p.Ranks[1].State})
		assert.Equal(t, int64(201), Calls(p)["MPI_Barrier"])
		require.NotEmpty(t, p.Culprits)
		assert.Greater(t, p.Ranks[1].Late, waited, "it waits on")
		waited = p.Ranks[1].Late
	}
	assert.NoDirExists(t, j.Dir, "nothing is written for a job that runs")
	j.Signal(syscall.SIGTERM)
	p := j.Wait(t).Profile(t)
	assert.Equal(t, int64(201), Calls(p)["MPI_Barrier"])
	AssertNothingLeft(t, j.Dir)
}

func TestStatusWithoutAJob(t *testing.T) {
	r := Command(t, Run{}, Evenkeel, "status", "no-such-job")
	assert.NotEqual(t, 0, r.Status)
	assert.Contains(t, r.Stderr, "no job no-such-job runs on this host")
	r = Command(t, Run{}, Evenkeel, "status", t.TempDir())
	assert.NotEqual(t, 0, r.Status)
	assert.Contains(t, r.Stderr, "is a directory and not a job that runs: evenkeel report")
	r = Command(t, Run{}, Evenkeel, "report", "no-such-job")
	assert.NotEqual(t, 0, r.Status)
	assert.Contains(t, r.Stderr, "neither the directory of a profile nor a job that runs on this host")
}

// A nonblocking collective that hangs is told like a blocking one.
func TestStatusOfARankThatWaitsForANonblockingCollective(t *testing.T) {
	script := `
from mpi4py import MPI
import sys, time
world = MPI.COMM_WORLD
world.Barrier()
if world.rank == 0:
    time.sleep(100)
if world.rank == 1:
    print("met", flush=True)
world.Ibarrier().Wait()
`
	j := Start(t, Run{Ranks: 3}, "/usr/bin/python3", "-c", script)
	j.Until(t, "met")
	s := j.status(t, inMPI(1, 2))
	for _, i := range []int{1, 2} {
		assert.Equal(t, "MPI_Wait", s.Ranks[i].Call, strconv.Itoa(i))
		assert.Equal(t, []int{0}, ranksOf(s.Ranks[i].WaitsFor))
	}
	require.Len(t, s.WaitedFor, 1)
	assert.Equal(t, 0, s.WaitedFor[0].Rank)
}
