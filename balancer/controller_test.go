package balancer

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestControllerBeginsWithItsPartition(t *testing.T) {
	p, err := Even(10, 4)
	require.NoError(t, err)
	require.Equal(t, Partition{0, 3, 6, 8, 10}, p)
	c, err := NewController(p, DefaultOptions(10, 4))
	require.NoError(t, err)
	require.Equal(t, p, c.Partition())
}
