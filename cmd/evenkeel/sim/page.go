package sim

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"

	"github.com/pkg/errors"

	"evenkeel/balancer/simulate"
	"evenkeel/runtime/report"
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
		view.Runs = append(view.Runs, pictures(&s.Runs[i]))
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
	Time, Imbalance, Moved chart
}

// chart is a picture of some series over the cycles.
type chart struct {
	Series []series
	Ticks  []tick
	Width  int
	Height int
	Last   int // cycle
}

// series is a line, or an area down to 0.
type series struct {
	Name, Class, Path string
}

type tick struct {
	Y    float64
	Text string
}

const (
	chartWidth  = 900
	chartHeight = 210
	// mostPoints is how many points a line has; of more cycles, the largest of
	// neighbours is drawn.
	mostPoints = 900
)

func pictures(r *Run) runView {
	of := func(value func(simulate.Cycle) float64) []float64 {
		all := make([]float64, len(r.Cycles))
		for i, c := range r.Cycles {
			all[i] = value(c)
		}
		return thin(all)
	}
	v := runView{Run: r}
	v.Time = draw(report.Seconds, len(r.Cycles),
		line{"even ranges", "even", of(func(c simulate.Cycle) float64 { return c.Static })},
		line{r.Policy, "balanced", of(func(c simulate.Cycle) float64 { return c.Time })},
		line{"ideal", "ideal", of(func(c simulate.Cycle) float64 { return c.Ideal })})
	v.Imbalance = draw(report.Percent, len(r.Cycles),
		line{"even ranges", "even", of(func(c simulate.Cycle) float64 { return c.Before })},
		line{r.Policy, "balanced", of(func(c simulate.Cycle) float64 { return c.After })})
	v.Moved = draw(func(x float64) string { return report.Count(int64(math.Round(x))) }, len(r.Cycles),
		line{"items moved", "moved", of(func(c simulate.Cycle) float64 { return float64(c.Moved) })})
	return v
}

// thin keeps the largest of neighbouring values where there are too many.
func thin(all []float64) []float64 {
	n := min(len(all), mostPoints)
	kept := make([]float64, n)
	for i := range kept {
		for _, v := range all[i*len(all)/n : (i+1)*len(all)/n] {
			kept[i] = max(kept[i], v)
		}
	}
	return kept
}

type line struct {
	name, class string
	values      []float64
}

func draw(write func(float64) string, cycles int, lines ...line) chart {
	c := chart{Width: chartWidth, Height: chartHeight, Last: cycles - 1}
	top := 0.0
	for _, l := range lines {
		for _, v := range l.values {
			top = max(top, v)
		}
	}
	if top == 0 {
		top = 1
	}
	top *= 1.05
	y := func(v float64) float64 { return chartHeight * (1 - v/top) }
	for i := range 4 {
		v := top * float64(i) / 4
		c.Ticks = append(c.Ticks, tick{y(v), write(v)})
	}
	for _, l := range lines {
		var path strings.Builder
		for i, v := range l.values {
			// A cycle is a step from its left to its right edge.
			left, right := chartWidth*float64(i)/float64(len(l.values)), chartWidth*float64(i+1)/float64(len(l.values))
			fmt.Fprintf(&path, "%s%.1f %.1fH%.1f", verb(i), left, y(v), right)
		}
		c.Series = append(c.Series, series{l.name, l.class, path.String()})
	}
	return c
}

func verb(i int) string {
	if i == 0 {
		return "M"
	}
	return "L"
}
