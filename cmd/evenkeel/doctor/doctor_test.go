package doctor

import (
	"bufio"
	"fmt"
	"math"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/pkg/errors"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"evenkeel/c/tables"
	"evenkeel/collectives"
)

// sound is a machine on which nothing is wrong, made of files.
func sound(t *testing.T) Machine {
	m := Machine{root: t.TempDir(), uid: 1000, locked: unix.RLIM_INFINITY, space: unix.RLIM_INFINITY, affinity: func() int { return 4 }, statfs: shm(4096, 4096), near: slowNear, udp: slowUDP}
	m.addresses = func(string) ([]netip.Prefix, error) {
		return []netip.Prefix{netip.MustParsePrefix("10.1.2.3/8"), netip.MustParsePrefix("127.0.0.1/8")}, nil
	}
	m.put(t, "/proc/sys/net/core/rmem_max", "4194304\n")
	m.put(t, "/proc/cpuinfo", "flags : fpu constant_tsc rep_good nonstop_tsc cpuid\n")
	m.put(t, "/proc/self/cgroup", "0::/\n")
	m.put(t, "/proc/sys/kernel/osrelease", "6.1.0\n")
	m.put(t, "/proc/self/ns/time", "")
	m.put(t, clockSources+"current_clocksource", "tsc\n")
	m.put(t, clockSources+"available_clocksource", "tsc acpi_pm\n")
	m.put(t, "/sys/devices/system/cpu/online", "0-3\n")
	require.NoError(t, os.MkdirAll(m.path("/dev/shm"), 0o755))

	prefix := t.TempDir()
	for _, dir := range []string{"bin", "lib"} {
		require.NoError(t, os.Mkdir(filepath.Join(prefix, dir), 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(prefix, "bin/evenkeel"), nil, 0o755))
	m.Library = filepath.Join(prefix, "lib/libevenkeel.so")
	functions, _, err := tables.MPI()
	require.NoError(t, err)
	text := "int ek_register_runtime;\n"
	for _, f := range functions {
		text += "int " + f.Symbol() + ";\n"
	}
	library(t, m.Library, text)
	library(t, runtimeOf(m), fmt.Sprintf("const unsigned ek_runtime[2] = {%d, 48};", runtimeVersion))

	// Open MPI: a mpirun and its libraries.
	mpi := t.TempDir()
	m.Environ = []string{"LD_LIBRARY_PATH=" + mpi, "PATH=" + os.Getenv("PATH")}
	t.Setenv("PATH", mpi+":"+os.Getenv("PATH"))
	command(t, mpi+"/mpirun", "echo 'mpirun (Open MPI) 4.1.4'")
	command(t, mpi+"/python3", "echo 4.0.0")
	library(t, mpi+"/libmpi.so.40", `const char ompi_version_string[] = "4.1.4";`)
	library(t, mpi+"/libmpi_mpifh.so.40", "int f;")
	library(t, mpi+"/libmpi_usempif08.so.40", "int f;")
	m.Environ[1] = "PATH=" + os.Getenv("PATH")
	return m
}

func (m Machine) put(t *testing.T, path, text string) {
	require.NoError(t, os.MkdirAll(filepath.Dir(m.path(path)), 0o755))
	require.NoError(t, os.WriteFile(m.path(path), []byte(text), 0o644))
}

func (m *Machine) set(variable string) { m.Environ = append([]string{variable}, m.Environ...) }

// mpi is the directory of Open MPI.
func (m Machine) mpi() string { return m.variable("LD_LIBRARY_PATH") }

func runtimeOf(m Machine) string {
	return filepath.Join(filepath.Dir(m.Library), "libevenkeel-runtime.so")
}

var compiled = map[string][]byte{} // by text and flags

func library(t *testing.T, path, text string, flags ...string) {
	key := fmt.Sprint(text, flags)
	if data, known := compiled[key]; known {
		require.NoError(t, os.WriteFile(path, data, 0o755))
		return
	}
	gcc := exec.Command("gcc", append([]string{"-shared", "-fPIC", "-x", "c", "-", "-o", path}, flags...)...)
	gcc.Stdin = strings.NewReader(text)
	output, err := gcc.CombinedOutput()
	require.NoError(t, err, string(output))
	compiled[key], err = os.ReadFile(path)
	require.NoError(t, err)
}

func command(t *testing.T, path, text string) {
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755))
}

// shm is a file system of so many megabytes.
func shm(size, free uint64) func(string, *unix.Statfs_t) error {
	return func(_ string, fs *unix.Statfs_t) error {
		fs.Bsize, fs.Blocks, fs.Bavail = 4096, size<<8, free<<8
		return nil
	}
}

func TestSoundMachine(t *testing.T) {
	for _, f := range sound(t).examine() {
		assert.Equal(t, OK, f.Status, "%+v", f)
		assert.Empty(t, f.Fix)
		assert.NotEmpty(t, f.What)
		assert.NotEmpty(t, f.Why)
		assert.NotContains(t, f.What, "..", "%+v", f)
	}
}

// TestDefects breaks one thing at a time: there is then exactly one finding
// that was not there before, with that status and those words.
func TestDefects(t *testing.T) {
	for name, c := range map[string]struct {
		spoil  func(t *testing.T, m *Machine)
		status Status
		what   string
	}{
		"no mpirun": {func(t *testing.T, m *Machine) { t.Setenv("PATH", "/nowhere") }, Fail, `^There is no mpirun in PATH`},
		"another MPI": {func(t *testing.T, m *Machine) { command(t, m.mpi()+"/mpirun", "echo HYDRA build details:") },
			Fail, `mpirun is not of Open MPI: it says "HYDRA build details:"`},
		"a newer Open MPI": {func(t *testing.T, m *Machine) {
			command(t, m.mpi()+"/mpirun", "echo 'mpirun (Open MPI) 5.0.1'")
		}, Warn, `mpirun is of Open MPI 5\.0\.1, and .*libmpi\.so\.40 of 4\.1\.4`},
		"an unmarked libmpi": {func(t *testing.T, m *Machine) { library(t, m.mpi()+"/libmpi.so.40", "int x;") }, Warn, `of unknown`},
		"root":               {func(t *testing.T, m *Machine) { m.uid = 0 }, Warn, `You are root`},
		"root, half confirmed": {func(t *testing.T, m *Machine) {
			m.uid = 0
			m.set("OMPI_ALLOW_RUN_AS_ROOT=1")
		}, Warn, `You are root`},
		"mpi4py of MPICH": {func(t *testing.T, m *Machine) {
			library(t, m.mpi()+"/libmpich.so.12", "int x;", "-Wl,-soname,libmpich.so.12")
			library(t, m.mpi()+"/MPI.so", "extern int x; int *y = &x;", "-x", "none", m.mpi()+"/libmpich.so.12")
			command(t, m.mpi()+"/python3", "echo 4.0.0 "+m.mpi()+"/MPI.so")
		}, Warn, `mpi4py 4\.0\.0 is built for another MPI: it needs libmpich\.so\.12`},
		"no library":      {func(t *testing.T, m *Machine) { m.LibraryErr = errors.New("there is no X") }, Fail, `^Not found: there is no X\.$`},
		"broken library":  {func(t *testing.T, m *Machine) { require.NoError(t, os.Truncate(m.Library, 100)) }, Fail, `is damaged`},
		"foreign library": {func(t *testing.T, m *Machine) { library(t, m.Library, "int x;") }, Fail, `is not evenkeel's library`},
		"old library": {func(t *testing.T, m *Machine) { library(t, m.Library, "int ek_register_runtime, MPI_Send;") },
			Fail, `is of another build than this command: it has no (MPI|ek)_`},
		"no runtime":      {func(t *testing.T, m *Machine) { require.NoError(t, os.Remove(runtimeOf(*m))) }, Warn, `There is no .*/libevenkeel-runtime\.so`},
		"foreign runtime": {func(t *testing.T, m *Machine) { library(t, runtimeOf(*m), "int x;") }, Warn, `is not evenkeel's runtime`},
		"runtime of another version": {func(t *testing.T, m *Machine) { library(t, runtimeOf(*m), "const unsigned ek_runtime[2] = {9, 48};") },
			Warn, `has version 9 of the interface, and this evenkeel \d+`},
		"runtime elsewhere": {func(t *testing.T, m *Machine) { m.set("EVENKEEL_RUNTIME=/nowhere/r.so") }, Warn, `There is no /nowhere/r\.so`},
		"no watcher": {func(t *testing.T, m *Machine) {
			require.NoError(t, os.Remove(filepath.Join(filepath.Dir(m.Library), "../bin/evenkeel")))
		}, Warn, `There is no program .*/bin/evenkeel`},
		"unknown setting": {func(t *testing.T, m *Machine) { m.set("EVENKEEL_RINGS=1") }, Warn, `EVENKEEL_RINGS is not a setting`},
		"no /dev/shm": {func(t *testing.T, m *Machine) {
			m.statfs = func(string, *unix.Statfs_t) error { return unix.ENOENT }
		}, Fail, `There is no /dev/shm: no such file or directory`},
		"unusable /dev/shm": {func(t *testing.T, m *Machine) { require.NoError(t, os.Remove(m.path("/dev/shm"))) }, Fail, `No file can be made`},
		"small /dev/shm":    {func(t *testing.T, m *Machine) { m.statfs = shm(64, 40) }, Warn, `^40 of 64 MB free; a rank takes up to 12 MB, and 4 ranks, one for each core, 50 MB\.$`},
		"full /dev/shm":     {func(t *testing.T, m *Machine) { m.statfs = shm(64, 2) }, Fail, `^2 of 64 MB free`},
		"long history":      {func(t *testing.T, m *Machine) { m.set("EVENKEEL_HISTORY=16777216") }, Warn, `a rank takes up to 1032 MB`},
		"dead segment": {func(t *testing.T, m *Machine) {
			m.uid = os.Getuid()
			m.put(t, "/dev/shm/evenkeel.0.77.1.0", "dead")
			confirm(m)
		}, Warn, `^1 segments \(0 MB\) of jobs that are gone: .*/evenkeel\.0\.77\.1\.0\.$`},
		"small sockets": {func(t *testing.T, m *Machine) { m.put(t, "/proc/sys/net/core/rmem_max", "212992\n") }, Warn,
			`over UDP \(EVENKEEL_FABRIC=auto\), at 10\.1\.2\.3, 127\.0\.0\.1\. Sockets get room for 208 kB, and want 4096 kB`},
		"no such address": {func(t *testing.T, m *Machine) {
			m.set("EVENKEEL_UDP_ADDRESS=eth9")
			m.addresses = func(want string) ([]netip.Prefix, error) { return nil, errors.New("there is no " + want) }
		}, Warn, `UDP can't be used between nodes: there is no eth9`},
		"variable clock": {func(t *testing.T, m *Machine) { m.put(t, clockSources+"available_clocksource", "hpet") }, Warn, `the kernel does not trust it`},
		"slow clock":     {func(t *testing.T, m *Machine) { m.put(t, clockSources+"current_clocksource", "hpet") }, Warn, `reads its clock from hpet`},
		"few cores":      {func(t *testing.T, m *Machine) { m.affinity = func() int { return 2 } }, Warn, `^2 of 4 may be used from here`},
		"quota":          {func(t *testing.T, m *Machine) { m.put(t, "/sys/fs/cgroup/cpu.max", "150000 100000\n") }, Warn, `grants 1\.5 cores' time, and 4 cores`},
		"quota of a parent": {func(t *testing.T, m *Machine) {
			m.put(t, "/proc/self/cgroup", "0::/a/b\n")
			m.put(t, "/sys/fs/cgroup/a/b/cpu.max", "max 100000")
			m.put(t, "/sys/fs/cgroup/a/cpu.max", "50000 100000")
		}, Warn, `grants 0\.5 cores`},
		"quota of cgroup 1": {func(t *testing.T, m *Machine) {
			m.put(t, "/proc/self/cgroup", "4:memory:/x\n3:cpuacct,cpu:/a\n")
			m.put(t, "/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "100000")
			m.put(t, "/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000")
		}, Warn, `grants 1 cores`},
		"closed memory":        {func(t *testing.T, m *Machine) { m.put(t, "/proc/sys/kernel/yama/ptrace_scope", "2\n") }, Warn, `ptrace_scope is 2`},
		"busy waiting":         {func(t *testing.T, m *Machine) { m.set("OMPI_MCA_mpi_yield_when_idle=0") }, Warn, `those that wait keep others from working`},
		"few addresses":        {func(_ *testing.T, m *Machine) { m.space = 2 << 30 }, Warn, `A process may have 2048 MB of addresses`},
		"little locked memory": {func(t *testing.T, m *Machine) { m.put(t, "/sys/class/infiniband/mlx5_0", ""); m.locked = 65536 }, Warn, `At most 64 kB may be locked, and mlx5_0 is there`},
	} {
		t.Run(name, func(t *testing.T) {
			m := sound(t)
			c.spoil(t, &m)
			var found []Finding
			for _, f := range m.examine() {
				if f.Status != OK {
					found = append(found, f)
				}
			}
			require.Len(t, found, 1)
			assert.Equal(t, c.status, found[0].Status)
			assert.Regexp(t, c.what, found[0].What)
			assert.NotEmpty(t, found[0].Why)
			assert.NotEmpty(t, found[0].Fix)
		})
	}
}

// confirm tells mpirun to accept root, so that only what else is wrong is found.
func confirm(m *Machine) {
	m.set("OMPI_ALLOW_RUN_AS_ROOT=1")
	m.set("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
}

// TestLivingSegment has a rank that holds the lock of its byte: a second
// process of this test.
func TestLivingSegment(t *testing.T) {
	const toHold = "DOCTOR_TEST_HOLD"
	if path := os.Getenv(toHold); path != "" {
		file, err := os.OpenFile(path, os.O_RDWR, 0)
		require.NoError(t, err)
		require.NoError(t, unix.FcntlFlock(file.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Start: 3, Len: 1}))
		fmt.Println("held")
		os.Stdin.Read(make([]byte, 1))
		return
	}
	m := sound(t)
	m.uid = os.Getuid()
	m.put(t, "/dev/shm/evenkeel.0.77.1.0", "segment")
	path := m.path("/dev/shm/evenkeel.0.77.1.0")
	holder := exec.Command(os.Args[0], "-test.run", "TestLivingSegment")
	holder.Env = append(os.Environ(), toHold+"="+path)
	stdin, err := holder.StdinPipe()
	require.NoError(t, err)
	stdout, err := holder.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, holder.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "held\n", line)
	assert.Empty(t, m.leftBehind(), "its rank lives")
	require.NoError(t, stdin.Close())
	holder.Wait()
	assert.Len(t, m.leftBehind(), 1, "its rank is dead")
}

// TestOptional holds for what only some programs need: missing, it is told, and
// is no defect.
func TestOptional(t *testing.T) {
	m := sound(t)
	require.NoError(t, os.Remove(m.mpi()+"/libmpi_mpifh.so.40"))
	command(t, m.mpi()+"/python3", "exit 1")
	m.set("LD_LIBRARY_PATH=" + m.mpi())
	for _, f := range append(m.fortran(), m.python()...) {
		assert.Equal(t, OK, f.Status)
		assert.Empty(t, f.Fix, "nothing is to be mended where all is well")
	}
	assert.Contains(t, m.python()[0].What, "no mpi4py (Debian: python3-mpi4py)")
}

func TestCountCores(t *testing.T) {
	for list, want := range map[string]int{"": 0, "0": 1, "0-3": 4, "0-3,8,10-11": 7, "x": 0} {
		assert.Equal(t, want, countCores(list), list)
	}
}

func TestShare(t *testing.T) {
	for text, want := range map[string]float64{"": math.Inf(1), "max 100000": math.Inf(1), "-1 100000": math.Inf(1), "50000 100000": .5, "1 0": math.Inf(1)} {
		assert.Equal(t, want, share(text), text)
	}
}

// TestRuntimeVersion holds this package's idea of the interface against C's.
func TestRuntimeVersion(t *testing.T) {
	header, err := os.ReadFile("../../../c/runtime.h")
	require.NoError(t, err)
	match := regexp.MustCompile(`#define EK_RUNTIME_VERSION (\d+)`).FindSubmatch(header)
	require.NotNil(t, match)
	assert.Equal(t, strconv.Itoa(runtimeVersion), string(match[1]))
}

// TestThisMachine looks at the real one: whatever it finds is in full words.
func TestThisMachine(t *testing.T) {
	for _, f := range Examine(Machine{Environ: os.Environ(), LibraryErr: errors.New("none")}) {
		assert.Contains(t, []Status{OK, Warn, Fail}, f.Status)
		assert.NotEmpty(t, f.What)
		assert.NotEmpty(t, f.Why)
		if f.Status != OK {
			assert.NotEmpty(t, f.Fix, "%+v", f)
		}
	}
}

// What messages cost on a machine of tests.
func slowNear() (collectives.Link, error) {
	return collectives.Link{Latency: 200, Overhead: 100, Gap: 100, PerByte: 0.1}, nil
}

func slowUDP() (collectives.Link, error) {
	return collectives.Link{Latency: 20000, Overhead: 3000, Gap: 3000, PerByte: 1}, nil
}

func TestSchedules(t *testing.T) {
	m := sound(t)
	findings := m.schedules()
	require.Len(t, findings, 1)
	assert.Equal(t, OK, findings[0].Status)
	assert.Contains(t, findings[0].What, "Shared memory: latency 0.20 µs, overhead 0.10 µs, gap 0.10 µs, 0.100 ns a byte")
	assert.Contains(t, findings[0].What, "64 tasks on 8 nodes")
	m.near, m.udp = m.measureNear, measureUDP
	findings = m.schedules() // in the shared memory of the test's machine
	assert.Equal(t, OK, findings[0].Status, findings[0].What)
}

// Only what is in use is measured, and told.
func TestSchedulesOfWhatIsUsed(t *testing.T) {
	unusable := func() (collectives.Link, error) { return collectives.Link{}, errors.New("no device") }
	for _, c := range []struct {
		fabric, node string
		near, udp    bool
	}{{"auto", "1", true, true}, {"mpi", "1", true, false}, {"auto", "0", false, true}, {"mpi", "0", false, false}} {
		for _, broken := range []string{"", "near", "udp"} {
			m := sound(t)
			m.set("EVENKEEL_FABRIC=" + c.fabric)
			m.set("EVENKEEL_FABRIC_NODE=" + c.node)
			switch broken {
			case "near":
				m.near = unusable
			case "udp":
				m.udp = unusable
			}
			found := m.schedules()[0]
			if broken == "near" && c.near || broken == "udp" && c.udp {
				assert.Equal(t, Warn, found.Status, "%+v", c)
				assert.Contains(t, found.What, "no device")
				continue
			}
			assert.Equal(t, OK, found.Status, "%+v", c)
			assert.Equal(t, c.near, strings.Contains(found.What, "Shared memory: latency 0.20"), found.What)
			assert.Equal(t, c.udp, strings.Contains(found.What, "UDP on this machine: latency 20.00"), found.What)
			assert.Equal(t, c.udp, strings.Contains(found.What, "64 tasks on 8 nodes"), found.What)
			assert.Equal(t, !c.udp, strings.Contains(found.What, "through MPI (EVENKEEL_FABRIC=mpi)"), found.What)
		}
	}
}

func TestFabrics(t *testing.T) {
	for want, setting := range map[string]string{
		`^On a node through shared memory, between nodes over UDP \(EVENKEEL_FABRIC=auto\), at 10\.1\.2\.3, 127\.0\.0\.1\.$`: "EVENKEEL_FABRIC=auto",
		`^On a node through shared memory, between nodes through MPI`:                                                        "EVENKEEL_FABRIC=mpi",
		`^On a node and between nodes over UDP`:                                                                              "EVENKEEL_FABRIC_NODE=0",
	} {
		m := sound(t)
		m.set(setting)
		found := m.fabric()
		require.Len(t, found, 1)
		assert.Regexp(t, want, found[0].What)
		assert.Equal(t, OK, found[0].Status)
	}
}
