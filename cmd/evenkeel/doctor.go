package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/pkg/errors"
	"github.com/spf13/cobra"

	"evenkeel/cmd/evenkeel/doctor"
)

// errUnwell is returned where the doctor found what keeps evenkeel from
// working; it has been told.
var errUnwell = errors.New("something is missing")

// newDoctorCommand is `evenkeel doctor`.
func newDoctorCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Tell what this machine offers and lacks, with the fix",
		Long: `Tell what this machine offers and lacks for running MPI programs under evenkeel:
OK, WARN for what makes results worse or needs care, FAIL for what keeps it from
working; with the reason and the fix. On a cluster run it where the ranks run.

The exit status is 1 if there is a FAIL, else 0.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			environ := os.Environ()
			library, libraryErr := findLibrary(environ)
			findings := doctor.Examine(doctor.Machine{
				Environ:    setVariable(environ, libraryVariable, ""),
				Library:    library,
				LibraryErr: libraryErr,
			})
			if err := tell(c.OutOrStdout(), findings, asJSON); err != nil {
				return errors.Wrap(err, "cannot write the findings")
			}
			for _, f := range findings {
				if f.Status == doctor.Fail {
					return errUnwell
				}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "as a list of {status, subject, what, why, fix}")
	return c
}

func tell(w io.Writer, findings []doctor.Finding, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(findings)
	}
	const indent = 22
	margin := strings.Repeat(" ", indent)
	var b strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&b, "%-5s %-15s %s\n", f.Status, f.Subject, hanging(f.What, margin))
		if f.Status != doctor.OK {
			fmt.Fprintf(&b, "%swhy: %s\n", margin, hanging(f.Why, margin+"     "))
		}
		if f.Fix != "" {
			fmt.Fprintf(&b, "%sfix: %s\n", margin, f.Fix) // in one piece, for copying
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// hanging wraps a sentence to 80 columns, of which the first are the margin.
func hanging(sentence, margin string) string {
	lines := strings.Split(text.WrapSoft(sentence, 80-len(margin)), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n"+margin)
}
