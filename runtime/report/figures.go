package report

// What other commands write looks as a report does.

// Seconds writes a time with three significant digits in the unit that suits it.
func Seconds(t float64) string { return seconds(t) }

// Percent writes a share: 58%, 3.1%, 0.04%.
func Percent(share float64) string { return percent(share) }

// Count writes a whole number with its thousands grouped.
func Count(n int64) string { return count(n) }

// Plural writes "1 rank", "4 ranks".
func Plural(n int64, noun string) string { return plural(n, noun) }

// Clean makes a name fit for a terminal and a line.
func Clean(name string) string { return clean(name) }

// Styles are the style sheet of the page.
func Styles() string { return styles }
