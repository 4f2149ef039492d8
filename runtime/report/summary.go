package report

import (
	"io"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"evenkeel/runtime/profile"
)

// Options say how Summary writes.
type Options struct {
	Width int    // columns of the terminal; 0 for 80; at least 64 and at most 100 are used
	Color bool   // with colours: for a terminal, and where NO_COLOR is unset
	ASCII bool   // without characters outside ASCII, but for those in the program's own names
	Dir   string // the directory with the full profile, named at the end; may be empty
}

// screenLines is the most lines that a summary has.
const screenLines = 24

// Summary writes the whole of a job on one screen, at most 24 lines, however
// many ranks it had: who waits, for whom, where, what it costs and what would
// help. No line is wider than the options say, but for the path of the
// profile, which is never cut.
func Summary(w io.Writer, p *profile.Profile, options Options) error {
	width := options.Width
	if width == 0 {
		width = 80
	}
	s := screen{p: p, names: namesOf(p), options: options, width: min(max(width, 64), 100)}
	lines := s.lines(3, true)
	// Where sentences and notes take the room, the two tables are shorter.
	for rows := 3; len(lines) > screenLines && rows > 0; rows-- {
		lines = s.lines(rows, false)
	}
	page := strings.Join(lines, "\n") + "\n"
	if options.ASCII {
		page = toASCII.Replace(page)
	}
	_, err := io.WriteString(w, page)
	return err
}

// screen is a summary while it is made.
type screen struct {
	p       *profile.Profile
	names   names
	options Options
	width   int
}

// The colours of the summary, by what they mean.
var (
	bold   = text.Colors{text.Bold}
	faint  = text.Colors{text.Faint}
	green  = text.Colors{text.FgGreen}
	red    = text.Colors{text.FgRed}
	yellow = text.Colors{text.FgYellow}
	blue   = text.Colors{text.FgBlue}
)

// paint colours a string, if colours are wanted. text.Colors.Sprint would ask
// the environment, and here the caller decides.
func (s *screen) paint(colors text.Colors, words string) string {
	if !s.options.Color || words == "" {
		return words
	}
	return text.Escape(words, colors.EscapeSeq())
}

// lines makes the summary with a number of rows in each table, and a blank line
// between them if it is to be roomy. With one row, and not roomy, it never has
// more than screenLines lines.
func (s *screen) lines(rows int, roomy bool) []string {
	lines := s.heading()
	lines = append(lines, s.sentences(3, bold, verdict(s.p))...)
	if coreTime(&s.p.Total.Split) > 0 {
		lines = append(lines, "")
		lines = append(lines, s.efficiencies()...)
		lines = append(lines, s.bar()...)
		lines = append(lines, "")
	}
	lines = append(lines, s.culprits(rows)...)
	if roomy && len(s.p.Culprits) > 0 {
		lines = append(lines, "")
	}
	lines = append(lines, s.sites(rows)...)
	if rows > 1 && coreTime(&s.p.Total.Split) > 0 {
		lines = append(lines, "")
	}
	lines = append(lines, s.help()...)
	lines = append(lines, s.notes()...)
	lines = append(lines, s.fast()...)
	lines = append(lines, s.idle()...)
	lines = append(lines, s.basis()...)
	for i, line := range lines {
		lines[i] = strings.TrimRight(text.Trim(line, s.width), " ")
	}
	// A table that is empty leaves the blank lines around it beside each other.
	lines = slices.CompactFunc(lines, func(a, b string) bool { return a == "" && b == "" })
	return append(lines, s.more()...)
}

// heading names the job and its size.
func (s *screen) heading() []string {
	p := s.p
	size := plural(int64(p.Total.Ranks), "rank") + " on " + plural(int64(len(p.Nodes)), "node") + ", " + seconds(p.Total.Elapsed)
	left := "── evenkeel ── "
	right := "── " + size + " ──"
	command := clean(p.Command)
	if command == "" {
		command = clean("job " + p.Job)
	}
	command = snip(command, s.width-text.StringWidth(left+right)-2)
	fill := max(s.width-text.StringWidth(left+command+right)-1, 0)
	return []string{s.paint(faint, left) + s.paint(bold, command) + s.paint(faint, " "+strings.Repeat("─", fill)+right)}
}

// sentences are words wrapped to the width, indented by a blank.
func (s *screen) sentences(most int, colors text.Colors, words string) []string {
	lines := wrap(words, s.width-1, most)
	for i, line := range lines {
		lines[i] = " " + s.paint(colors, line)
	}
	return lines
}

func (s *screen) efficiencies() []string {
	e := &s.p.Total.Efficiencies
	if e.Parallel == nil {
		return []string{" efficiency unknown"}
	}
	return []string{
		" parallel efficiency " + s.paint(bold, efficiency(e.Parallel)) + " = load balance " + efficiency(e.LoadBalance) + " × communication " + efficiency(e.Communication),
		" communication = serialisation " + efficiency(e.Serialisation) + " × transfer " + efficiency(e.Transfer),
	}
}

// bar draws where the core time went, and its legend.
func (s *screen) bar() []string {
	shares := sharesOf(&s.p.Total.Split)
	whole := shares.whole()
	var bar, legend strings.Builder
	drawn, sum := 0, 0.0
	room := s.width - 2
	for _, share := range shares {
		// Each part ends where the sum up to it ends, so the bar is always full.
		sum += max(share.time, 0)
		cells := min(max(int(part(sum, whole)*float64(room)+0.5), drawn), room) - drawn
		drawn += cells
		bar.WriteString(s.paint(share.colors, strings.Repeat(share.glyph, cells)))
		if share.time > 0 {
			legend.WriteString(" " + s.paint(share.colors, share.glyph) + " " + share.name + " " + percent(part(share.time, whole)) + " ")
		}
	}
	return []string{" " + bar.String(), strings.TrimRight(legend.String(), " ")}
}

// culprits is the table of the ranks that others wait for.
func (s *screen) culprits(most int) []string {
	if len(s.p.Culprits) == 0 {
		return nil
	}
	var rows []table.Row
	for _, c := range s.p.Culprits[:min(most, len(s.p.Culprits))] {
		rows = append(rows, table.Row{
			s.names.rank(c.World, c.Rank), seconds(c.Cost), percent(c.Share), brief(c.Times), s.names.rank(c.World, c.Victim),
		})
	}
	return s.table(rows, []column{
		{heading: "others wait for", widest: s.width - 52},
		{heading: "it cost", right: true}, {heading: "of waiting", right: true},
		{heading: "times", right: true}, {heading: "who loses most"},
	})
}

// sites is the table of the places where ranks wait.
func (s *screen) sites(most int) []string {
	if len(s.p.CallSites) == 0 {
		return nil
	}
	var rows []table.Row
	for _, site := range s.p.CallSites[:min(most, len(s.p.CallSites))] {
		rows = append(rows, table.Row{clean(site.Call) + " in " + place(&site), seconds(site.Late), seconds(site.MPI), brief(site.Calls)})
	}
	return s.table(rows, []column{
		{heading: "they wait in", widest: s.width - 34},
		{heading: "waiting", right: true}, {heading: "in MPI", right: true}, {heading: "calls", right: true},
	})
}

// table sets rows as indented lines under a faint heading.
func (s *screen) table(rows []table.Row, columns []column) []string {
	lines := strings.Split(grid(columns, rows, false), "\n")
	for i, line := range lines {
		if i == 0 {
			line = s.paint(faint, line)
		}
		lines[i] = " " + line
	}
	return lines
}

// help says how steady the imbalance is, and what would help.
func (s *screen) help() []string {
	b := &s.p.Balance
	if coreTime(&s.p.Total.Split) <= 0 {
		return nil
	}
	lines := s.sentences(2, nil, "Balance: "+steadiness(b)+".")
	return append(lines, s.sentences(2, nil, "What helps: "+advice(s.p)+".")...)
}

// notes say what is missing: the first two of them in a line each.
func (s *screen) notes() []string {
	notes := s.p.Notes
	if len(notes) == 0 && !s.p.Complete {
		notes = []string{"The recording is not complete."}
	}
	var lines []string
	for i, note := range notes[:min(2, len(notes))] {
		words := "! " + clean(note)
		if more := len(notes) - 2; i == 1 && more > 0 {
			words = snip(words, s.width-20) + " (and " + count(int64(more)) + " more)"
		}
		lines = append(lines, s.sentences(1, yellow, words)...)
	}
	return lines
}

// fast says what was done in MPI's place.
func (s *screen) fast() []string {
	words := fast(&s.p.Fast)
	if words == "" {
		return nil
	}
	return s.sentences(1, faint, "Faster: "+words)
}

// idle says what was done in waits.
func (s *screen) idle() []string {
	words := idle(&s.p.Idle)
	if words == "" {
		return nil
	}
	return s.sentences(1, faint, "In waits, all ranks: "+words)
}

// basis says what the figures rest on.
func (s *screen) basis() []string {
	words := basis(s.p)
	if words == "" {
		return nil
	}
	return s.sentences(1, faint, "Errors: "+words)
}

// more says where the whole report is.
func (s *screen) more() []string {
	if s.options.Dir == "" {
		return nil
	}
	return []string{" " + s.paint(faint, "All of it: evenkeel report ") + quoted(clean(filepath.Clean(s.options.Dir))) + s.paint(faint, " (--html FILE for pictures)")}
}

// quoted is a path as a shell takes it.
func quoted(path string) string {
	if !strings.ContainsFunc(path, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("/._-+,@:=", r)
	}) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
