package main

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"evenkeel/runtime/config"
	"evenkeel/runtime/job"
)

// newWatchCommand is `evenkeel watch SEGMENT`, which the library starts on
// each node: it outlives the ranks, makes the profile if they could not, and
// removes the segment. What ends the job must not end it first.
func newWatchCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "watch SEGMENT",
		Short:  "Wait for the end of a job on this node and save what it leaves",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)
			settings, _ := config.Load(os.Environ())
			return job.Watch(args[0], os.Stderr, settings.Summary())
		},
	}
}
