package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// program compiles a C program and returns its path.
func program(t *testing.T, text string, flags ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "app")
	require.NoError(t, compile(text, path, flags...))
	return path
}

// script writes an executable file.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o755))
	return path
}

const idle = "int main(void) { return 0; }"

// TestRunBecomesTheProgram holds for everything that a program notices of how
// it was started: it gets the same as without evenkeel, but for LD_PRELOAD.
func TestRunBecomesTheProgram(t *testing.T) {
	show := script(t, `#!/bin/sh
printf '%s\n' "$0" "$@"
cat
env | grep -v '^LD_PRELOAD=' | grep -v '^_=' | sort
ulimit -a
pwd
ls /proc/self/fd
grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status
echo to stderr >&2
`)
	start := func(args ...string) (string, string) {
		var stdout, stderr strings.Builder
		c := exec.Command("sh", append([]string{"-c", `trap '' HUP; ulimit -S -n 300; exec "$@"`, "sh"}, args...)...)
		c.Stdin = strings.NewReader("from stdin\n")
		c.Stdout, c.Stderr = &stdout, &stderr
		c.Dir = "/"
		c.Env = []string{"PATH=" + os.Getenv("PATH"), "EMPTY=", "LINES=a\nb", "EVENKEEL_TIME=all"}
		require.NoError(t, c.Run())
		return stdout.String(), stderr.String()
	}
	args := []string{show, "-x", "", "a b", "--", "--out"}
	stdout, stderr := start(args...)
	ourStdout, ourStderr := start(append([]string{evenkeel, "run"}, args...)...)
	assert.Equal(t, stdout, ourStdout)
	assert.Equal(t, stderr, ourStderr)
	assert.Contains(t, ourStdout, "a b\n--\n--out\nfrom stdin\n")
}

// Go itself would end the process with pages about its own state.
func TestTooLittleAddressSpace(t *testing.T) {
	for _, kib := range []int{200_000, 1_000_000} {
		var stdout, stderr strings.Builder
		c := exec.Command("sh", "-c", fmt.Sprintf(`ulimit -v %d; exec "$@"`, kib), "sh", evenkeel, "run", "echo", "hello")
		c.Stdout, c.Stderr = &stdout, &stderr
		require.Error(t, c.Run())
		assert.Equal(t, 2, c.ProcessState.ExitCode())
		assert.Empty(t, stdout.String())
		assert.Regexp(t, `^evenkeel: the address space is limited to \d+ MiB \(ulimit -v\), and this command needs 2048: .*\n$`, stderr.String())
	}
}

func TestRunKeepsTheExitStatus(t *testing.T) {
	for _, status := range []int{0, 1, 2, 77, 255} {
		got := invoke(t, nil, "run", "sh", "-c", fmt.Sprintf("echo out; echo err >&2; exit %d", status))
		assert.Equal(t, outcome{status, "out\n", "err\n"}, got)
	}
}

// TestRunPassesSignals sends them to the process that was started as evenkeel.
func TestRunPassesSignals(t *testing.T) {
	for _, number := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGKILL} {
		if signal.Ignored(number) {
			continue // under nohup: programs ignore it too
		}
		c := exec.Command(evenkeel, "run", "sh", "-c", "echo ready; while :; do read line || exit 3; done")
		stdin, err := c.StdinPipe()
		require.NoError(t, err)
		stdout, err := c.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, c.Start())
		line, err := bufio.NewReader(stdout).ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "ready\n", line)
		require.NoError(t, c.Process.Signal(number))
		c.Wait()
		stdin.Close()
		status := c.ProcessState.Sys().(syscall.WaitStatus)
		assert.True(t, status.Signaled(), "%v: %v", number, c.ProcessState)
		assert.Equal(t, number, status.Signal())
	}
	got := invoke(t, nil, "run", "sh", "-c", "trap 'echo caught; exit 5' TERM; kill -TERM $$; :")
	assert.Equal(t, outcome{5, "caught\n", ""}, got, "the program's own handlers")
}

func TestRunPreloads(t *testing.T) {
	other := filepath.Join(t.TempDir(), "libother.so")
	require.NoError(t, compile("int other;", other, "-shared", "-fPIC"))
	third := filepath.Join(filepath.Dir(other), "libthird.so")
	require.NoError(t, os.Symlink(other, third))
	for before, want := range map[string]string{
		"":                    library,
		other:                 library + ":" + other,
		other + ":" + third:   library + ":" + other + ":" + third,
		other + " " + third:   library + ":" + other + ":" + third,
		other + " : " + third: library + ":" + other + ":" + third,
		other + ":" + library: library + ":" + other,
		library + ":" + other: library + ":" + other,
	} {
		// printenv would see it even if the dynamic linker had refused it.
		got := invoke(t, []string{"LD_PRELOAD=" + before}, "run", "sh", "-c", "echo $LD_PRELOAD; grep -c libevenkeel.so /proc/self/maps >/dev/null && echo loaded")
		assert.Equal(t, outcome{0, want + "\nloaded\n", ""}, got, before)
	}
	assert.Equal(t, "/new/libevenkeel.so:b", preload("/new/libevenkeel.so", "/old/libevenkeel.so:b"), "another installation's goes")
}

func TestRunFindsTheLibraryByVariable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mine.so")
	require.NoError(t, compile("int mine;", path, "-shared", "-fPIC"))
	got := invoke(t, []string{"EVENKEEL_LIB=" + path}, "run", "sh", "-c", "echo $LD_PRELOAD; env | grep -c EVENKEEL")
	assert.Equal(t, path+"\n0\n", got.stdout, "the variable is for evenkeel run alone")

	link := filepath.Join(t.TempDir(), "evenkeel")
	require.NoError(t, os.Symlink(evenkeel, link))
	output, err := exec.Command(link, "run", "sh", "-c", "echo $LD_PRELOAD").Output()
	require.NoError(t, err)
	assert.Equal(t, library+"\n", string(output), "a link to the command may be anywhere")
}

func TestRunSetsSettings(t *testing.T) {
	show := []string{"sh", "-c", "env | grep EVENKEEL | sort"}
	for _, c := range []struct {
		flags []string
		want  string
	}{
		{nil, "EVENKEEL_TIME=none\n"},
		{[]string{"--time", "all", "--summary=false", "--ring=512"}, "EVENKEEL_RING=512\nEVENKEEL_SUMMARY=0\nEVENKEEL_TIME=all\n"},
		{[]string{"--summary", "1", "--out", "/a b/../c", "--"}, "EVENKEEL_OUT=/c\nEVENKEEL_SUMMARY=1\nEVENKEEL_TIME=none\n"},
		{[]string{"--out="}, "EVENKEEL_TIME=none\n"},
	} {
		args := append(append([]string{"run"}, c.flags...), show...)
		assert.Equal(t, outcome{0, c.want, ""}, invoke(t, []string{"EVENKEEL_TIME=none"}, args...), "%q", c.flags)
	}
	got := invoke(t, nil, "run", "--out", "profiles", "sh", "-c", "pwd; echo $EVENKEEL_OUT")
	lines := strings.Fields(got.stdout)
	require.Len(t, lines, 2)
	assert.Equal(t, filepath.Join(lines[0], "profiles"), lines[1], "relative paths are made absolute")
}

// TestRunRefuses holds for each way to use it wrongly: one sentence on stderr,
// nothing on stdout, status 2.
func TestRunRefuses(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	require.NoError(t, os.WriteFile(plain, []byte(idle), 0o644))
	text := script(t, "no first line\n")
	noInterpreter := script(t, "#!/no/such/shell -x\n")
	static := program(t, idle, "-static")
	staticPIE := program(t, idle, "-static-pie")
	foreign := program(t, idle)
	patch(t, foreign, 18, 183) // e_machine: EM_AARCH64
	narrow := program(t, idle, "-mx32", "-c")
	require.NoError(t, os.Chmod(narrow, 0o755))
	mpich := linkedTo(t, "libmpich.so.12")
	damaged := filepath.Join(dir, "damaged.so")
	require.NoError(t, os.WriteFile(damaged, []byte("\x7fELF"), 0o644))

	for _, c := range []struct {
		extra []string
		args  []string
		want  string
	}{
		{nil, nil, `run needs a program: mpirun -np 4 evenkeel run \./app args…`},
		{nil, []string{"--"}, `run needs a program: mpirun -np 4 evenkeel run \./app args…`},
		{nil, []string{"--bogus", "sh"}, `unknown flag: --bogus; see evenkeel run --help`},
		{nil, []string{"--time", "al", "sh"}, `invalid argument "al" for "--time" flag: "al" is not auto, all or none`},
		{nil, []string{"--drain=0", "sh"}, `invalid argument "0" for "--drain" flag: "0" is not a whole number from 1 to 10000 \(ms\)`},
		{nil, []string{"mpirun", "-np", "4", "./app"}, `mpirun starts ranks and is none itself: put evenkeel behind it, as in mpirun -np 4 evenkeel run \./app args…`},
		{nil, []string{"/usr/bin/mpiexec.openmpi", "./app"}, `/usr/bin/mpiexec\.openmpi starts ranks and is none itself: put evenkeel behind it, as in mpiexec -np 4 evenkeel run \./app args…`},
		{nil, []string{"nosuchprogram"}, `there is no program nosuchprogram in PATH`},
		{nil, []string{"./nosuchprogram"}, `there is no program \./nosuchprogram`},
		{nil, []string{plain + "/under"}, `cannot start .*/under: not a directory`},
		{nil, []string{dir}, `.* is a directory, not a program`},
		{nil, []string{plain}, `.*/plain may not be executed; chmod \+x makes it a program`},
		{nil, []string{text}, `cannot start .*: exec format error`},
		{nil, []string{noInterpreter}, `.* cannot start: there is no /no/such/shell, which its first line asks for`},
		{nil, []string{static}, `.*/app is linked statically, so nothing can be preloaded into it: link it dynamically to run it under evenkeel`},
		{nil, []string{staticPIE}, `.*/app is linked statically, .*`},
		{nil, []string{foreign}, `.*/app is a program for 64-bit AARCH64, and this evenkeel is for 64-bit X86_64`},
		{nil, []string{narrow}, `.*/app is a program for 32-bit X86_64, and this evenkeel is for 64-bit X86_64`},
		{nil, []string{mpich}, `.*/app uses another MPI than Open MPI \(libmpich\.so\.12\), and evenkeel works with Open MPI alone`},
		{[]string{"EVENKEEL_LIB=/no/lib.so"}, []string{"true"}, `there is no /no/lib\.so \(EVENKEEL_LIB says so\)`},
		{[]string{"EVENKEEL_LIB=" + dir}, []string{"true"}, `.* is no file \(EVENKEEL_LIB says so\)`},
		{[]string{"EVENKEEL_LIB=" + damaged}, []string{"true"}, `.*/damaged\.so is damaged \(.*\); install evenkeel again`},
	} {
		got := invoke(t, c.extra, append([]string{"run"}, c.args...)...)
		assert.Equal(t, 2, got.status, "%q", c.args)
		assert.Empty(t, got.stdout, "%q", c.args)
		assert.Regexp(t, `^evenkeel: (`+c.want+`)\n$`, got.stderr, "%q", c.args)
	}
}

// patch changes a byte of a file.
func patch(t *testing.T, path string, offset int64, value byte) {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = file.WriteAt([]byte{value}, offset)
	require.NoError(t, err)
	require.NoError(t, file.Close())
}

// linkedTo compiles a program that needs a library of that name.
func linkedTo(t *testing.T, soname string) string {
	dir := t.TempDir()
	so := filepath.Join(dir, soname)
	require.NoError(t, compile("int MPI_Fake(void) { return 0; }", so, "-shared", "-fPIC", "-Wl,-soname,"+soname))
	path := filepath.Join(dir, "app")
	// Behind the text, so that the linker sees who needs it.
	require.NoError(t, compile("int MPI_Fake(void); int main(void) { return MPI_Fake(); }", path, "-x", "none", so, "-Wl,-rpath,"+dir))
	return path
}

func TestRunWithoutInstallation(t *testing.T) {
	lonely := filepath.Join(t.TempDir(), "bin", "evenkeel")
	require.NoError(t, os.Mkdir(filepath.Dir(lonely), 0o755))
	data, err := os.ReadFile(evenkeel)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(lonely, data, 0o755))
	output, err := exec.Command(lonely, "run", "true").CombinedOutput()
	require.Error(t, err)
	assert.Equal(t, 2, err.(*exec.ExitError).ExitCode())
	assert.Regexp(t, `^evenkeel: there is no .*/lib/libevenkeel\.so \(it belongs beside the command, or set EVENKEEL_LIB to its path\)\n$`, string(output))

	blank := filepath.Join(t.TempDir(), "a b.so")
	require.NoError(t, os.Link(library, blank))
	got := invoke(t, []string{"EVENKEEL_LIB=" + blank}, "run", "true")
	assert.Equal(t, 2, got.status)
	assert.Contains(t, got.stderr, "because LD_PRELOAD takes no path with a blank or a colon")
}

func TestRunFindsPrograms(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "here"), []byte("#!/bin/sh\necho found $0\n"), 0o755))
	run := func(path, name string) string {
		c := exec.Command(evenkeel, "run", name)
		c.Dir = dir
		c.Env = append(os.Environ(), "PATH="+path)
		output, _ := c.CombinedOutput()
		return string(output)
	}
	assert.Equal(t, "found ./here\n", run("/bin", "./here"))
	assert.Equal(t, "found "+dir+"/here\n", run("/bin:"+dir, "here"))
	assert.Equal(t, "found here\n", run(".:/bin", "here"))
	assert.Equal(t, "evenkeel: there is no program here in PATH; the one in this directory is ./here\n", run("/bin", "here"))
}

// TestRunNotes holds for programs that run, though not to their users' ends.
func TestRunNotes(t *testing.T) {
	const note = " does not use MPI (no libmpi among its libraries): it runs as it is, and there will be no report\n"
	without := program(t, `#include <stdio.h>
int main(void) { puts("running"); return 4; }`)
	assert.Equal(t, outcome{4, "running\n", "evenkeel: " + without + note}, invoke(t, nil, "run", without))
	for _, variable := range []string{"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID"} {
		assert.Equal(t, "evenkeel: "+without+note, invoke(t, []string{variable + "=0"}, "run", without).stderr)
		assert.Empty(t, invoke(t, []string{variable + "=1"}, "run", without).stderr, "said once a job")
	}

	fortran := filepath.Join(t.TempDir(), "fortran")
	source := fortran + ".f90"
	require.NoError(t, os.WriteFile(source, []byte("print *, 'running'\nend\n"), 0o644))
	require.NoError(t, exec.Command("gfortran", source, "-o", fortran).Run())
	assert.Equal(t, "evenkeel: "+fortran+note, invoke(t, nil, "run", fortran).stderr)

	const calls = "#include <dlfcn.h>\n#include <stdlib.h>\n#include <unistd.h>\nint main(int c, char **v) { if (c > 9) %s; return 0; }"
	for what, path := range map[string]string{
		"uses MPI":                linkedTo(t, "libmpi.so.40"),
		"loads libraries":         program(t, fmt.Sprintf(calls, `dlopen(v[1], 1)`)),
		"starts programs":         program(t, fmt.Sprintf(calls, `execvp(v[1], v)`)),
		"starts shells":           program(t, fmt.Sprintf(calls, `system(v[1])`)),
		"is an interpreter":       "/bin/sh",
		"is a script":             script(t, "#!/bin/sh\n"),
		"uses MPI over a library": linkedOver(t, "int MPI_Fake(void); int over(void) { return MPI_Fake(); }", "libmpi.so.40"),
		"loads over a library":    linkedOver(t, "#include <dlfcn.h>\nint over(void) { return !dlopen(0, 1); }", ""),
	} {
		assert.Equal(t, outcome{}, invoke(t, nil, "run", path, "-c", ":"), "a program that %s", what)
	}
}

// linkedOver compiles a program that needs a library of that text, which may
// need another one.
func linkedOver(t *testing.T, text, soname string) string {
	dir := t.TempDir()
	over := filepath.Join(dir, "libover.so")
	flags := []string{"-shared", "-fPIC", "-Wl,-rpath," + dir, "-Wl,-soname,libover.so"}
	if soname != "" {
		so := filepath.Join(dir, soname)
		require.NoError(t, compile("int MPI_Fake(void) { return 0; }", so, "-shared", "-fPIC", "-Wl,-soname,"+soname))
		flags = append(flags, "-x", "none", so)
	}
	require.NoError(t, compile(text, over, flags...))
	path := filepath.Join(dir, "app")
	require.NoError(t, compile("int over(void); int main(void) { return over(); }", path, "-x", "none", over, "-Wl,-rpath,"+dir, "-Wl,-rpath-link,"+dir))
	return path
}

// TestRunNotesOtherRights needs a file of another user, so it needs root.
func TestRunNotesOtherRights(t *testing.T) {
	if os.Getuid() != 0 {
		require.Empty(t, os.Getenv("CI"), "in CI this must run")
		t.Skip("only root can make a program that belongs to another user")
	}
	path := program(t, idle)
	require.NoError(t, os.Chown(path, 12345, 12345))
	require.NoError(t, os.Chmod(path, 0o755|os.ModeSetuid))
	want := "evenkeel: " + path + " runs with other rights than yours (set-user-ID or the like), so the system preloads nothing: there will be no report\n"
	assert.Equal(t, outcome{0, "", want}, invoke(t, nil, "run", path))
	require.NoError(t, os.Chmod(path, 0o755|os.ModeSetgid))
	assert.Equal(t, outcome{0, "", want}, invoke(t, nil, "run", path))
}

// TestRunUnderDynamicLinker starts a program through its dynamic linker, which
// itself looks like a static program.
func TestRunUnderDynamicLinker(t *testing.T) {
	linker, err := filepath.Glob("/lib64/ld-linux*")
	require.NoError(t, err)
	require.NotEmpty(t, linker)
	got := invoke(t, nil, "run", linker[0], "/bin/sh", "-c", "grep -c libevenkeel.so /proc/self/maps >/dev/null && echo loaded")
	assert.Equal(t, "loaded\n", got.stdout)
}
