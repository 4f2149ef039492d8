package tests

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A job that srun starts is recorded like one of mpirun's, and has what is asked
// for before MPI_Init, which rests on what srun says of the ranks of a node.
func TestJobOfSlurm(t *testing.T) {
	s := StartSlurm(t)
	r := s.Srun(t, []string{"EVENKEEL_SUMMARY=0"}, Program("shadow_burst"), filepath.Join(t.TempDir(), "flags"),
		"send", "1024", "100", "5").Wait(t)
	require.Equal(t, "done\n", r.Stdout, r)
	p := r.Profile(t)
	assert.Regexp(t, regexp.MustCompile(`^\d+\.0$`), p.Job, "number of the job and its step")
	assert.True(t, p.Complete)
	assert.Len(t, p.Ranks, 2)
	assert.GreaterOrEqual(t, p.Fast.Sends, int64(100))
	AssertNothingLeft(t, r.Dir)
}

// Slurm kills a job in its own way: status and output are as without us, and what
// was recorded is told.
func TestBadEndsUnderSlurm(t *testing.T) {
	s := StartSlurm(t)
	for _, way := range [][]string{{"abort", "3"}, {"exit", "4"}, {"leave", "1"}, {"segfault", "1"}, {"kill", "1"}, {"terminate", "0"}} {
		t.Run(strings.Join(way, " "), func(t *testing.T) {
			without := s.Srun(t, nil, Program("ends"), way...).Wait(t)
			with := s.Srun(t, []string{}, Program("ends"), way...).Wait(t)
			AssertNothingLeft(t, with.Dir)
			assert.Equal(t, without.Status, with.Status, with)
			assert.Equal(t, without.Stdout, with.Stdout)
			p := with.Profile(t)
			assert.False(t, p.Complete)
			assert.Len(t, p.Ranks, 2)
			assert.Equal(t, int64(200), Calls(p)["MPI_Barrier"]/100*100, "those before the end")
		})
	}
}

// How many ranks a node has decides whether shadow buffers are asked for: two or more.
func TestRanksOfANode(t *testing.T) {
	const asked, openMPIs = "0: 1024 0\n1: 1024 0\n", "0: 512 0\n1: 512 0\n"
	for said, want := range map[string]string{
		"SLURM_NODEID=0 SLURM_STEP_TASKS_PER_NODE=2":                              asked,
		"SLURM_NODEID=1 SLURM_STEP_TASKS_PER_NODE=1,2":                            asked,
		"SLURM_NODEID=2 SLURM_STEP_TASKS_PER_NODE=1(x2),12":                       asked,
		"SLURM_NODEID=1 SLURM_STEP_TASKS_PER_NODE=2,1":                            openMPIs,
		"SLURM_NODEID=2 SLURM_STEP_TASKS_PER_NODE=2(x2)":                          openMPIs,
		"SLURM_NODEID=0 SLURM_STEP_TASKS_PER_NODE=two":                            openMPIs,
		"SLURM_NODEID=0 SLURM_STEP_TASKS_PER_NODE=2(x":                            openMPIs,
		"SLURM_STEP_TASKS_PER_NODE=2":                                             openMPIs,
		"OMPI_COMM_WORLD_LOCAL_SIZE=2 SLURM_NODEID=0 SLURM_STEP_TASKS_PER_NODE=1": asked,
	} {
		t.Run(said, func(t *testing.T) {
			t.Parallel()
			r := Mpirun(t, Run{Env: []string{"EVENKEEL_SUMMARY=0", "EVENKEEL_SHADOW_ROOM=1"}}, "env", slices.Concat([]string{"-u", "OMPI_COMM_WORLD_LOCAL_SIZE"},
				strings.Fields(said), []string{Program("shadow_room"), "btl_vader_free_list_max"})...)
			require.Zero(t, r.Status, r)
			assert.Equal(t, want, sortedLines(r.Stdout))
		})
	}
}

func sortedLines(text string) string {
	lines := strings.SplitAfter(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "")
}
