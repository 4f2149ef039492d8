package report

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"evenkeel/runtime/profile"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares what was written with testdata/name, or writes it there.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "write it with: go test -update")
	assert.Equal(t, string(want), string(got))
}

func summaryOf(t require.TestingT, p *profile.Profile, options Options) string {
	var out bytes.Buffer
	require.NoError(t, Summary(&out, p, options))
	return out.String()
}

// The runs that the golden files show.
var (
	small = job{seed: 3, ranks: 4, nodes: 1, bins: 50, elapsed: 5.2, skew: 0.9}
	large = job{seed: 3, ranks: 4096, nodes: 64, bins: 20, elapsed: 7000, skew: 0.3, drift: 0.2, sampled: true}
)

func TestSummaryAsItWas(t *testing.T) {
	killed := small.profile()
	killed.Complete = false
	killed.Notes = []string{
		"Rank 2 was killed after 3.2 s (its process is gone without MPI_Finalize); what it had recorded until then is in the report.",
		"The output directory was full.",
		"Another note.",
	}
	nothing := &profile.Profile{Job: "77", Notes: []string{}}
	quiet := job{seed: 5, ranks: 16, nodes: 2, bins: 40, elapsed: 12}.profile()
	quiet.Total.Late, quiet.Total.Transfer = 0.01*quiet.Total.Useful, 0.2*quiet.Total.Useful
	quiet.Total.MPI = quiet.Total.Late + quiet.Total.Transfer + quiet.Total.Own
	quiet.Balance = profile.Balance{Kind: "balanced", Advice: "nothing", Why: "All ranks compute equally long within 1%."}
	for name, c := range map[string]struct {
		p       *profile.Profile
		options Options
	}{
		"summary.txt":         {particles.profile(), Options{Dir: "evenkeel.1234/"}},
		"summary-wide.txt":    {particles.profile(), Options{Dir: "evenkeel.1234", Width: 200}},
		"summary-colour.txt":  {small.profile(), Options{Dir: "evenkeel.1234", Color: true}},
		"summary-ascii.txt":   {small.profile(), Options{Dir: "evenkeel.1234", ASCII: true}},
		"summary-killed.txt":  {killed, Options{Dir: "evenkeel.1234"}},
		"summary-large.txt":   {large.profile(), Options{Dir: "evenkeel.1234"}},
		"summary-nothing.txt": {nothing, Options{}},
		"summary-quiet.txt":   {quiet, Options{Dir: "evenkeel.1234"}},
	} {
		golden(t, name, []byte(summaryOf(t, c.p, c.options)))
	}
}

func TestSummaryIsOneCleanScreen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := arbitrary(t)
		options := Options{Width: rapid.SampledFrom([]int{0, 10, 64, 80, 97, 500}).Draw(t, "width"), Dir: "d", Color: rapid.Bool().Draw(t, "colour")}
		page := summaryOf(t, p, options)
		width := map[int]int{0: 80, 10: 64, 500: 100}[options.Width]
		if width == 0 {
			width = options.Width
		}
		lines := strings.Split(strings.TrimSuffix(page, "\n"), "\n")
		if len(lines) > screenLines {
			t.Fatalf("%d lines:\n%s", len(lines), page)
		}
		for _, line := range lines {
			plain := text.StripEscape(line)
			if wide := text.StringWidth(plain); wide > width {
				t.Fatalf("%d columns: %q", wide, line)
			}
			if !options.Color && line != strings.TrimRight(line, " ") {
				t.Fatalf("trailing blanks: %q", line)
			}
			if !options.Color && plain != line {
				t.Fatalf("an escape sequence without colours: %q", line)
			}
			for _, r := range plain {
				if !unicode.IsPrint(r) {
					t.Fatalf("unprintable %q in %q", r, line)
				}
			}
		}
	})
}

// The last line is to be copied to a shell.
func TestSummaryNamesItsDirectoryForAShell(t *testing.T) {
	for dir, want := range map[string]string{
		"evenkeel.1234/":  "evenkeel.1234",
		"/tmp/Über/a_b-c": "/tmp/Über/a_b-c",
		"a b":             "'a b'",
		"it's $HOME":      `'it'\''s $HOME'`,
	} {
		assert.Contains(t, summaryOf(t, small.profile(), Options{Dir: dir}), "All of it: evenkeel report "+want+" (--html")
	}
}

// Of what was done in waits nothing is cut off.
func TestSummaryOfWaits(t *testing.T) {
	p := small.profile()
	for want, idle := range map[string]profile.Idle{
		"slept 585 ms, idle program 13.0 ms, 20 hooks":          {Sleeps: 9, Slept: 0.585, Runs: 3, Ran: 0.013, Hooks: 20},
		"slept 585 ms, idle program 13.0 ms, lent cores 1.23 s": {Sleeps: 9, Slept: 0.585, Runs: 3, Ran: 0.013, Loans: 4, Lent: 1.234},
	} {
		p.Idle = idle
		assert.Contains(t, summaryOf(t, p, Options{Dir: "d"}), "\n In waits, all ranks: "+want+"\n")
	}
}

func TestSummaryWithoutBeyondASCII(t *testing.T) {
	for _, r := range summaryOf(t, particles.profile(), Options{ASCII: true}) {
		require.Less(t, r, rune(128), "%q", r)
	}
}

func TestTextAsItWas(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, Text(&out, small.profile(), false))
	golden(t, "report.txt", out.Bytes())
}

func TestTextWithoutBeyondASCII(t *testing.T) {
	p := particles.profile()
	p.Communicators[0].LastRank = -1
	var out bytes.Buffer
	require.NoError(t, Text(&out, p, true))
	for _, r := range out.String() {
		require.Less(t, r, rune(128), "%q", r)
	}
}

func TestLocaleDecidesOnASCII(t *testing.T) {
	for _, c := range []struct {
		all, ctype, lang string
		want             bool
	}{
		{"", "", "", false},
		{"C", "", "en_US.UTF-8", true},
		{"", "POSIX", "en_US.UTF-8", true},
		{"", "", "de_DE.ISO-8859-1", true},
		{"", "", "de_DE", true},
		{"C.utf8", "C", "C", false},
		{"", "en_GB.UTF-8", "C", false},
		{"", "", "C.UTF-8", false},
	} {
		locale := map[string]string{"LC_ALL": c.all, "LC_CTYPE": c.ctype, "LANG": c.lang}
		assert.Equal(t, c.want, ASCII(func(name string) string { return locale[name] }), locale)
	}
}

func TestVerdictNamesTheCulprit(t *testing.T) {
	p := small.profile()
	p.Culprits = []profile.Culprit{{World: 1, Rank: 3, Cost: 9, Share: 0.9}, {World: 1, Rank: 1, Cost: 1, Share: 0.1}}
	assert.Contains(t, verdict(p), "Rank 3 makes the others wait: it caused 90% of the waiting")
	assert.Contains(t, verdict(p), "most of it in MPI_Allreduce of total_energy")
	threads := small.profile()
	threads.CallSites[len(threads.CallSites)-1].Late += 3 * threads.Total.Late
	assert.Regexp(t, `which costs .* of the core time \(.*\) and other threads .*, most of it in`, verdict(threads))
	p.Culprits = []profile.Culprit{{World: 1, Rank: 3, Share: 0.4}, {World: 1, Rank: 1, Share: 0.35}, {World: 1, Rank: 0, Share: 0.2}}
	assert.Contains(t, verdict(p), "Ranks 3 and 1 make the others wait: they caused 75%")
	p.Culprits = []profile.Culprit{{World: 1, Rank: 3, Share: 0.1}, {World: 1, Rank: 1, Share: 0.1}}
	assert.Contains(t, verdict(p), "No rank stands out: the worst (3) caused 10%.")
	p.Ranks[1].World = 2
	assert.Contains(t, verdict(p), "the worst (1:3)", "with several worlds, a rank is named with its own")
	p.Total.Late, p.Total.MPI = 0, 0
	assert.Regexp(t, `keep pace: .*\. Their other threads waited for .* s, all together\.$`, verdict(p))
	p.CallSites = nil
	assert.Regexp(t, `keep pace: .* MPI 0%\.$`, verdict(p))
	p.Total.MPI = p.Total.Useful
	p.Total.Late, p.Total.Unsplit = 0, p.Total.MPI
	assert.Contains(t, verdict(p), "MPI takes 50% of the core time; for 100% of that it was not recorded who waited for whom")
	p.Total.Unsplit = 0.6 * p.Total.MPI
	p.Total.Useful = 10 * p.Total.MPI
	assert.Contains(t, verdict(p), "for 60% of that it was not recorded who waited for whom", "little MPI, but most of it unknown")
	p.Total.Unsplit = 0.1 * p.Total.MPI
	assert.Contains(t, verdict(p), "keep pace")
}
