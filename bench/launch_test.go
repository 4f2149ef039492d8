package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fakeLauncher has a shell script for mpirun.
func fakeLauncher(t *testing.T, script string) launcher {
	directory := t.TempDir()
	path := filepath.Join(directory, "mpirun")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700))
	return launcher{mpirun: path, directory: directory}
}

func TestRunPreloadsTheRanksAndNotMpirun(t *testing.T) {
	l := fakeLauncher(t, `echo "preload=$LD_PRELOAD"; printf '%s\n' "$@"; pwd`)
	j := job{2, []string{"/some/where/pingpong", "10"}}
	v := variant{name: "tool", preload: "/lib/tool.so", env: []string{"EVENKEEL_TIME=all"}}

	printed, wall, err := l.run(context.Background(), v, j)
	require.NoError(t, err)
	assert.Positive(t, wall)
	lines := strings.Split(strings.TrimSpace(printed), "\n")
	assert.Equal(t, []string{
		"preload=", "-np", "2", "--bind-to", "core",
		"-x", "LD_PRELOAD=/lib/tool.so",
		"-x", "EVENKEEL_OUT=" + filepath.Join(l.directory, "profile"),
		"-x", "EVENKEEL_TIME=all",
		"/some/where/pingpong", "10", l.directory,
	}, lines)
	assert.Equal(t, "mpirun -np 2 --bind-to core pingpong 10", j.String())
}

func TestRunWithoutALibrarySetsNothing(t *testing.T) {
	l := fakeLauncher(t, `printf '%s ' "$@"`)
	program := job{1, []string{"program"}}
	printed, _, err := l.run(context.Background(), alone, program)
	require.NoError(t, err)
	assert.Equal(t, "-np 1 --bind-to core program ", printed)

	l.nice = -20
	printed, _, err = l.run(context.Background(), alone, program)
	require.NoError(t, err)
	assert.Equal(t, "-np 1 --bind-to core nice -n -20 program ", printed)
}

func TestRunSaysWhyAProgramFailed(t *testing.T) {
	l := fakeLauncher(t, `echo "there are not enough slots" >&2; exit 3`)
	_, _, err := l.run(context.Background(), variant{name: "tool"}, job{64, []string{"program"}})
	assert.ErrorContains(t, err, "mpirun -np 64")
	assert.ErrorContains(t, err, "tool")
	assert.ErrorContains(t, err, "exit status 3")
	assert.ErrorContains(t, err, "not enough slots")
}

func TestRunEndsWithItsContext(t *testing.T) {
	l := fakeLauncher(t, `exec sleep 600`)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, _, err := l.run(ctx, variant{}, job{1, []string{"program"}})
	assert.Error(t, err)
}

func TestLastLines(t *testing.T) {
	assert.Equal(t, "b\nc", lastLines("a\nb\nc\n", 2))
	assert.Equal(t, "a", lastLines("a", 2))
}
