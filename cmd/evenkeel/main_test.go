package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The tests run the real command, installed as it is everywhere:
// bin/evenkeel and lib/libevenkeel.so. The library is one that does nothing.
var evenkeel, library string

// TestMain installs this test program itself as the command: under the name
// evenkeel it is the command. A command built here from the sources would not
// be seen by `go test`, which then takes old results for new ones.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "evenkeel" {
		main()
	}
	os.Exit(func() int {
		prefix, err := os.MkdirTemp("", "evenkeel-test-")
		must(err)
		defer os.RemoveAll(prefix)
		prefix, err = filepath.EvalSymlinks(prefix) // the command knows itself by its real path
		must(err)
		evenkeel = filepath.Join(prefix, "bin", "evenkeel")
		library = filepath.Join(prefix, "lib", "libevenkeel.so")
		must(os.Mkdir(filepath.Dir(evenkeel), 0o755))
		must(os.Mkdir(filepath.Dir(library), 0o755))
		self, err := os.ReadFile("/proc/self/exe")
		must(err)
		must(os.WriteFile(evenkeel, self, 0o755))
		must(compile("int ek_dummy;", library, "-shared", "-fPIC"))
		for _, name := range []string{"LD_PRELOAD", libraryVariable, "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID"} {
			os.Unsetenv(name)
		}
		return m.Run()
	}())
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// compile makes a C program or library of the text.
func compile(text, out string, flags ...string) error {
	gcc := exec.Command("gcc", append([]string{"-x", "c", "-", "-o", out}, flags...)...)
	gcc.Stdin = bytes.NewBufferString(text)
	gcc.Stderr = os.Stderr
	return gcc.Run()
}

// outcome is how a command ended.
type outcome struct {
	status         int // -1: by a signal
	stdout, stderr string
}

// invoke runs the command evenkeel. Of its environment, the variables in extra
// are changed.
func invoke(t *testing.T, extra []string, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	c := exec.Command(evenkeel, args...)
	c.Env = append(os.Environ(), extra...)
	c.Stdout, c.Stderr = &stdout, &stderr
	c.Dir = t.TempDir()
	if err := c.Run(); err != nil {
		require.IsType(t, &exec.ExitError{}, err)
	}
	return outcome{c.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"reprot"}, `there is no command "reprot"; the nearest is "report"`},
		{[]string{"xyzzy"}, `there is no command "xyzzy"; evenkeel --help lists them`},
		{[]string{"--bogus"}, `unknown flag: --bogus; see evenkeel --help`},
		{[]string{"report"}, `report is used as evenkeel report DIRECTORY | PROFILE.json | JOB [flags]; see evenkeel report --help`},
		{[]string{"report", "a", "b"}, `report is used as evenkeel report DIRECTORY | PROFILE.json | JOB [flags]; see evenkeel report --help`},
		{[]string{"report", "--htlm", "page"}, `unknown flag: --htlm; the nearest is --html`},
		{[]string{"report", "-x"}, `unknown shorthand flag: 'x' in -x; see evenkeel report --help`},
		{[]string{"doctor", "me"}, `doctor is used as evenkeel doctor [flags]; see evenkeel doctor --help`},
		{[]string{"version", "--bogus"}, `unknown flag: --bogus; see evenkeel version --help`},
	} {
		assert.Equal(t, outcome{2, "", "evenkeel: " + c.want + "\n"}, invoke(t, nil, c.args...), "%q", c.args)
	}
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{}, {"--help"}, {"help"}} {
		got := invoke(t, nil, args...)
		assert.Zero(t, got.status)
		assert.Contains(t, got.stdout, "run         Run one rank of an MPI program under evenkeel")
		assert.NotContains(t, got.stdout, "\n  man ", "is for make install")
	}
}

func TestVersion(t *testing.T) {
	got := invoke(t, nil, "version")
	assert.Zero(t, got.status)
	assert.Regexp(t, `^evenkeel \(development\) \(recording layout \d+, profile version \d+, go`, got.stdout)
}

func TestSettings(t *testing.T) {
	got := invoke(t, nil, "settings")
	assert.Zero(t, got.status)
	assert.Regexp(t, `EVENKEEL_RING +--ring +8192 +events +length`, got.stdout)
	document, err := os.ReadFile("../../docs/settings.md")
	require.NoError(t, err)
	assert.Equal(t, outcome{0, string(document), ""}, invoke(t, nil, "settings", "--markdown"))
}

func TestManualPages(t *testing.T) {
	dir := t.TempDir()
	assert.Equal(t, outcome{}, invoke(t, nil, "man", dir, "/opt/doc"))
	page, err := os.ReadFile(filepath.Join(dir, "evenkeel-run.1"))
	require.NoError(t, err)
	assert.Contains(t, string(page), `\fB--out\fP`)
	for _, word := range []string{"LD_PRELOAD", "EVENKEEL_LIB"} {
		assert.Contains(t, string(page), word, "underscores are not taken for emphasis")
	}
	assert.FileExists(t, filepath.Join(dir, "evenkeel.1"))
	page, err = os.ReadFile(filepath.Join(dir, "evenkeel-sim.1"))
	require.NoError(t, err)
	assert.Contains(t, string(page), "/opt/doc/balancing.md")
	got := invoke(t, nil, "man", filepath.Join(dir, "nowhere"), "/opt/doc")
	assert.Equal(t, 1, got.status)
	assert.Regexp(t, `^evenkeel: cannot write the manual pages: .*\n$`, got.stderr)
}

func TestCompletion(t *testing.T) {
	got := invoke(t, nil, "completion", "bash")
	assert.Zero(t, got.status)
	assert.Contains(t, got.stdout, "__start_evenkeel")
}
