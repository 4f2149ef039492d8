package report

import (
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// column is one column of a grid: its heading, and how its cells lie.
type column struct {
	heading string
	right   bool // numbers are set to the right
	widest  int  // longer cells are cut; 0 for no limit
}

// grid sets rows in columns, without borders and without trailing blanks. The
// result ends without a line break.
func grid(columns []column, rows []table.Row, ruled bool) string {
	writer := table.NewWriter()
	style := table.StyleLight
	style.Options = table.Options{SeparateHeader: ruled}
	style.Format = table.FormatOptions{}
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	writer.SetStyle(style)
	writer.SuppressTrailingSpaces()

	var heading table.Row
	var configs []table.ColumnConfig
	for i, c := range columns {
		config := table.ColumnConfig{Number: i + 1, WidthMax: c.widest, WidthMaxEnforcer: snip}
		if c.right {
			config.Align, config.AlignHeader = text.AlignRight, text.AlignRight
		}
		heading, configs = append(heading, c.heading), append(configs, config)
	}
	writer.AppendHeader(heading)
	writer.SetColumnConfigs(configs)
	writer.AppendRows(rows)
	return writer.Render()
}

// snip cuts a name that is too long, and marks the cut.
func snip(s string, width int) string { return text.Snip(s, width, "~") }

// wrap breaks a sentence into at most the given number of lines.
func wrap(s string, width, lines int) []string {
	broken := strings.Split(text.WrapSoft(s, width), "\n")
	for i := range broken {
		broken[i] = strings.TrimRight(broken[i], " ")
	}
	if len(broken) > lines {
		broken = broken[:lines]
		broken[lines-1] = text.Trim(broken[lines-1], width-1) + "~"
	}
	return broken
}
