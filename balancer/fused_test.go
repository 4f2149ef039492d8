package balancer

import (
	"os"
	"os/exec"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestNothingIsFused: on arm64, where the compiler may fuse a product and a sum
// into one operation that rounds once, it does so nowhere in what decides. Ranks
// on different processors reach the same decision only then.
func TestNothingIsFused(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles everything for another processor")
	}
	build := exec.Command("go", "build", "-gcflags=evenkeel/balancer/...=-S",
		"evenkeel/balancer", "evenkeel/balancer/split", "evenkeel/balancer/level", "evenkeel/balancer/idle")
	build.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0")
	listing, err := build.CombinedOutput()
	require.NoError(t, err, "%.2000s", listing)
	require.Regexp(t, `\bFMULD\b`, string(listing), "it is a listing of arm64")
	fused := regexp.MustCompile(`(?m)^.*\((.*)\)\s+FN?M(ADD|SUB)[DS]\b`)
	for _, found := range fused.FindAllStringSubmatch(string(listing), -1) {
		assert.Fail(t, "a fused operation", "at %s: round the product with float64()", found[1])
	}
}
