package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
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
	assertDocumented(t, prefix)

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

// assertDocumented says that what help, manual pages, headers and the documentation itself refer to is installed.
func assertDocumented(t *testing.T, prefix string) {
	t.Helper()
	documents := filepath.Join(prefix, "share", "doc", "evenkeel")
	evenkeel := filepath.Join(prefix, "bin", "evenkeel")
	texts := map[string]string{"evenkeel --help": Command(t, Run{}, evenkeel, "--help").Stdout}
	assert.Contains(t, texts["evenkeel --help"], documents)
	for _, command := range []string{"run", "report", "sim", "status", "top", "doctor", "settings"} {
		texts[command+" --help"] = Command(t, Run{}, evenkeel, command, "--help").Stdout
	}
	for _, pattern := range []string{"share/man/man1/*.1", "include/*.h"} {
		files, err := filepath.Glob(filepath.Join(prefix, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			texts[file] = strings.ReplaceAll(string(text), "\\", "")
		}
	}
	named := 0
	for where, text := range texts {
		for _, page := range regexp.MustCompile(`[\w/.-]+\.md\b`).FindAllString(text, -1) {
			named++
			switch {
			case filepath.Base(page) == page:
				page = filepath.Join(documents, page)
			case !filepath.IsAbs(page):
				page = filepath.Join(prefix, page)
			}
			assert.FileExists(t, page, "named by %s", where)
		}
	}
	assert.GreaterOrEqual(t, named, 5, "sim and report in their help and manual pages, and a header")

	pages, err := filepath.Glob(filepath.Join(documents, "*.md"))
	require.NoError(t, err)
	sources, err := filepath.Glob(filepath.Join(Root, "docs", "*.md"))
	require.NoError(t, err)
	assert.Len(t, pages, len(sources)+1, "all of docs, and README.md")
	assert.FileExists(t, filepath.Join(documents, "LICENSE"))
	linked := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, link := range regexp.MustCompile(`\]\(([\w/.-]+/[\w/.-]+|[\w.-]+\.md)[)#]`).FindAllStringSubmatch(string(text), -1) {
			linked++
			assert.FileExists(t, filepath.Join(documents, link[1]), "a link of %s", page)
		}
	}
	assert.Greater(t, linked, len(pages))
}
