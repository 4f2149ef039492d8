// Package chart describes the pictures of a page: what is drawn, over which axes, in
// which of the page's colours. Package draw draws them; whoever only describes
// some, as the runtime inside of a rank may, need not carry a plotting library.
package chart

import (
	"html/template"
	"image"
	"math"
	"strconv"
)

// Chart is a picture over two axes that begin at 0. The y axis leads upwards; a
// picture of rows, the first of which is on top, has them from Y.Max down.
type Chart struct {
	Width, Height float64 // CSS pixels that it is made for
	Left, Right   float64 // margins that it has at least, to stand in line with another
	X, Y          Axis

	Image *image.Paletted // fills the picture, if there is one
	Bars  []Series        // horizontal, stacked on each other: a value for each row
	Lines []Series        // values at even distances
	Steps bool            // lines keep each value for the whole of its distance
}

// Axis is one of the two.
type Axis struct {
	Max   float64
	Ticks []Tick
	Rules bool      // a line through the picture at each tick
	Marks []float64 // short lines beside the picture
}

// Tick is a mark beside an axis.
type Tick struct {
	At   float64
	Text string
}

// Series are values of one colour. NaN is a gap.
type Series struct {
	Ink    string // a variable of the page's style sheet, see Inks
	Dashed bool
	Values []float64
}

// Inks are the colours of the page's style sheet that charts are drawn in.
var Inks = []string{"quiet", "line", "useful", "late", "transfer", "own", "unsplit", "caused"}

// Picture is a drawn chart.
type Picture struct {
	SVG  template.HTML
	Area Area
}

// Area is where within the picture the axes span, in shares of its size from the
// left upper corner.
type Area struct{ Left, Top, Right, Bottom float64 }

// TopPercent and BelowPercent are the room above and below it as lengths of a style sheet.
func (a Area) TopPercent() template.CSS   { return percentOf(a.Top) }
func (a Area) BelowPercent() template.CSS { return percentOf(1 - a.Bottom) }

func percentOf(share float64) template.CSS {
	return template.CSS(strconv.FormatFloat(100*share, 'f', 2, 64) + "%")
}

// Drawer draws charts.
type Drawer func(*Chart) (Picture, error)

// RowTicks label the middles of rows, as many as have the room, in CSS pixels, on an axis
// of that length.
func RowTicks(labels []string, length, room float64) []Tick {
	every := 1
	for length/float64(len(labels))*float64(every) < room && every < len(labels) {
		every *= 2
	}
	var ticks []Tick
	for r := 0; r < len(labels); r += every {
		ticks = append(ticks, Tick{float64(len(labels)) - float64(r) - 0.5, labels[r]})
	}
	return ticks
}

// RoundTicks are round values from 0 to the largest, about as many as asked for.
func RoundTicks(largest float64, about int, text func(float64) string) []Tick {
	if !(largest > 0) || math.IsInf(largest, 0) {
		return []Tick{{0, text(0)}}
	}
	step := ceiling(largest / float64(about))
	var ticks []Tick
	for i := 0; float64(i)*step <= largest*1.0001 && i <= about; i++ {
		ticks = append(ticks, Tick{float64(i) * step, text(float64(i) * step)})
	}
	return ticks
}

// ceiling rounds up to 1, 2, 2.5, 5 or 10 times a power of ten.
func ceiling(x float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(x)))
	for _, step := range []float64{1, 2, 2.5, 5} {
		if step*power >= x*0.9999 {
			return step * power
		}
	}
	return 10 * power
}

// TimeTicks are the same for seconds, round in the unit that suits the largest.
func TimeTicks(largest float64, about int) []Tick {
	size, name := 1e-9, " ns"
	for _, u := range []struct {
		size float64
		name string
	}{{1e-6, " µs"}, {1e-3, " ms"}, {1, " s"}, {600, " min"}, {7200, " h"}} {
		if largest >= u.size {
			size, name = u.size, u.name
		}
	}
	switch name {
	case " min":
		size = 60
	case " h":
		size = 3600
	}
	ticks := RoundTicks(largest/size, about, func(x float64) string { return strconv.FormatFloat(x, 'g', 4, 64) + name })
	for i := range ticks {
		ticks[i].At *= size
	}
	return ticks
}
