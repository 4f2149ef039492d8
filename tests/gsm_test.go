package tests

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/runtime/job"
	"evenkeel/runtime/profile"
	"evenkeel/tests/hosts"
)

// The C program checks every command, count and refusal by itself.
func TestGlobalSharedMemoryFromC(t *testing.T) {
	seed := time.Now().UnixNano() % 1000000
	for _, ranks := range []int{1, 2, 4} {
		r := Mpirun(t, Run{Ranks: ranks, Preload: "none"}, Program("gsm"), fmt.Sprint(seed), "3000")
		assert.Equal(t, 0, r.Status, "%d ranks, seed %d: %v", ranks, seed, r)
		assert.Equal(t, "ok\n", r.Stdout)
		AssertNothingLeft(t, r.Dir)
	}
}

// Tasks that are apart, each as if alone on its node, reach each other over the job's network: by the runtime that records
// the run, or one that is only loaded for that.
func TestGlobalSharedMemoryFromCOverANetwork(t *testing.T) {
	seed := fmt.Sprint(time.Now().UnixNano() % 1000000)
	for name, env := range map[string][]string{
		"recorded": nil, "not recorded": {"EVENKEEL_ENABLE=0"},
		"over MPI": {"EVENKEEL_FABRIC=mpi", "OMPI_MPI_THREAD_LEVEL=3"},
	} {
		t.Run(name, func(t *testing.T) {
			run := Run{Ranks: 3, Preload: "none", Env: append([]string{"EVENKEEL_GSM_APART=1"}, env...)}
			for program, args := range map[string][]string{"gsm": {seed, "40", "1"}, "gsm_started": {"traffic", seed, "1000"},
				"gsm_message": {seed, "1000"}} {
				r := Mpirun(t, run, Program(program), args...)
				assert.Equal(t, 0, r.Status, "%s, seed %s: %v", program, seed, r)
				assert.Equal(t, "ok\n", r.Stdout)
				AssertNothingLeft(t, r.Dir)
			}
		})
	}
}

// What was started goes on by itself and in bounded memory; which errors fences tell; transfers of nothing; forked children;
// keys that a task has at once.
func TestStartedCommandsFromC(t *testing.T) {
	r := Mpirun(t, Run{Preload: "none", Env: []string{"EVENKEEL_ENABLE=0", "EVENKEEL_GSM_APART=1"}}, Program("gsm_started"), "edges")
	assert.Equal(t, 0, r.Status, r)
	assert.Equal(t, "ok\n", r.Stdout, r)
}

// Of MPI's messages, control packets are found before bulk ones that were sent earlier.
func TestMPIAsTheNetworkOfC(t *testing.T) {
	r := Mpirun(t, Run{Preload: "none"}, Program("gsm_mpi"))
	assert.Equal(t, 0, r.Status, r)
	assert.Equal(t, "ok\n", r.Stdout, r)
}

// When looks for messages ask the network, what waits for a reply, and what becomes of letters that did not arrive.
func TestLookingForLetters(t *testing.T) {
	r := Command(t, Run{}, Program("gsm_poll"))
	assert.Equal(t, 0, r.Status, r)
	assert.Equal(t, "ok\n", r.Stdout, r)
}

// Two hosts with two ranks each: half of the commands stay on the node.
func TestGlobalSharedMemoryFromCAcrossHosts(t *testing.T) {
	c := hosts.New(t, hosts.Spec{Count: 2, Slots: 2})
	for _, run := range [][]string{
		{"env", "EVENKEEL_FABRIC=udp", Program("gsm"), "7", "40", "2"},
		{"env", "EVENKEEL_ENABLE=0", Program("gsm_started"), "traffic", "7", "1000"},
		{Program("gsm_message"), "7", "1000"},
	} {
		r := onHosts(t, c, run[0], run[1:]...)
		assert.Equal(t, 0, r.Status, "%v: %v", run, r)
		assert.Equal(t, "ok\n", r.Stdout)
	}
}

// A task is killed, or stops: the others get errors within the configured time for the commands that go there, and for
// nothing else. (Open MPI's own recovery keeps the others alive.)
func TestATaskOfACJobDies(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
		r := Mpirun(t, Run{Ranks: 3, Preload: "none", Mpirun: []string{"--enable-recovery"}, Timeout: time.Minute,
			Env: []string{"EVENKEEL_ENABLE=0", "EVENKEEL_GSM_APART=1", "EVENKEEL_GSM_SILENCE=2000"}},
			Program("gsm_started"), "dead", fmt.Sprint(int(s)))
		assert.Contains(t, r.Stdout, "ok\n", "%v: %v", s, r)
	}
}

// Without a way to the other nodes nobody joins, and all are told why.
func TestJoiningWithoutAWayToOtherNodes(t *testing.T) {
	for name, env := range map[string][]string{
		"EVENKEEL_RUNTIME":    {"EVENKEEL_RUNTIME=/nowhere.so"},
		"MPI_THREAD_MULTIPLE": {"EVENKEEL_FABRIC=mpi"}, // of which MPI_Init asks for nothing
		// The end of a long text says what to do.
		"OMPI_MPI_THREAD_LEVEL=3": {"EVENKEEL_UDP_ADDRESS=" + strings.Repeat("x", 100)},
	} {
		r := Mpirun(t, Run{Preload: "none", Env: append(env, "EVENKEEL_ENABLE=0", "EVENKEEL_GSM_APART=1")}, Program("gsm_hold"), "64")
		assert.Equal(t, 2, r.Status, r)
		assert.Equal(t, 2, strings.Count(r.Stderr, "joining a job"), r)
		assert.Contains(t, r.Stderr, name)
	}
}

// Every message has its handler run once.
func TestActiveMessagesFromC(t *testing.T) {
	seed := fmt.Sprint(time.Now().UnixNano() % 1000000)
	for _, ranks := range []int{1, 2, 5} {
		r := Mpirun(t, Run{Ranks: ranks, Preload: "none"}, Program("gsm_message"), seed, "3000")
		assert.Equal(t, 0, r.Status, "%d ranks, seed %s: %v", ranks, seed, r)
		assert.Equal(t, "ok\n", r.Stdout)
	}
}

// sharedMemory is the names in /dev/shm that are ours, and how many bytes of it are in use.
func sharedMemory(t *testing.T) (names []string, used uint64) {
	t.Helper()
	files, err := os.ReadDir("/dev/shm")
	require.NoError(t, err)
	for _, f := range files {
		if strings.Contains(f.Name(), "evenkeel") {
			names = append(names, f.Name())
		}
	}
	var s syscall.Statfs_t
	require.NoError(t, syscall.Statfs("/dev/shm", &s))
	return names, (s.Blocks - s.Bfree) * uint64(s.Bsize)
}

// A job holds memory of the node that has no name there, so that nobody has to clean up after it.
func TestAKilledJobLeavesNoGlobalSharedMemory(t *testing.T) {
	const held = 256 << 20
	_, before := sharedMemory(t)
	j := Start(t, Run{Preload: "none"}, Program("gsm_hold"), fmt.Sprint(held/2))
	j.Until(t, "held")
	_, during := sharedMemory(t)
	assert.Greater(t, during, before+held/2, "two ranks hold half each; others on the machine may give some back")
	j.Signal(syscall.SIGKILL)
	r := j.Wait(t)
	AssertNothingLeft(t, r.Dir)
	require.Eventually(t, func() bool {
		_, after := sharedMemory(t)
		return after < during-held/2
	}, time.Minute, 10*time.Millisecond)
}

// What went out through each window can be seen while the job runs, and in the report of one that is killed: of programs
// in C and in Go, which count by one definition.
func TestCountersOfWindows(t *testing.T) {
	for _, program := range []string{"gsm_hold", "gsm_hold_go"} {
		j, s := held(t, program, "4096")
		for rank, r := range s.Ranks {
			require.Len(t, r.Windows, 1, program)
			assert.Equal(t, counted(rank, 1, r.Windows[0].Number), r.Windows[0], program)
			assert.NotZero(t, r.Windows[0].Number, program)
		}
		text, err := exec.Command(Evenkeel, "status", s.Job).Output()
		require.NoError(t, err)
		assert.Contains(t, string(text), "Windows of global shared memory", program)
		j.Signal(syscall.SIGTERM)
		r := j.Wait(t)
		AssertNothingLeft(t, r.Dir)
		windows := r.Profile(t).Windows
		require.Len(t, windows, 2, program)
		for rank, w := range windows {
			seen := s.Ranks[rank].Windows[0]
			assert.Equal(t, profile.Window{World: 1, Rank: rank, Job: 1, Number: seen.Number, Puts: seen.Puts, PutBytes: seen.PutBytes,
				Gets: seen.Gets, GetBytes: seen.GetBytes, Atomics: seen.Atomics, Refused: seen.Refused, Fences: seen.Fences}, w, program)
		}
		text, err = exec.Command(Evenkeel, "report", r.Dir).Output()
		require.NoError(t, err)
		assert.Contains(t, string(text), "Windows of global shared memory", program)
	}
}

// Windows for which there is no row any more are counted together.
func TestCountersOfManyWindows(t *testing.T) {
	j, s := held(t, "gsm_hold_go", "4096", "70")
	for rank, r := range s.Ranks {
		require.Len(t, r.Windows, 64)
		for _, w := range r.Windows[:63] {
			assert.Equal(t, counted(rank, 1, w.Number), w)
		}
		together := counted(rank, 70-63, 0)
		together.Job = 0
		assert.Equal(t, together, r.Windows[63])
	}
	j.Signal(syscall.SIGTERM)
	AssertNothingLeft(t, j.Wait(t).Dir)
}

// held starts one of the programs that hold windows, and returns what can be seen of it.
func held(t *testing.T, program string, args ...string) (*Running, job.Status) {
	t.Helper()
	j := Start(t, Run{Env: []string{"EVENKEEL_GSM_RESERVE=64"}}, Program(program), args...)
	j.Until(t, "held")
	segments := Segments(t, j.Dir)
	require.Len(t, segments, 1)
	out, err := exec.Command(Evenkeel, "status", "--json", strings.Split(filepath.Base(segments[0]), ".")[2]).Output()
	require.NoError(t, err)
	var s job.Status
	require.NoError(t, json.Unmarshal(out, &s))
	require.Len(t, s.Ranks, 2)
	return j, s
}

// counted is what goes out through so many windows of a rank there.
func counted(rank int, windows int64, number int) job.WindowStatus {
	n := windows * int64(rank+1)
	return job.WindowStatus{Job: 1, Number: number, Puts: n, PutBytes: 16 * n, Gets: n, GetBytes: 8 * n, Atomics: n, Refused: n,
		Fences: windows}
}

// What /dev/shm has no room for is an error of the allocation, and the program goes on.
func TestAllocatingMoreThanSharedMemoryHas(t *testing.T) {
	r, _ := runOn(t, "/dev/shm", "8m", Run{Preload: "none", Mpirun: elsewhere, Env: []string{"EVENKEEL_ENABLE=0"}},
		"gsm_hold", fmt.Sprint(64<<20))
	assert.Equal(t, 3, r.Status, r)
	assert.Contains(t, r.Stderr, "allocating: 67108864 bytes in /dev/shm: No space left on device: there is no room")
}

func TestReservingMoreThanThereIs(t *testing.T) {
	r := Mpirun(t, Run{Preload: "none", Env: []string{"EVENKEEL_GSM_RESERVE=16777216"}, Ranks: 12}, Program("gsm_hold"), "64")
	assert.Equal(t, 2, r.Status, r)
	assert.Contains(t, r.Stderr, "joining a job")
	assert.Contains(t, r.Stderr, "EVENKEEL_GSM_RESERVE")
	AssertNothingLeft(t, r.Dir)
}

// Packets that no task of the job has sent are told of once on stderr, and in the report: of programs in C and in Go.
func TestForeignPacketsAreReported(t *testing.T) {
	for _, program := range []string{"gsm_hold", "gsm_hold_go"} {
		j := Start(t, Run{Env: []string{"EVENKEEL_GSM_APART=1", "EVENKEEL_FABRIC=udp"}}, Program(program), "4096")
		j.Until(t, "held")
		ports := udpPorts(t, j.status(t, func(job.Status) bool { return true }).Ranks[1].PID)
		require.NotEmpty(t, ports, program)
		const notice = "task 1 has dropped 1000 packets that are not this job's"
		foreign := append([]byte{0xe1, 0, 0, 0, 0, 0, 0, 0}, make([]byte, 100)...) // as the UDP fabric's, from task 0
		for deadline := time.Now().Add(time.Minute); !strings.Contains(j.stderr.text(), notice); {
			require.True(t, time.Now().Before(deadline), "%s: %s", program, j.stderr.text())
			for _, port := range ports {
				send(t, port, foreign, 100)
			}
		}
		for _, port := range ports {
			send(t, port, foreign, 100)
		}
		j.Signal(syscall.SIGTERM)
		r := j.Wait(t)
		assert.Equal(t, 1, strings.Count(r.Stderr, "that are not this job's"), r)
		notes := strings.Join(r.Profile(t).Notes, "\n")
		assert.Regexp(t, `Rank 1 dropped \d{4,} packets that are not its job's`, notes, program)
	}
}

// udpPorts are those at which a process receives datagrams from everywhere.
func udpPorts(t *testing.T, pid int) (ports []int) {
	t.Helper()
	process := fmt.Sprintf("/proc/%d/", pid)
	descriptors, err := os.ReadDir(process + "fd")
	require.NoError(t, err)
	own := map[string]bool{}
	for _, d := range descriptors {
		if to, err := os.Readlink(process + "fd/" + d.Name()); err == nil {
			own[to] = true
		}
	}
	for _, table := range []string{"net/udp", "net/udp6"} {
		lines, err := os.ReadFile(process + table)
		require.NoError(t, err)
		for _, line := range strings.Split(string(lines), "\n") {
			// sl local remote state queues timer retransmissions uid timeout inode
			words := strings.Fields(line)
			if len(words) < 10 || !own["socket:["+words[9]+"]"] || strings.Trim(words[2], "0:") != "" {
				continue
			}
			_, hex, _ := strings.Cut(words[1], ":")
			port, err := strconv.ParseUint(hex, 16, 16)
			require.NoError(t, err)
			ports = append(ports, int(port))
		}
	}
	return ports
}

// send sends a datagram so many times to a port of this host.
func send(t *testing.T, port int, datagram []byte, times int) {
	t.Helper()
	c, err := net.Dial("udp", fmt.Sprintf("127.0.0.1:%d", port))
	require.NoError(t, err)
	defer c.Close()
	for range times {
		c.Write(datagram) // a port of another network of the process may have nobody who receives
	}
}
