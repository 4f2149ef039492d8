package report

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html/template"
	"io"
	"regexp"
	"strings"

	"github.com/pkg/errors"

	"evenkeel/runtime/profile"
	"evenkeel/runtime/report/chart"
)

//go:embed page
var files embed.FS

// script and styles are put into every page, so that it opens without any
// other file, from a disk as from a server.
var (
	script = contents("core.js", "heat.js", "ranks.js", "arrivals.js", "tables.js", "start.js")
	styles = contents("page.css")

	page = template.Must(template.New("page.html").Funcs(template.FuncMap{
		"seconds": seconds, "percent": percent, "efficiency": efficiency, "count": count, "plural": plural, "clean": clean,
	}).ParseFS(files, "page/page.html", "page/parts.html"))
)

// contents are embedded files behind each other. That they are there is a
// matter of the build, and every test of the page would show it.
func contents(names ...string) string {
	var all strings.Builder
	for _, name := range names {
		data, err := files.ReadFile("page/" + name)
		if err != nil {
			panic(err)
		}
		all.Write(data)
	}
	return all.String()
}

// HTML writes a page with pictures and sortable tables that is complete in
// itself: it fetches nothing when it is opened, and its policy forbids it to. It
// has a light and a dark form. Its size is bounded, for any number of ranks,
// to about 3 MB. The pictures are drawn by draw.SVG.
func HTML(w io.Writer, p *profile.Profile, draw chart.Drawer) error {
	data := pictureOf(p)
	drawn, err := picturesOf(p, &data, draw)
	if err != nil {
		return err
	}
	// The policy names the one script that may run by its hash, so a script
	// that came in by a name in the profile would not run even if it were not
	// escaped.
	hash := sha256.Sum256([]byte(script))
	view := pageView{
		P:         p,
		RankCount: int64(len(p.Ranks)),
		NodeCount: int64(len(p.Nodes)),
		Policy:    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'",
		Styles:    template.CSS(styles),
		Script:    template.JS(script),
		Verdict:   unbroken(verdict(p)),
		Shares:    sharesOf(&p.Total.Split).meters(),
		Advice:    unbroken(advice(p)),
		Steady:    steadiness(&p.Balance),
		Metrics:   metricsOf(&p.Total.Efficiencies),
		Blamed:    blamed(p),
		Basis:     basis(p),
		Tables:    tablesOf(p),
		Data:      data,
		Pictures:  drawn,
		Ramps:     []ramp{lightRamp, darkRamp},
	}
	return errors.Wrap(page.Execute(w, view), "cannot write the page")
}

var quantity = regexp.MustCompile(`(\d) (ns|µs|ms|s|min|h)\b`)

// unbroken keeps numbers and their units on one line.
func unbroken(words string) string { return quantity.ReplaceAllString(words, "$1\u00a0$2") }

// pageView is what the template of the page needs.
type pageView struct {
	P                      *profile.Profile
	RankCount, NodeCount   int64
	Policy                 string
	Styles                 template.CSS
	Script                 template.JS
	Verdict, Advice, Basis string
	Steady                 string
	Shares                 []meter
	Metrics                []metric
	Blamed                 []meter
	Tables                 []tableView
	Data                   picture
	Pictures               pictures
	Ramps                  []ramp
}

// meter is a share drawn as a bar.
type meter struct {
	Name  string
	Class string // says which colour
	Share float64
	Text  string
}

// Width is the length of the bar as CSS, in percent.
func (m meter) Width() string {
	return strings.TrimSuffix(digits(100*min(max(m.Share, 0), 1)), ".00")
}

// metric is one of the efficiencies, with the sign that stands before it in
// the equations.
type metric struct {
	Sign, Name, Value, Meaning string
	Meter                      meter
}

func metricsOf(e *profile.Efficiencies) []metric {
	one := func(sign, name, meaning string, share *float64) metric {
		m := metric{Sign: sign, Name: name, Value: efficiency(share), Meaning: meaning}
		if share != nil {
			m.Meter = meter{Class: "useful", Share: *share}
		}
		return m
	}
	return []metric{
		one("", "Parallel efficiency", "the share of core time that was useful", e.Parallel),
		one("=", "Load balance", "mean over largest useful time", e.LoadBalance),
		one("×", "Communication", "largest useful time over elapsed", e.Communication),
		one("where communication =", "Serialisation", "what waiting for late ranks leaves", e.Serialisation),
		one("×", "Transfer", "what messages on their way leave", e.Transfer),
	}
}

// meters turns the parts of the core time into bars that add up to the whole.
func (shares shares) meters() []meter {
	whole := shares.whole()
	var meters []meter
	for _, share := range shares {
		if share.time > 0 {
			fraction := part(share.time, whole)
			meters = append(meters, meter{share.name, share.class, fraction, percent(fraction) + " · " + seconds(share.time)})
		}
	}
	return meters
}

// blamed are the ranks that others waited for most.
func blamed(p *profile.Profile) []meter {
	const most = 10
	n := namesOf(p)
	var meters []meter
	for _, c := range p.Culprits[:min(most, len(p.Culprits))] {
		meters = append(meters, meter{n.rank(c.World, c.Rank), "late", c.Share, seconds(c.Cost) + " · " + percent(c.Share) + ", most from " + n.rank(c.World, c.Victim)})
	}
	return meters
}
