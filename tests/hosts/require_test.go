package hosts

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

// outcome records how a test would have ended.
type outcome struct {
	testing.TB
	text string
}

func (o *outcome) Helper() {}
func (o *outcome) Skipf(format string, args ...any) {
	o.text = "skipped: " + fmt.Sprintf(format, args...)
}
func (o *outcome) Fatalf(format string, args ...any) {
	o.text = "failed: " + fmt.Sprintf(format, args...)
}

func TestMissingHostsSkipATestButFailItInCI(t *testing.T) {
	obstacle := errors.New("it takes root to make them")
	for _, c := range []struct {
		obstacle error
		ci       bool
		expected string
	}{
		{nil, false, ""},
		{nil, true, ""},
		{obstacle, false, "skipped: this test needs several hosts: it takes root to make them"},
		{obstacle, true, "failed: this test needs several hosts, and in CI it must run: it takes root to make them"},
	} {
		var o outcome
		endUnless(&o, c.obstacle, c.ci)
		assert.Equal(t, c.expected, o.text)
	}
}
