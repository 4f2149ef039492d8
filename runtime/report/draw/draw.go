// Package draw draws charts with gonum.org/v1/plot, as SVG to be put into a page: text
// stays text, colours are the page's own variables and so change with its theme, and
// nothing in it is a script.
package draw

import (
	"bytes"
	"fmt"
	"html/template"
	"image/color"
	"math"
	"slices"
	"strings"

	"github.com/pkg/errors"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"evenkeel/runtime/report/chart"
)

// SVG is a chart.Drawer.
func SVG(c *chart.Chart) (chart.Picture, error) {
	p := plot.New()
	p.BackgroundColor = nil
	setAxis(&p.X, c.X)
	setAxis(&p.Y, c.Y)
	rules(p, c)
	if c.Image != nil {
		p.Add(plotter.NewImage(c.Image, 0, 0, p.X.Max, p.Y.Max))
	}
	canvas := vgsvg.NewWith(vgsvg.UseWH(vg.Length(c.Width), vg.Length(c.Height)))
	whole := draw.New(canvas)
	if err := bars(p, c, p.DataCanvas(whole).Size().Y); err != nil {
		return chart.Picture{}, err
	}
	if err := lines(p, c); err != nil {
		return chart.Picture{}, err
	}
	// Adding may have widened the axes.
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, extent(c.X.Max), 0, extent(c.Y.Max)

	area := p.DataCanvas(whole)
	whole = draw.Crop(whole, max(0, vg.Length(c.Left)-area.Min.X), min(0, vg.Length(c.Width-c.Right)-area.Max.X), 0, 0)
	area = p.DataCanvas(whole)
	p.Draw(whole)
	var text bytes.Buffer
	if _, err := canvas.WriteTo(&text); err != nil {
		return chart.Picture{}, errors.Wrap(err, "cannot draw")
	}
	return chart.Picture{SVG: template.HTML(forPage(text.String())), Area: chart.Area{
		Left: float64(area.Min.X) / c.Width, Right: float64(area.Max.X) / c.Width,
		Top: 1 - float64(area.Max.Y)/c.Height, Bottom: 1 - float64(area.Min.Y)/c.Height,
	}}, nil
}

// extent is the end of an axis; one without length gets some.
func extent(most float64) float64 {
	if !(most > 0) || math.IsInf(most, 0) {
		return 1
	}
	return most
}

// gap is between a picture and the words beside it, in CSS pixels.
const gap = 6

func setAxis(a *plot.Axis, from chart.Axis) {
	a.Padding, a.LineStyle.Width, a.Tick.Length = gap, 0, 0
	a.Tick.Label.Font = font.Font{Typeface: "Liberation", Variant: "Sans", Size: 11.5}
	a.Tick.Label.Color = ink("quiet")
	a.Min, a.Max = 0, extent(from.Max)
	ticks := make([]plot.Tick, len(from.Ticks))
	for i, t := range from.Ticks {
		ticks[i] = plot.Tick{Value: t.At, Label: t.Text}
	}
	a.Tick.Marker = plot.ConstantTicks(ticks)
}

func rules(p *plot.Plot, c *chart.Chart) {
	grid := plotter.NewGrid()
	style := draw.LineStyle{Color: ink("line"), Width: 1}
	grid.Vertical, grid.Horizontal = draw.LineStyle{}, draw.LineStyle{}
	if c.X.Rules {
		grid.Vertical = style
	}
	if c.Y.Rules {
		grid.Horizontal = style
	}
	p.Add(grid, marks(c.Y.Marks))
}

// marks are short lines to the left of a picture, at places of its y axis.
type marks []float64

// Plot is plot.Plotter's.
func (m marks) Plot(c draw.Canvas, p *plot.Plot) {
	_, y := p.Transforms(&c)
	for _, at := range m {
		c.StrokeLine2(draw.LineStyle{Color: ink("quiet"), Width: 1}, c.Min.X-gap, y(at), c.Min.X, y(at))
	}
}

// bars are stacked in the order in which they stand.
func bars(p *plot.Plot, c *chart.Chart, height vg.Length) error {
	var below *plotter.BarChart
	for _, series := range c.Bars {
		thick := height / vg.Length(len(series.Values))
		if thick > 6 {
			thick -= min(4, thick*0.2)
		}
		values := slices.Clone(series.Values)
		slices.Reverse(values) // the first row is on top
		chart, err := plotter.NewBarChart(plotter.Values(values), thick)
		if err != nil {
			return errors.Wrap(err, "cannot draw bars")
		}
		chart.Horizontal, chart.XMin, chart.Color, chart.LineStyle = true, 0.5, ink(series.Ink), draw.LineStyle{}
		if below != nil {
			chart.StackOn(below)
		}
		p.Add(chart)
		below = chart
	}
	return nil
}

// lines are drawn in pieces between their gaps.
func lines(p *plot.Plot, c *chart.Chart) error {
	for _, series := range c.Lines {
		distance := extent(c.X.Max) / float64(len(series.Values))
		var piece plotter.XYs
		for i, y := range append(slices.Clone(series.Values), math.NaN()) {
			switch {
			case !math.IsNaN(y) && c.Steps:
				piece = append(piece, plotter.XY{X: distance * float64(i), Y: y}, plotter.XY{X: distance * float64(i+1), Y: y})
			case !math.IsNaN(y):
				piece = append(piece, plotter.XY{X: distance * (float64(i) + 0.5), Y: y})
			case len(piece) > 0:
				if len(piece) == 1 { // a value by itself is a dash
					piece[0].X -= distance / 2
					piece = append(piece, plotter.XY{X: piece[0].X + distance, Y: piece[0].Y})
				}
				line, err := plotter.NewLine(piece)
				if err != nil {
					return errors.Wrap(err, "cannot draw a line")
				}
				line.LineStyle = draw.LineStyle{Color: ink(series.Ink), Width: 1.8}
				if series.Dashed {
					line.Dashes = []vg.Length{4, 3}
				}
				p.Add(line)
				piece = nil
			}
		}
	}
	return nil
}

// ink is a colour that stands for a variable of the page until forPage puts that in.
func ink(name string) color.Color {
	return color.NRGBA{R: 0xEE, G: 0x4B, B: uint8(slices.Index(chart.Inks, name)), A: 255}
}

// forPage fits what the library writes to a page: without a head, as wide as there is
// room, in the page's colours and its font; and raster images fill their place.
func forPage(svg string) string {
	svg = svg[strings.Index(svg, "<svg"):]
	_, rest, _ := strings.Cut(svg, "viewBox")
	changes := []string{
		"font-family:Liberation Sans;font-variant:normal;font-weight:normal;font-style:normal;", "",
		"<image ", `<image preserveAspectRatio="none" `,
		"data:image/jpg;", "data:image/png;",
		"\n\t", " ",
	}
	for i, name := range chart.Inks {
		changes = append(changes, fmt.Sprintf("#EE4B%02X", i), "var(--"+name+")")
	}
	return strings.NewReplacer(changes...).Replace("<svg viewBox" + rest)
}
