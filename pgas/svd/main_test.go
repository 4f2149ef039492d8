package svd

import (
	"flag"
	"testing"
)

var histories = flag.Int("histories", 300, "how many histories of TestSeededHistories to play")

// alone skips what is large, and has one goroutine, under the race detector.
func alone(t *testing.T) {
	if raced {
		t.Skip("one goroutine, which would be ten times as slow")
	}
}
