package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/runtime/profile"
)

// uneven is a program whose rank 1 works ten times as long as rank 0.
const uneven = `#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	int rank;
	volatile double x = 0;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int i = 0; i < 10; i++) {
		for (long k = 0; k < (rank ? 10000000 : 1000000); k++)
			x += k;
		MPI_Barrier(MPI_COMM_WORLD);
	}
	if (rank == 0)
		puts("finished");
	MPI_Finalize();
	return 0;
}
`

// TestRealJob runs a program under mpirun and the libraries that make builds,
// and looks at what it left in every way that report knows.
func TestRealJob(t *testing.T) {
	built, err := filepath.Abs("../../build/lib/libevenkeel.so")
	require.NoError(t, err)
	_, errLibrary := os.Stat(built)
	_, errMPI := exec.LookPath("mpirun")
	if errLibrary != nil || errMPI != nil {
		require.Empty(t, os.Getenv("CI"), "in CI this must run: %v %v", errLibrary, errMPI)
		t.Skipf("needs make and Open MPI: %v %v", errLibrary, errMPI)
	}
	dir := t.TempDir()
	app, out := filepath.Join(dir, "uneven"), filepath.Join(dir, "profile")
	source := app + ".c"
	require.NoError(t, os.WriteFile(source, []byte(uneven), 0o644))
	require.NoError(t, exec.Command("mpicc", "-g", source, "-o", app).Run())
	job := exec.Command("mpirun", "-np", "2", "--oversubscribe", evenkeel, "run", "--out", out, "--summary=0", app)
	job.Env = append(os.Environ(), "EVENKEEL_LIB="+built, "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	stdout, err := job.Output()
	require.NoError(t, err)
	assert.Equal(t, "finished\n", string(stdout))

	got := invoke(t, nil, "report", out)
	assert.Equal(t, 0, got.status, got.stderr)
	assert.Contains(t, got.stdout, "MPI_Barrier")

	page, trace := filepath.Join(dir, "page.html"), filepath.Join(dir, "trace.json")
	got = invoke(t, nil, "report", "--json", "--html", page, "--trace", trace, filepath.Join(out, "profile.json"))
	assert.Equal(t, 0, got.status, got.stderr)
	p, err := profile.Decode([]byte(got.stdout))
	require.NoError(t, err)
	require.NotEmpty(t, p.Culprits)
	assert.Equal(t, 1, p.Culprits[0].Rank)
	assert.FileExists(t, page)
	data, err := os.ReadFile(trace)
	require.NoError(t, err)
	assert.True(t, json.Valid(data))
	before, _, _ := strings.Cut(uneven, "MPI_Barrier")
	place := fmt.Sprintf("main (uneven.c:%d)", strings.Count(before, "\n")+1)
	assert.True(t, strings.Contains(string(data), place), "the call stands at %s", place)

	// Without profile.json it is made anew from what was recorded.
	require.NoError(t, os.Remove(filepath.Join(out, "profile.json")))
	got = invoke(t, nil, "report", "--json", out)
	again, err := profile.Decode([]byte(got.stdout))
	require.NoError(t, err)
	assert.Equal(t, p.Total, again.Total)
}
