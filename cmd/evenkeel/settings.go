package main

import (
	"io"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/pkg/errors"
	"github.com/spf13/cobra"

	"evenkeel/runtime/config"
)

// newSettingsCommand is `evenkeel settings`.
func newSettingsCommand() *cobra.Command {
	var markdown bool
	c := &cobra.Command{
		Use:   "settings",
		Short: "List the EVENKEEL_ variables and the flags of run",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			text := settingsTable()
			if markdown {
				text = config.Markdown()
			}
			_, err := io.WriteString(c.OutOrStdout(), text)
			return errors.Wrap(err, "cannot write the settings")
		},
	}
	c.Flags().BoolVar(&markdown, "markdown", false, "as the page settings.md of the documentation")
	return c
}

func settingsTable() string {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Options = table.OptionsNoBordersAndSeparators
	t.SetColumnConfigs([]table.ColumnConfig{{Name: "meaning", WidthMax: 60, WidthMaxEnforcer: text.WrapSoft}})
	t.SuppressTrailingSpaces()
	t.AppendHeader(table.Row{"variable", "flag", "default", "unit", "meaning"})
	for _, s := range config.Settings() {
		t.AppendRow(table.Row{s.Name, "--" + config.Flag(s), s.Default, s.Unit, s.Meaning})
	}
	return t.Render() + "\n"
}
