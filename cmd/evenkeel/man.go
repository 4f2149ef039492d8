package main

import (
	"github.com/pkg/errors"
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// newManCommand is `evenkeel man`, which `make install` runs.
func newManCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIRECTORY DOCUMENTS",
		Short:  "Write the manual pages into a directory, for an installation with its documentation in another",
		Hidden: true,
		Args:   cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			root := newRootCommand(args[1])
			root.DisableAutoGenTag = true
			header := &doc.GenManHeader{Section: "1", Source: "evenkeel " + version, Manual: "evenkeel"}
			return errors.Wrap(doc.GenManTree(root, header, args[0]), "cannot write the manual pages")
		},
	}
}
