// Command evenkeel puts MPI programs under evenkeel and shows what it saw:
//
//	mpirun -np 4 evenkeel run ./app args…
//	evenkeel report evenkeel.JOB
//	evenkeel sim evenkeel.JOB
//	evenkeel status
//	evenkeel doctor
//
// Errors are one line on stderr. The exit status is 2 if the command was
// used wrongly or `run` cannot start the program, and 1 for other errors.
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/agext/levenshtein"
	"github.com/pkg/errors"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func main() {
	os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr))
}

// The exit statuses of the command itself.
const (
	statusFailed = 1
	statusUsage  = 2
)

// usageError is an error of the one who typed the command.
type usageError struct{ error }

func usage(format string, args ...any) error {
	return usageError{errors.Errorf(format, args...)}
}

func execute(args []string, stdout, stderr io.Writer) int {
	root := newRootCommand(documents())
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.Execute()
	if err == nil {
		return 0
	}
	if err == errUnwell {
		return statusFailed // the findings have been shown
	}
	fmt.Fprintf(stderr, "evenkeel: %s\n", strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; "))
	if errors.As(err, &usageError{}) {
		return statusUsage
	}
	return statusFailed
}

// documents returns the directory of the documentation: beside this command, where make install
// puts it, or in the sources, for a command that was built there.
func documents() string {
	installed := filepath.Join("share", "doc", "evenkeel")
	self, err := os.Executable()
	if err != nil {
		return installed
	}
	prefix := filepath.Dir(filepath.Dir(self))
	for _, directory := range []string{filepath.Join(prefix, installed), filepath.Join(filepath.Dir(prefix), "docs")} {
		if _, err := os.Stat(filepath.Join(directory, "settings.md")); err == nil {
			return directory
		}
	}
	return installed
}

// newRootCommand is `evenkeel`, whose texts tell of the documentation in that directory.
func newRootCommand(documents string) *cobra.Command {
	root := &cobra.Command{
		Use:   "evenkeel",
		Short: "See which ranks of an MPI program wait, for whom, and where",
		Long: `evenkeel goes under an MPI program that exists already, without rebuilding it,
and shows which ranks wait, for whom, where, and what it costs.

  mpirun -np 4 evenkeel run ./app args…
  evenkeel report evenkeel.JOB

The documentation is in ` + documents + `.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		// How many letters may be wrong in the name of a command to suggest another.
		SuggestionsMinimumDistance: 2,
		Args:                       noSuchCommand,
		RunE:                       func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetFlagErrorFunc(wrongFlag)
	root.AddCommand(
		newRunCommand(),
		newReportCommand(documents),
		newSimCommand(documents),
		newStatusCommand(),
		newTopCommand(),
		newWatchCommand(),
		newIdleCommand(),
		newDoctorCommand(),
		newSettingsCommand(),
		newVersionCommand(),
		newManCommand(),
	)
	for _, c := range root.Commands() {
		if check := c.Args; check != nil {
			c.Args = func(c *cobra.Command, args []string) error {
				if err := check(c, args); err != nil {
					return usage("%s is used as %s; see %s --help", c.Name(), c.UseLine(), c.CommandPath())
				}
				return nil
			}
		}
	}
	return root
}

// wrongFlag adds to an unknown flag the one that was probably meant.
func wrongFlag(c *cobra.Command, err error) error {
	unknown := &pflag.NotExistError{}
	if !errors.As(err, &unknown) {
		return usageError{err}
	}
	near, distance := "", 3 // as many letters may be wrong as in a command
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if d := levenshtein.Distance(unknown.GetSpecifiedName(), f.Name, nil); d < distance && f.Name != "help" {
			near, distance = f.Name, d
		}
	})
	if near == "" {
		return usage("%v; see %s --help", err, c.CommandPath())
	}
	return usage("%v; the nearest is --%s", err, near)
}

func noSuchCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		return usage("there is no command %q; the nearest is %q", args[0], near[0])
	}
	return usage("there is no command %q; evenkeel --help lists them", args[0])
}
