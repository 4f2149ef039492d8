package draw

import (
	"encoding/xml"
	"image"
	"image/color"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/runtime/report/chart"
)

func drawn(t *testing.T, c *chart.Chart) (string, chart.Area) {
	t.Helper()
	c.Width, c.Height = 400, 200
	p, err := SVG(c)
	require.NoError(t, err)
	svg := string(p.SVG)
	require.NoError(t, xml.Unmarshal([]byte(svg), new(any)))
	assert.True(t, strings.HasPrefix(svg, `<svg viewBox="0 0 400 200"`), "%.80s", svg)
	assert.NotRegexp(t, `NaN|Inf|#EE4B`, svg)
	return svg, p.Area
}

func TestBarsLieOnEachOtherInThePagesColours(t *testing.T) {
	svg, area := drawn(t, &chart.Chart{Left: 40, Right: 40, X: chart.Axis{Max: 10}, Y: chart.Axis{Max: 2},
		Bars: []chart.Series{{Ink: "useful", Values: []float64{2, 4}}, {Ink: "late", Values: []float64{8, 1}}}})
	assert.Equal(t, 40.0/400, area.Left)
	assert.Equal(t, 360.0/400, area.Right)
	assert.Equal(t, 2, strings.Count(svg, `style="fill:var(--useful)"`))
	assert.Equal(t, 2, strings.Count(svg, `style="fill:var(--late)"`))
	// The second row, which is below, is drawn first: 4 of 10 of 320 pixels, and 1 more.
	assert.Contains(t, svg, `M40,8L40,101L168,101L168,8Z`)
	assert.Contains(t, svg, `M168,8L168,101L200,101L200,8Z`)
	assert.Contains(t, svg, `M104,105L104,198L360,198L360,105Z`)
}

func TestLinesHaveGapsAndSteps(t *testing.T) {
	values := []float64{1, 2, math.NaN(), math.NaN(), 1}
	svg, _ := drawn(t, &chart.Chart{X: chart.Axis{Max: 5}, Y: chart.Axis{Max: 2}, Lines: []chart.Series{{Ink: "own", Values: values}}})
	assert.Equal(t, 2, strings.Count(svg, "stroke:var(--own)"), "a line in two pieces")
	svg, _ = drawn(t, &chart.Chart{X: chart.Axis{Max: 5}, Y: chart.Axis{Max: 2}, Steps: true, Lines: []chart.Series{{Ink: "own", Dashed: true, Values: values}}})
	assert.Contains(t, svg, `M6.9,102.55L85.34,102.55L85.34,199.1L163.78,199.1"`, "up where the second value begins")
	assert.Equal(t, 2, strings.Count(svg, "stroke-dasharray:4,3"))
}

func TestImagesFillThePicture(t *testing.T) {
	picture := image.NewPaletted(image.Rect(0, 0, 3, 2), color.Palette{color.Black, color.White})
	svg, area := drawn(t, &chart.Chart{X: chart.Axis{Max: 3}, Y: chart.Axis{Max: 2, Ticks: []chart.Tick{{At: 0.5, Text: "<1>"}}, Marks: []float64{1}}, Image: picture})
	assert.Contains(t, svg, `<image preserveAspectRatio="none" `)
	assert.Contains(t, svg, `xlink:href="data:image/png;base64,`)
	assert.Contains(t, svg, `&lt;1&gt;</text>`, "words are no markup")
	assert.Equal(t, 1, strings.Count(svg, "stroke:var(--quiet)"))
	assert.Greater(t, area.Left, 0.02, "there is room for the words")
	assert.Less(t, area.Bottom, 1.0)
}

func TestNothingIsDrawnOfNothing(t *testing.T) {
	drawn(t, &chart.Chart{})
	drawn(t, &chart.Chart{X: chart.Axis{Max: math.Inf(1)}, Y: chart.Axis{Max: math.NaN()}, Lines: []chart.Series{{Ink: "late"}}})
	_, err := SVG(&chart.Chart{Width: 10, Height: 10, Bars: []chart.Series{{Ink: "late", Values: []float64{math.NaN()}}}})
	assert.ErrorContains(t, err, "cannot draw bars")
}
