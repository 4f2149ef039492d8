package report

import (
	"bytes"
	"fmt"
	"image/color"
	"image/png"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/runtime/profile"
	"evenkeel/runtime/report/draw"
)

// level is an expression that gives the grey level of a cell of a heat map, and whether it
// is painted.
func level(chosen string, row, bin int) string {
	return fmt.Sprintf(`(() => {
		const map = document.querySelector(".map[data-map=%s]"), copy = document.createElement("canvas");
		copy.width = data.timeline.bins, copy.height = data.timeline.labels.length;
		const context = copy.getContext("2d", { willReadFrequently: true });
		context.drawImage(map.querySelector("image"), 0, 0, copy.width, copy.height);
		return Array.from(context.getImageData(%d, %d, 1, 1).data.slice(2));
	})()`, chosen, bin, row)
}

// seen are the colours that the screen shows at a place of a picture, in shares of its axes.
func (tab *tab) seen(selector string, x, y float64) color.Color {
	tab.t.Helper()
	tab.do(chromedp.ScrollIntoView(chromedp.CSS(selector)))
	tab.settle()
	at := value[[]float64](tab, fmt.Sprintf(`(() => {
		const picture = document.querySelector("%s"), b = picture.getBoundingClientRect(), [x0, y0, x1, y1] = picture.dataset.area.split(" ").map(Number);
		return [b.left + b.width * (x0 + (x1 - x0) * %g), b.top + b.height * (y0 + (y1 - y0) * %g)];
	})()`, selector, x, y))
	data, err := chromedp.Run(tab, chromedp.CaptureScreenshot())
	require.NoError(tab.t, err)
	screen, err := png.Decode(bytes.NewReader(data))
	require.NoError(tab.t, err)
	return screen.At(int(at[0]), int(at[1]))
}

// light is how bright a colour is, from 0 to 3.
func light(c color.Color) float64 {
	r, g, b, _ := c.RGBA()
	return float64(r+g+b) / 0xffff
}

// heatPicture is what is seen of the heat map on a wide screen.
const heatPicture = "#heat .map:not([hidden]) .picture.wide"

func TestPageDrawsEveryPicture(t *testing.T) {
	p := particles.profile()
	p.Timeline.MPI[2][3], p.Timeline.Late[2][3] = -1, -1
	tab := open(t, p, 1280)

	limit := heatLimit(p.Timeline.Late)
	for _, at := range [][2]int{{0, 0}, {5, 10}, {63, 239}} {
		assert.Equal(t, []int{int(math.Round(p.Timeline.Late[at[0]][at[1]] / limit * greyFull)), 255}, value[[]int](tab, level("late", at[0], at[1])))
	}
	assert.Equal(t, 0, value[[]int](tab, level("late", 2, 3))[1], "where a rank did not run nothing is painted")
	hot, cold := extremes(p.Timeline.Late)
	rows, bins := float64(len(p.Ranks)), float64(len(p.Timeline.Efficiency))
	middle := func(cell [2]int) (x, y float64) {
		return (float64(cell[1]) + 0.5) / bins, (float64(cell[0]) + 0.5) / rows
	}
	x, y := middle(hot)
	strong := tab.seen(heatPicture, x, y)
	x, y = middle(cold)
	weak := tab.seen(heatPicture, x, y)
	assert.Greater(t, light(weak), light(strong)+0.8, "much waiting is far from white: %v against %v", strong, weak)

	assert.Equal(t, []int{240, 240}, value[[]int](tab, `[...document.querySelectorAll("#curve .wide path[style*='fill:none']")].filter(p => /useful|caused/.test(p.getAttribute("style"))).map(p => p.getAttribute("d").match(/[ML]/g).length)`))
	// Of each rank a bar, be it without length, for all that any rank has.
	filled := func(id string) int {
		return value[int](tab, `document.querySelectorAll("#`+id+` path[style^='fill:var']").length`)
	}
	parts := map[string]bool{}
	for _, rank := range p.Ranks {
		for _, share := range sharesOf(&rank.Split) {
			parts[share.class] = parts[share.class] || share.time > 0
		}
	}
	shown := 0
	for _, any := range parts {
		if any {
			shown++
		}
	}
	assert.Equal(t, 2*shown*len(p.Ranks), filled("bars"), "for wide screens and for narrow ones")
	assert.Equal(t, len(p.Ranks), filled("caused"))
	assert.Equal(t, len(p.WaitsFor), value[int](tab, `(() => {
		const copy = document.createElement("canvas"), n = copy.width = copy.height = data.pairs.labels.length, context = copy.getContext("2d");
		context.drawImage(document.querySelector("#matrix image"), 0, 0, n, n);
		return context.getImageData(0, 0, n, n).data.filter((v, i) => i % 4 === 3 && v === 255).length;
	})()`))
	assert.Equal(t, len(p.Worst[0].Arrivals), value[int](tab, `document.querySelectorAll(".arrival").length`))
	assert.Equal(t, len(p.CallSites), value[int](tab, `document.querySelectorAll("#sites tbody tr").length`))
	assert.Contains(t, value[string](tab, `document.body.innerText`), unbroken(verdict(p)))
	tab.quiet()
}

// extremes are the cells with the largest and the smallest share.
func extremes(rows [][]float64) (largest, smallest [2]int) {
	high, low := -1.0, 2.0
	for r, row := range rows {
		for b, share := range row {
			if share > high {
				high, largest = share, [2]int{r, b}
			}
			if share >= 0 && share < low {
				low, smallest = share, [2]int{r, b}
			}
		}
	}
	return largest, smallest
}

func TestPageTellsFiguresUnderThePointer(t *testing.T) {
	p := particles.profile()
	tab := open(t, p, 1280)
	tip := tab.tip(heatPicture, 10.5/240, 5.5/64)
	assert.Contains(t, tip, "rank 5 on node01")
	limit := heatLimit(p.Timeline.Late)
	assert.Contains(t, tip, "waiting for late ranks: "+percent(math.Round(p.Timeline.Late[5][10]/limit*greyFull)/greyFull*limit))
	limit = heatLimit(p.Timeline.MPI)
	assert.Contains(t, tip, "all of MPI: "+percent(math.Round(p.Timeline.MPI[5][10]/limit*greyFull)/greyFull*limit))
	assert.Contains(t, tip, "2.00 s to 2.20 s")
	assert.Equal(t, 1, value[int](tab, `document.querySelectorAll("#curve .wide .cursor:not([hidden])").length`), "the same moment is marked in the curve")

	assert.Contains(t, tab.tip("#bars .wide", 0.2, 32.5/64), "useful "+seconds(p.Ranks[32].Useful))
	assert.Contains(t, tab.tip("#caused .picture", 0.2, 32.5/64), "others waited for it "+seconds(rounded(p.Ranks[32].Caused)))
	assert.Contains(t, tab.tip("#curve .wide", 0.5, 0.3), "load balance ")
	assert.Equal(t, fmt.Sprintf("rank %d", p.Worst[0].First), value[string](tab, `document.querySelector(".arrival b").textContent`))
	assert.Contains(t, value[string](tab, `document.querySelector(".arrival").title`), "waited "+seconds(p.Worst[0].Spread))

	pair := p.WaitsFor[0]
	assert.Contains(t, tab.tip("#matrix .picture", (float64(pair.Culprit)+0.5)/64, (float64(pair.Waiter)+0.5)/64), fmt.Sprintf("rank %d for rank %d\nwaited %s", pair.Waiter, pair.Culprit, seconds(pair.Cost)))
	assert.Empty(t, tab.point("h1", 0.5, 0.5), "away from a picture there is nothing to tell")
	tab.quiet()
}

func TestPageChangesThePicture(t *testing.T) {
	p := particles.profile()
	tab := open(t, p, 1280)
	before := tab.seen(heatPicture, 50.5/240, 20.5/64)
	tab.do(chromedp.Click(chromedp.CSS(`button[data-map="mpi"]`)))
	assert.NotEqual(t, before, tab.seen(heatPicture, 50.5/240, 20.5/64))
	assert.Equal(t, []string{"mpi"}, value[[]string](tab, `[...document.querySelectorAll("#heat .map")].filter(m => m.offsetHeight > 0).map(m => m.dataset.map)`))

	last := `document.querySelector(".arrival.strong b").textContent`
	first := value[string](tab, last)
	tab.do(chromedp.Click(chromedp.CSS("#operations button:nth-child(4)")))
	assert.NotEqual(t, first, value[string](tab, last))
	assert.Equal(t, fmt.Sprintf("rank %d", p.Worst[3].Last), value[string](tab, last))
	tab.quiet()
}

func TestPageSortsAndSearches(t *testing.T) {
	p := particles.profile()
	tab := open(t, p, 1280)
	column := func(n int) []string {
		return value[[]string](tab, fmt.Sprintf(`[...document.querySelectorAll("#sites tbody tr:not([hidden])")].map(r => r.cells[%d].innerText)`, n))
	}
	tab.do(chromedp.Click(chromedp.CSS("#sites th:nth-child(1) button")))
	assert.True(t, slices.IsSorted(column(0)), "names from A: %v", column(0))
	tab.do(chromedp.Click(chromedp.CSS("#sites th:nth-child(6) button")))
	assert.Equal(t, count(p.CallSites[0].Calls), column(5)[0], "numbers from the largest")
	tab.do(chromedp.Click(chromedp.CSS("#sites th:nth-child(6) button")))
	assert.Equal(t, count(p.CallSites[0].Calls), column(5)[len(p.CallSites)-1])
	tab.do(chromedp.SendKeys(chromedp.CSS("#sites input"), "HALO wait"))
	assert.Equal(t, []string{"MPI_Waitall"}, column(0))
	tab.quiet()
}

func TestPageIsLightOrDark(t *testing.T) {
	tab := open(t, particles.profile(), 1280)
	// The page, its words, what no rank waits in, and the words of a picture.
	colours := func() []string {
		return append(value[[]string](tab, `[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color, getComputedStyle(document.querySelector("#heat text")).fill]`),
			fmt.Sprint(tab.seen(heatPicture, 0.6, 0.5)))
	}
	prefer := func(scheme string) {
		_, err := chromedp.Call(tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		require.NoError(t, err)
		tab.settle()
	}
	prefer("light")
	light := colours()
	prefer("dark")
	dark := colours()
	for i := range light {
		assert.NotEqual(t, light[i], dark[i])
	}
	tab.do(chromedp.Click(chromedp.CSS("#theme")))
	assert.Equal(t, light, colours())
	tab.quiet()
}

func TestPageFitsNarrowScreens(t *testing.T) {
	tab := open(t, particles.profile(), 400)
	assert.LessOrEqual(t, value[int](tab, `document.documentElement.scrollWidth`), 400)
	shown := func(class string) int {
		return value[int](tab, `document.querySelector("#heat .picture.`+class+`").clientWidth`)
	}
	assert.Greater(t, shown("narrow"), 300)
	assert.Zero(t, shown("wide"))
	assert.Contains(t, tab.tip("#heat .narrow", 10.5/240, 5.5/64), "rank 5 on node01")
	tab.do(chromedp.EmulateViewport(900, 900))
	assert.Eventually(t, func() bool { return shown("wide") > 700 && shown("narrow") == 0 }, 10*time.Second, 50*time.Millisecond, "the pictures follow the window")
	tab.quiet()
}

// A rank's bars in the two pictures that stand side by side are on one line.
func TestPicturesSideBySideAreScaledAlike(t *testing.T) {
	tab := open(t, particles.profile(), 1280)
	shown := func(id, edge string) float64 {
		return value[float64](tab, `[...document.querySelectorAll("`+id+` svg")].find(s => s.clientWidth > 0).getBoundingClientRect().`+edge)
	}
	for _, width := range []int64{1280, 1100, 1000, 981} {
		tab.do(chromedp.EmulateViewport(width, 900))
		tab.settle()
		assert.Greater(t, shown("#caused", "left"), shown("#bars", "right")-1, "they stand side by side in %d pixels", width)
		assert.InDelta(t, shown("#bars", "height"), shown("#caused", "height"), 2, "in %d pixels", width)
	}
	tab.do(chromedp.EmulateViewport(900, 900))
	tab.settle()
	assert.Greater(t, shown("#caused", "top"), shown("#bars", "bottom")-1)
}

// hostile is a name that would do harm if it came into a page as it is.
const hostile = `</script><script>window.harmed=1</script><img src=x onerror="window.harmed=1">{{.}}"'<b>` + "\x1b[31m\u202e"

// rename gives every string in v that a program under test can choose the
// hostile name.
func rename(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(hostile)
	case reflect.Pointer:
		if !v.IsNil() {
			rename(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			rename(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			rename(v.Field(i))
		}
	}
}

func TestPageIsSafeFromNames(t *testing.T) {
	p := particles.profile()
	p.Notes = []string{"note"}
	rename(reflect.ValueOf(p).Elem())
	tab := open(t, p, 1280)
	for _, place := range []string{heatPicture, "#bars .picture", "#matrix .picture", "#arrivals", "#curve .picture"} {
		tab.point(place, 0.5, 0.5)
	}
	tab.do(chromedp.Click(chromedp.CSS("#operations button:nth-child(2)")))
	assert.Equal(t, "undefined", value[string](tab, `typeof window.harmed`))
	assert.Zero(t, value[int](tab, `document.querySelectorAll("img, body b b").length`))
	assert.Equal(t, 2, value[int](tab, `document.scripts.length`))
	assert.Contains(t, value[string](tab, `document.querySelector("h1").textContent`), `</script><script>window.harmed=1</script>`)
	tab.quiet()

	// And if a script came in all the same, the page's policy would refuse it.
	value[bool](tab, `(() => { const s = document.createElement("script"); s.textContent = "window.harmed = 1"; document.body.append(s); return true; })()`)
	assert.Equal(t, "undefined", value[string](tab, `typeof window.harmed`))
}

func TestPageOpensWithNothingToShow(t *testing.T) {
	tab := open(t, &profile.Profile{Format: profile.Format, Version: profile.Version}, 1280)
	assert.Contains(t, value[string](tab, `document.body.innerText`), "Nothing was recorded.")
	assert.Contains(t, value[string](tab, `document.body.innerText`), "The recording is not complete")
	tab.quiet()
}

func TestPageSizeIsBounded(t *testing.T) {
	for _, j := range []job{
		{seed: 1, ranks: 256, nodes: 16, bins: 512, elapsed: 100, skew: 0.5},
		{seed: 1, ranks: 20000, nodes: 400, bins: 16, elapsed: 100, skew: 0.5},
	} {
		var page bytes.Buffer
		require.NoError(t, HTML(&page, j.profile(), draw.SVG))
		assert.Less(t, page.Len(), 3<<20, "%d ranks", j.ranks)
		for _, attribute := range []string{"src=", "href=\"http", "url(h", "@import", "fetch("} {
			assert.False(t, strings.Contains(page.String(), attribute), attribute)
		}
	}
}
