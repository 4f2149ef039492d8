package report

import (
	"image"
	"image/color"
	"math"
	"strings"

	"evenkeel/runtime/profile"
	"evenkeel/runtime/report/chart"
)

// pictures are those of the page, drawn. What stands under the pointer in them is told
// by the page's scripts, from the figures of the picture they belong to.
type pictures struct {
	Late, MPI    heatMap
	Curve        figure
	Bars, Caused figure
	Matrix       figure
}

// figure is a picture, once for a wide screen and once for a narrow one; or empty.
type figure struct {
	Sizes []size
}

// size is one of them. Its class says from the style sheet when it is seen.
type size struct {
	chart.Picture
	Class string
	Most  float64 // CSS pixels, beyond which it is not enlarged
}

// heatMap is a figure whose colours mean shares from 0 to Limit.
type heatMap struct {
	figure
	Limit   float64
	Notched bool // notches show where another host begins
}

// For what widths, in CSS pixels, pictures are made. That of a whole card is made twice,
// so that its words can be read on a telephone too.
const (
	wholeWidth, narrowWidth = 1140, 480
	barsWidth, causedWidth  = 740, 380
	matrixWidth             = 560
	leftMargin, rightMargin = 44, 24
	labelHeight, labelWidth = 15, 30
	below                   = 24 // the labels under a picture
)

func picturesOf(p *profile.Profile, data *picture, draw chart.Drawer) (pictures, error) {
	var all pictures
	artist := &artist{draw: draw}
	all.Late = artist.heat(p.Timeline.Late, data)
	all.MPI = artist.heat(p.Timeline.MPI, data)
	all.Curve = artist.curve(data)
	all.Bars, all.Caused = artist.bars(&data.Ranks)
	all.Matrix = artist.matrix(&data.Pairs)
	return all, artist.err
}

// artist draws until something fails.
type artist struct {
	draw chart.Drawer
	err  error
}

func (a *artist) picture(c *chart.Chart) chart.Picture {
	if a.err != nil {
		return chart.Picture{}
	}
	picture, err := a.draw(c)
	a.err = err
	return picture
}

// both draws a picture for wide screens and for narrow ones.
func (a *artist) both(wide float64, describe func(width float64) *chart.Chart) figure {
	return figure{[]size{
		{a.picture(describe(wide)), "wide", wide * 1.2},
		{a.picture(describe(narrowWidth)), "narrow", narrowWidth * 2},
	}}
}

// one draws a picture that is no wider than a narrow screen.
func (a *artist) one(width float64, describe func(width float64) *chart.Chart) figure {
	return figure{[]size{{a.picture(describe(width)), "", width * 1.2}}}
}

// about is how many ticks a time axis of a width has room for.
func about(width float64) int { return max(2, int(width/110)) }

// heat draws shares by row and bin as a picture of one pixel for each. Its grey levels are
// the shares, which scripts read there; a filter of the page gives them their colour.
func (a *artist) heat(shares [][]float64, data *picture) heatMap {
	rows := len(shares)
	if rows == 0 || data.Timeline.Bins == 0 {
		return heatMap{}
	}
	limit := heatLimit(shares)
	height := math.Round(min(26, max(1.2, 400/float64(rows))) * float64(rows))
	return heatMap{Limit: limit, Notched: len(hostMarks(data.Timeline.Hosts)) > 0, figure: a.both(wholeWidth, func(width float64) *chart.Chart {
		return &chart.Chart{Width: width, Height: height, Left: leftMargin, Right: rightMargin,
			X:     chart.Axis{Max: float64(data.Timeline.Bins)},
			Y:     chart.Axis{Max: float64(rows), Ticks: chart.RowTicks(firstOf(data.Timeline.Labels), height, labelHeight), Marks: hostMarks(data.Timeline.Hosts)},
			Image: greyOf(rows, data.Timeline.Bins, func(r, b int) float64 { return shares[r][b] / limit })}
	})}
}

// heatLimit is a round share over the largest.
func heatLimit(shares [][]float64) float64 {
	largest := 0.0
	for _, row := range shares {
		for _, share := range row {
			largest = max(largest, min(share, 1))
		}
	}
	for _, limit := range []float64{0.1, 0.25, 0.5, 0.75} {
		if limit >= largest {
			return limit
		}
	}
	return 1
}

// greyFull is the level of grey that means 1.
const greyFull = 250

var greys = func() color.Palette {
	var all color.Palette
	for level := range greyFull + 1 {
		all = append(all, color.NRGBA{uint8(level), uint8(level), uint8(level), 255})
	}
	return append(all, color.NRGBA{})
}()

// greyOf makes a picture of values from 0 to 1; below 0 it is transparent.
func greyOf(rows, columns int, value func(row, column int) float64) *image.Paletted {
	picture := image.NewPaletted(image.Rect(0, 0, columns, rows), greys)
	for r := range rows {
		for c := range columns {
			level := uint8(greyFull + 1)
			if v := value(r, c); v >= 0 {
				level = uint8(math.Round(min(v, 1) * greyFull))
			}
			picture.SetColorIndex(c, r, level)
		}
	}
	return picture
}

// firstOf are the labels of rows, of each only its first rank.
func firstOf(labels []string) []string {
	first := make([]string, len(labels))
	for i, label := range labels {
		first[i], _, _ = strings.Cut(label, "–")
	}
	return first
}

// hostMarks are where in a picture of rows another host begins.
func hostMarks(hosts []string) []float64 {
	var marks []float64
	for r := 1; r < len(hosts) && len(hosts) > 4; r++ {
		if hosts[r] != hosts[r-1] {
			marks = append(marks, float64(len(hosts)-r))
		}
	}
	return marks
}

// curve draws efficiency and load balance on the time axis of the heat map.
func (a *artist) curve(data *picture) figure {
	t := &data.Timeline
	if t.Bins == 0 {
		return figure{}
	}
	values := func(points []*float64) []float64 {
		line := make([]float64, len(points))
		for i, point := range points {
			line[i] = math.NaN()
			if point != nil {
				line[i] = min(*point, 1)
			}
		}
		return line
	}
	whole := float64(t.Bins) * t.BinWidth
	return a.both(wholeWidth, func(width float64) *chart.Chart {
		return &chart.Chart{Width: width, Height: 130 + below, Left: leftMargin, Right: rightMargin,
			X:     chart.Axis{Max: whole, Ticks: chart.TimeTicks(whole, about(width))},
			Y:     chart.Axis{Max: 1, Ticks: chart.RoundTicks(1, 2, percent), Rules: true},
			Lines: []chart.Series{{Ink: "caused", Values: values(t.Balance)}, {Ink: "useful", Values: values(t.Efficiency)}}}
	})
}

// bars draws where the time of each rank went, and beside it how long others waited for it.
func (a *artist) bars(ranks *rankRows) (split, caused figure) {
	rows := len(ranks.Labels)
	if rows == 0 {
		return
	}
	height := min(24, max(1.6, 420/float64(rows))) * float64(rows)
	panel := func(series ...chart.Series) func(width float64) *chart.Chart {
		whole, ofAll := evenedOut(series)
		return func(width float64) *chart.Chart {
			return &chart.Chart{Width: width, Height: height + below, Left: leftMargin, Right: rightMargin,
				X:    chart.Axis{Max: 1, Ticks: shareOf(whole, chart.TimeTicks(whole, about(width))), Rules: true},
				Y:    chart.Axis{Max: float64(rows), Ticks: chart.RowTicks(firstOf(ranks.Labels), height, labelHeight)},
				Bars: ofAll}
		}
	}
	split = a.both(barsWidth, panel(chart.Series{Ink: "useful", Values: ranks.Useful}, chart.Series{Ink: "late", Values: ranks.Late},
		chart.Series{Ink: "transfer", Values: ranks.Transfer}, chart.Series{Ink: "own", Values: ranks.Own}, chart.Series{Ink: "unsplit", Values: ranks.Unsplit}))
	return split, a.one(causedWidth, panel(chart.Series{Ink: "caused", Values: ranks.Caused}))
}

// evenedOut are the series as shares of the longest bar, whose length it returns too, and
// without those that are 0 everywhere. Profiles may hold any number: sums of the largest
// would be infinite.
func evenedOut(series []chart.Series) (whole float64, shares []chart.Series) {
	largest := 0.0
	for _, s := range series {
		for _, v := range s.Values {
			largest = max(largest, v)
		}
	}
	if largest == 0 {
		return 0, nil
	}
	longest := 0.0
	for row := range series[0].Values {
		length := 0.0
		for _, s := range series {
			length += max(0, s.Values[row]/largest)
		}
		longest = max(longest, length)
	}
	for _, s := range series {
		share, empty := make([]float64, len(s.Values)), true
		for row, v := range s.Values {
			share[row] = max(0, v/largest) / longest
			empty = empty && share[row] == 0
		}
		if !empty {
			shares = append(shares, chart.Series{Ink: s.Ink, Values: share})
		}
	}
	return largest * longest, shares
}

// shareOf has ticks on an axis from 0 to 1.
func shareOf(whole float64, ticks []chart.Tick) []chart.Tick {
	for i := range ticks {
		if whole > 0 {
			ticks[i].At /= whole
		}
	}
	return ticks
}

// matrix draws who waits for whom.
func (a *artist) matrix(pairs *pairMatrix) figure {
	n := len(pairs.Labels)
	if n == 0 || len(pairs.Cells) == 0 {
		return figure{}
	}
	most := 0.0
	for _, c := range pairs.Cells {
		most = max(most, c.Cost)
	}
	darkness := make([]float64, n*n)
	for i := range darkness {
		darkness[i] = -1
	}
	for _, c := range pairs.Cells {
		if c.Cost > 0 {
			// The square root shows small costs beside a large one.
			darkness[c.Waiter*n+c.Culprit] = 0.12 + 0.88*math.Sqrt(c.Cost/most)
		}
	}
	side := min(matrixWidth-leftMargin, float64(n)*64)
	labels := firstOf(pairs.Labels)
	rows := chart.RowTicks(labels, side, labelWidth)
	var columns []chart.Tick
	for _, row := range rows {
		columns = append(columns, chart.Tick{At: float64(n) - row.At, Text: row.Text})
	}
	return a.one(side+leftMargin, func(width float64) *chart.Chart {
		return &chart.Chart{Width: width, Height: side + below, Left: leftMargin,
			X:     chart.Axis{Max: float64(n), Ticks: columns, Rules: true},
			Y:     chart.Axis{Max: float64(n), Ticks: rows, Rules: true},
			Image: greyOf(n, n, func(r, c int) float64 { return darkness[r*n+c] })}
	})
}
