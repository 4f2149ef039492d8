package main

import (
	"fmt"
	"runtime"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"

	"evenkeel/runtime/profile"
	"evenkeel/runtime/segment"
)

// version is set by the linker: -ldflags "-X main.version=0.1.0".
var version = "(development)"

// newVersionCommand is `evenkeel version`.
func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Tell the version",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(c.OutOrStdout(), "evenkeel %s (recording layout %d, profile version %d, %s %s/%s)\n",
				version, segment.LayoutVersion, profile.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return errors.Wrap(err, "cannot write the version")
		},
	}
}
