package main

import (
	"github.com/pkg/errors"
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// newManCommand is `evenkeel man`, which `make install` runs.
func newManCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIRECTORY",
		Short:  "Write the manual pages into a directory",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			c.Root().DisableAutoGenTag = true
			header := &doc.GenManHeader{Section: "1", Source: "evenkeel " + version, Manual: "evenkeel"}
			return errors.Wrap(doc.GenManTree(c.Root(), header, args[0]), "cannot write the manual pages")
		},
	}
}
