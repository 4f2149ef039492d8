package job

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// underMpirun starts a program named mpirun that runs a shell that runs a
// sleeper, which it returns the process number of. "prterun -> prte" is the
// program prte, started by a link.
func underMpirun(t *testing.T, name string, stderr *os.File) (c *exec.Cmd, sleeper int) {
	t.Helper()
	link, name, linked := strings.Cut(name, " -> ")
	if !linked {
		name = link
	}
	shell, err := exec.LookPath("sh")
	require.NoError(t, err)
	content, err := os.ReadFile(shell)
	require.NoError(t, err)
	program := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(program, content, 0o755))
	if linked {
		require.NoError(t, os.Symlink(name, filepath.Join(filepath.Dir(program), link)))
		program = filepath.Join(filepath.Dir(program), link)
	}

	c = exec.Command(program, "-c", "sh -c 'sleep 1000 & echo $!; wait'; :")
	c.Stderr = stderr
	c.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		unix.Kill(-c.Process.Pid, unix.SIGKILL)
		c.Wait()
	})
	var line [16]byte
	n, err := out.Read(line[:])
	require.NoError(t, err)
	for _, digit := range line[:n-1] {
		sleeper = sleeper*10 + int(digit-'0')
	}
	return c, sleeper
}

func fileFor(t *testing.T, flags int) *os.File {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(t.TempDir(), "stderr"), os.O_RDWR|os.O_CREATE|flags, 0o600)
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

func TestLauncherIsFoundAmongTheAncestors(t *testing.T) {
	for _, name := range []string{"mpirun", "orterun", "mpiexec.openmpi", "prterun -> prte"} {
		stderr := fileFor(t, os.O_APPEND)
		_, sleeper := underMpirun(t, name, stderr)
		l := findLauncher(sleeper)
		require.NotNil(t, l.stderr, name)
		_, err := l.choose(os.Stderr).WriteString("told")
		require.NoError(t, err)
		text, err := os.ReadFile(stderr.Name())
		require.NoError(t, err)
		assert.Equal(t, "told", string(text))
		l.stderr.Close()
	}
}

// What mpirun and the watcher write into a file stands there one after the other.
func TestLauncherSharesItsPlaceInAFile(t *testing.T) {
	stderr := fileFor(t, 0)
	c, sleeper := underMpirun(t, "mpirun", stderr)
	if share(c.Process.Pid) == nil {
		t.Skip("no process may take another's files here")
	}
	l := findLauncher(sleeper)
	require.NotNil(t, l.stderr)
	defer l.stderr.Close()
	for _, f := range []*os.File{stderr, l.choose(os.Stderr), stderr} { // stderr is mpirun's
		_, err := f.WriteString("told ")
		require.NoError(t, err)
	}
	text, err := os.ReadFile(stderr.Name())
	require.NoError(t, err)
	assert.Equal(t, "told told told ", string(text))
}

func TestLauncherThatWouldOverwriteIsNotWrittenBehind(t *testing.T) {
	c, _ := underMpirun(t, "mpirun", fileFor(t, 0))
	l := launcher{c.Process.Pid, fileFor(t, 0), true}
	assert.Same(t, os.Stderr, l.choose(os.Stderr), "while it lives")
	unix.Kill(-c.Process.Pid, unix.SIGKILL)
	c.Wait()
	assert.Same(t, l.stderr, l.choose(os.Stderr), "when it is gone")
}

func TestNoLauncher(t *testing.T) {
	for _, name := range []string{"bash-like", "prte"} { // the latter serves many jobs
		_, sleeper := underMpirun(t, name, fileFor(t, os.O_APPEND))
		l := findLauncher(sleeper)
		assert.Same(t, os.Stderr, l.choose(os.Stderr))
	}
	assert.Nil(t, findLauncher(nobody).stderr)
}
