package sim

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"

	"github.com/pkg/errors"

	"evenkeel/balancer/simulate"
	"evenkeel/runtime/report"
	"evenkeel/runtime/report/chart"
	"evenkeel/runtime/report/draw"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"seconds": report.Seconds, "percent": report.Percent, "count": report.Count, "plural": report.Plural, "clean": report.Clean,
}).Parse(pageText))

// Page writes a page with pictures that needs nothing else and runs no script.
// Its size does not grow with the number of ranks or, beyond a point, of cycles.
func Page(w io.Writer, s *Simulation) error {
	view := pageView{S: s, Styles: template.CSS(report.Styles()), Verdict: Verdict(s)}
	for i := range s.Runs {
		run, err := pictures(&s.Runs[i])
		if err != nil {
			return err
		}
		view.Runs = append(view.Runs, run)
	}
	view.Ranks = int64(s.Ranks)
	view.Cycles = int64(s.Cycles)
	return errors.Wrap(page.Execute(w, view), "cannot write the page")
}

type pageView struct {
	S             *Simulation
	Ranks, Cycles int64
	Styles        template.CSS
	Verdict       []string
	Runs          []runView
}

// runView is what the page shows of a policy.
type runView struct {
	*Run
	Time, Imbalance, Moved figure
}

// figure is a picture of some lines over the cycles, for wide screens and for narrow ones.
type figure struct {
	Lines        []line
	Wide, Narrow chart.Picture
}

// line is one of them, a value for each cycle.
type line struct {
	Name, Ink string
	dashed    bool
	values    []float64
}

func pictures(r *Run) (v runView, err error) {
	of := func(value func(simulate.Cycle) float64) []float64 {
		all := make([]float64, len(r.Cycles))
		for i, c := range r.Cycles {
			all[i] = value(c)
		}
		return all
	}
	v.Run = r
	if v.Time, err = figureOf(chart.TimeTicks,
		line{"even ranges", "late", false, of(func(c simulate.Cycle) float64 { return c.Static })},
		line{r.Policy, "useful", false, of(func(c simulate.Cycle) float64 { return c.Time })},
		line{"ideal", "quiet", true, of(func(c simulate.Cycle) float64 { return c.Ideal })}); err != nil {
		return v, err
	}
	if v.Imbalance, err = figureOf(roundTicks(report.Percent),
		line{"even ranges", "late", false, of(func(c simulate.Cycle) float64 { return c.Before })},
		line{r.Policy, "useful", false, of(func(c simulate.Cycle) float64 { return c.After })}); err != nil {
		return v, err
	}
	v.Moved, err = figureOf(roundTicks(func(x float64) string { return report.Count(int64(math.Round(x))) }),
		line{"items moved", "own", false, of(func(c simulate.Cycle) float64 { return float64(c.Moved) })})
	return v, err
}

// ticker gives about as many ticks as asked for, up to the largest value.
type ticker func(largest float64, about int) []chart.Tick

func roundTicks(write func(float64) string) ticker {
	return func(largest float64, about int) []chart.Tick { return chart.RoundTicks(largest, about, write) }
}

func figureOf(ticks ticker, lines ...line) (f figure, err error) {
	f.Lines = lines
	if f.Wide, err = draw.SVG(describe(1140, ticks, lines)); err != nil {
		return f, err
	}
	f.Narrow, err = draw.SVG(describe(480, ticks, lines))
	return f, err
}

func describe(width float64, ticks ticker, lines []line) *chart.Chart {
	c := &chart.Chart{Width: width, Height: 234, Left: 64, Right: 24, Steps: true}
	top := 0.0
	for _, l := range lines {
		for _, v := range l.values {
			top = max(top, v)
		}
		c.Lines = append(c.Lines, chart.Series{Ink: l.Ink, Dashed: l.dashed, Values: thin(l.values, int(width/2))})
	}
	cycles := float64(len(lines[0].values))
	c.X = chart.Axis{Max: cycles, Ticks: []chart.Tick{{At: 0, Text: "cycle 0"}, {At: cycles, Text: fmt.Sprint(cycles - 1)}}}
	c.Y = chart.Axis{Max: 1.05 * top, Ticks: ticks(1.05*top, 4), Rules: true}
	return c
}

// thin keeps the largest of neighbouring values where there are too many.
func thin(all []float64, most int) []float64 {
	kept := make([]float64, min(len(all), most))
	for i := range kept {
		for _, v := range all[i*len(all)/len(kept) : (i+1)*len(all)/len(kept)] {
			kept[i] = max(kept[i], v)
		}
	}
	return kept
}
