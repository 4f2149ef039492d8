package main

import (
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"

	"evenkeel/runtime/config"
	"evenkeel/runtime/job"
)

// newWatchCommand is `evenkeel watch`, which the library starts on each node:
// it reads from its input which segment it is to watch, outlives the ranks,
// makes the profile if they could not, and removes the segment. What ends the
// job must not end it first. Without a segment, since the job is not recorded
// or ended in MPI_Init, there is nothing to do.
func newWatchCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "watch",
		Short:  "Wait for the end of a job on this node and save what it leaves",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)
			segment, err := io.ReadAll(command.InOrStdin())
			if err != nil || len(segment) == 0 {
				return errors.Wrap(err, "which segment to watch")
			}
			settings, _ := config.Load(os.Environ())
			return job.Watch(string(segment), os.Stderr, settings.Summary())
		},
	}
}
