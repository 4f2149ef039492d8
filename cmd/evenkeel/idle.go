package main

import (
	"os"
	"strconv"
	"strings"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"

	"evenkeel/runtime/guest"
)

// newIdleCommand is `evenkeel idle`, which the library starts for each rank under
// EVENKEEL_IDLE_RUN: it runs the idle program and ends it with the rank.
func newIdleCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "idle SEGMENT RANK CPUS LOG COMMAND",
		Short:  "Run a program in the idle time of a rank of this node",
		Hidden: true,
		Args:   cobra.ExactArgs(5),
		RunE: func(_ *cobra.Command, args []string) error {
			rank, err := strconv.Atoi(args[1])
			if err != nil {
				return errors.Wrap(err, "the rank of an idle program")
			}
			g := guest.Guest{Segment: args[0], Rank: rank, Log: args[3], Command: args[4]}
			for _, word := range strings.Split(args[2], ",") {
				cpu, err := strconv.Atoi(word)
				if err != nil {
					return errors.Wrap(err, "the cores of an idle program")
				}
				g.CPUs = append(g.CPUs, cpu)
			}
			defer g.Tidy()
			err = g.Run(os.Stdout)
			if rank != 0 { // one line a node is enough
				return nil
			}
			return errors.WithMessage(err, "EVENKEEL_IDLE_RUN")
		},
	}
}
