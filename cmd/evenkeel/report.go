package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"

	"evenkeel/runtime/analysis"
	"evenkeel/runtime/job"
	"evenkeel/runtime/profile"
	"evenkeel/runtime/report"
	"evenkeel/runtime/report/draw"
	"evenkeel/runtime/symbols"
)

// newReportCommand is `evenkeel report`.
func newReportCommand(documents string) *cobra.Command {
	var asJSON bool
	var html, trace string
	c := &cobra.Command{
		Use:   "report DIRECTORY | PROFILE.json | JOB",
		Short: "Show everything that is known of a job",
		Long: `Show everything that is known of a job: of one that is over by the directory
that it wrote (evenkeel.JOB) or the profile.json in it, of one that runs on this
host by its name, which evenkeel status tells.

Without flags the whole report is written as text. The flags can be combined; a
file is written whole or, with an error, not at all.`,
		Example: `  evenkeel report evenkeel.1234 | less
  evenkeel report evenkeel.1234 --html report.html
  evenkeel report evenkeel.1234 --json | jq .total.efficiencies`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if trace != "" {
				if err := writeTrace(trace, args[0]); err != nil {
					return err
				}
			}
			p, err := findProfile(args[0])
			if err != nil {
				return err
			}
			if html != "" {
				if err := profile.Replace(html, func(w io.Writer) error { return report.HTML(w, p, draw.SVG) }); err != nil {
					return err
				}
			}
			switch {
			case asJSON:
				return errors.Wrap(json.NewEncoder(c.OutOrStdout()).Encode(p), "cannot write the profile")
			case html != "" || trace != "":
				return nil
			}
			return report.Text(c.OutOrStdout(), p, report.ASCII(os.Getenv))
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write the profile as JSON ("+filepath.Join(documents, "profile.md")+" says what is in it)")
	c.Flags().StringVar(&html, "html", "", "write a page with pictures to `FILE`, which needs nothing else")
	c.Flags().StringVar(&trace, "trace", "", "write a trace for ui.perfetto.dev or chrome://tracing to `FILE`")
	return c
}

// writeTrace writes the trace of the job that a name stands for.
func writeTrace(path, name string) error {
	if info, err := os.Stat(name); err == nil && !info.IsDir() {
		name = filepath.Dir(name) // of the profile.json
	}
	run, nodes, err := job.Load(name)
	if err != nil {
		return err
	}
	defer job.CloseAll(nodes)
	resolver := symbols.NewResolver(symbols.DebugRoot)
	site := func(module string, offset uint64) string { return place(resolver, module, offset) }
	return profile.Replace(path, func(w io.Writer) error {
		return report.Trace(w, run, report.TraceOptions{Site: site})
	})
}

// findProfile returns the profile that a name stands for. It is made anew from
// what was recorded where there is no profile.json yet.
func findProfile(name string) (*profile.Profile, error) {
	if info, err := os.Stat(name); err == nil {
		path := name
		if info.IsDir() {
			path = filepath.Join(name, job.ProfileName)
		}
		if _, err := os.Stat(path); err == nil {
			return profile.Read(path)
		}
	}
	run, nodes, err := job.Load(name)
	if err != nil {
		return nil, err
	}
	defer job.CloseAll(nodes)
	p := analysis.Analyse(run)
	job.Describe(p, run, nodes)
	return p, nil
}
