package tests

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Go's collection runs in waits and not in computations, where it is asked to; where
// there are no waits the limit bounds the heap.
func TestGoCollectsInWaits(t *testing.T) {
	program := filepath.Join(t.TempDir(), "collect")
	build := exec.Command("go", "build", "-o", program, "./tests/programs/collect")
	build.Dir = Root
	text, err := build.CombinedOutput()
	require.NoError(t, err, "%s", text)
	run := func(how string, r Run) Result {
		result := Mpirun(t, r, program, how)
		require.Equal(t, 0, result.Status, result)
		return result
	}
	plain := run("plain", waiting("adaptive"))
	assert.Greater(t, printedNumber(t, plain.Stdout, "computing"), int64(12))

	moved := run("idle", waiting("adaptive"))
	assert.Equal(t, int64(0), printedNumber(t, moved.Stdout, "computing"), moved)
	assert.GreaterOrEqual(t, printedNumber(t, moved.Stdout, "waiting"), int64(6), moved)
	assert.Less(t, printedNumber(t, moved.Stdout, "largest"), int64(200))
	assert.Positive(t, moved.Profile(t).Idle.Hooks)

	limited := run("limit", waiting("adaptive"))
	assert.Positive(t, printedNumber(t, limited.Stdout, "computing"))
	assert.Less(t, printedNumber(t, limited.Stdout, "largest"), int64(64))

	spinning := run("idle", waiting("spin"))
	assert.Contains(t, spinning.Stdout, "idle: waits are not used")
	assert.Greater(t, printedNumber(t, spinning.Stdout, "computing"), int64(12))
	alone := run("idle", Run{Preload: "none"})
	assert.Contains(t, alone.Stdout, "idle: libevenkeel.so is not preloaded")
}
