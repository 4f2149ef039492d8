package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What make install puts in place suffices to build a program that calls
// evenkeel, and to run one under it; make uninstall takes all of it away.
func TestInstalledItIsWhole(t *testing.T) {
	prefix := filepath.Join(t.TempDir(), "usr")
	text, err := exec.Command("make", "-C", Root, "BUILD="+Build, "PREFIX="+prefix, "install").CombinedOutput()
	require.NoError(t, err, "%s", text)
	for _, page := range []string{"evenkeel.1", "evenkeel-run.1", "evenkeel-report.1"} {
		assert.FileExists(t, filepath.Join(prefix, "share", "man", "man1", page))
	}

	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "app.c"), []byte(`#include <evenkeel.h>
#include <evenkeel_gsm.h>
#include <evenkeel_shared.h>
#include <mpi.h>
int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	ek_region_begin("meet");
	MPI_Barrier(MPI_COMM_WORLD);
	ek_region_end();
	MPI_Finalize();
	return 0;
}
`), 0o644))
	build := exec.Command("sh", "-c", "mpicc app.c -o app $(pkg-config --cflags --libs evenkeel)")
	build.Dir, build.Env = dir, append(os.Environ(), "PKG_CONFIG_PATH="+filepath.Join(prefix, "lib", "pkgconfig"))
	text, err = build.CombinedOutput()
	require.NoError(t, err, "%s", text)

	app, evenkeel := filepath.Join(dir, "app"), filepath.Join(prefix, "bin", "evenkeel")
	for _, command := range [][]string{{evenkeel, "run", app}, {app}} {
		r := Mpirun(t, Run{Preload: "none"}, command[0], command[1:]...)
		require.Equal(t, 0, r.Status, r)
		p := r.Profile(t)
		assert.True(t, p.Complete, p.Notes)
		assert.Equal(t, map[string]int64{"MPI_Barrier": 2}, Calls(p))
		report := Command(t, Run{}, evenkeel, "report", r.Dir)
		assert.Zero(t, report.Status, report)
		assert.Contains(t, report.Stdout, "meet", "the region")
	}

	text, err = exec.Command("make", "-C", Root, "PREFIX="+prefix, "uninstall").CombinedOutput()
	require.NoError(t, err, "%s", text)
	require.NoError(t, filepath.WalkDir(prefix, func(path string, entry os.DirEntry, err error) error {
		assert.True(t, entry.IsDir(), "%s is left", path)
		return err
	}))
}
