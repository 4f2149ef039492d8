package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseComputed(t *testing.T) {
	c, err := parseComputed("checksum  1.5E+07\nrank 0 has 3 of 4 rows\ntime .5 ideal .25 settled 3 imbalance 1.5\n")
	require.NoError(t, err)
	assert.Equal(t, computed{0.5, 0.25, 3, 1.5, "1.5E+07"}, c)
	for _, wrong := range []string{"", "checksum 3\n", "time 1 ideal 1 settled 1 imbalance 1\n", "checksum 3\ntime 1 ideal 1 settled 1\n", "checksum 3\ntime soon\n"} {
		_, err := parseComputed(wrong)
		assert.Error(t, err, wrong)
	}
}
