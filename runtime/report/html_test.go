package report

import (
	"bytes"
	"fmt"
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
)

// pixel is an expression that gives the colour of a cell of the heat map. It
// reads a copy, as Chromium complains when a picture is read that is shown.
func pixel(row, bin int) string {
	return fmt.Sprintf(`(() => {
		const shown = document.querySelector("#heat canvas"), copy = document.createElement("canvas");
		copy.width = shown.width, copy.height = shown.height;
		const context = copy.getContext("2d", { willReadFrequently: true });
		context.drawImage(shown, 0, 0);
		return Array.from(context.getImageData(%d, %d, 1, 1).data);
	})()`, bin, row)
}

func TestPageDrawsEveryPicture(t *testing.T) {
	p := particles.profile()
	p.Timeline.MPI[2][3], p.Timeline.Late[2][3] = -1, -1
	tab := open(t, p, 1280)

	hot, cold := extremes(p.Timeline.Late)
	strong, weak := value[[]int](tab, pixel(hot[0], hot[1])), value[[]int](tab, pixel(cold[0], cold[1]))
	assert.Greater(t, weak[2]-strong[2], 100, "much waiting is far from white: %v against %v", strong, weak)
	assert.Equal(t, 255, strong[3])
	assert.Equal(t, 0, value[[]int](tab, pixel(2, 3))[3], "where a rank did not run nothing is painted")

	assert.Equal(t, []int{240, 240}, value[[]int](tab, `[...document.querySelectorAll("#curve path")].map(p => p.getAttribute("d").match(/[ML]/g).length)`))
	caused := 0
	for _, rank := range p.Ranks {
		if rank.Caused > 0 {
			caused++
		}
	}
	rects := func(id string) int { return value[int](tab, `document.querySelectorAll("`+id+` rect").length`) }
	onWaiting := 0
	for _, rank := range p.Ranks {
		for _, share := range sharesOf(&rank.Split) {
			if share.time > 0 {
				onWaiting++
			}
		}
	}
	assert.Equal(t, onWaiting+caused, rects("#bars"))
	assert.Equal(t, len(p.WaitsFor), rects("#matrix"))
	assert.Equal(t, len(p.Worst[0].Arrivals), rects("#arrivals"))
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
	tip := tab.point("#heat canvas", 10.5/240, 5.5/64)
	assert.Contains(t, tip, "rank 5 on node01")
	assert.Contains(t, tip, "waiting for late ranks: "+percent(math.Round(p.Timeline.Late[5][10]*250)/250))
	assert.Contains(t, tip, "2.00 s to 2.20 s")

	value[bool](tab, `document.querySelectorAll("#bars rect[fill='var(--useful)']")[32].id = "bar", true`)
	assert.Contains(t, tab.point("#bar", 0.5, 0.5), "useful "+seconds(p.Ranks[32].Useful))
	assert.Contains(t, tab.point("#curve", 0.5, 0.3), "load balance ")
	assert.Contains(t, tab.point("#arrivals rect", 0.5, 0.5), fmt.Sprintf("rank %d", p.Worst[0].First))

	pair := p.WaitsFor[0]
	place := value[int](tab, fmt.Sprintf(`data.pairs.cells.filter(c => c.cost > 0).findIndex(c => c.w === %d && c.c === %d)`, pair.Waiter, pair.Culprit))
	value[bool](tab, fmt.Sprintf(`document.querySelectorAll("#matrix rect")[%d].id = "pair", true`, place))
	assert.Contains(t, tab.point("#pair", 0.5, 0.5), fmt.Sprintf("rank %d for rank %d\nwaited %s", pair.Waiter, pair.Culprit, seconds(pair.Cost)))
	assert.Empty(t, tab.point("h1", 0.5, 0.5), "away from a picture there is nothing to tell")
	tab.quiet()
}

func TestPageChangesThePicture(t *testing.T) {
	tab := open(t, particles.profile(), 1280)
	before := value[[]int](tab, pixel(20, 50))
	tab.do(chromedp.Click(chromedp.CSS(`[data-map="mpi"]`)))
	assert.NotEqual(t, before, value[[]int](tab, pixel(20, 50)))

	last := `document.querySelector("#arrivals .strong").textContent`
	first := value[string](tab, last)
	tab.do(chromedp.Click(chromedp.CSS("#operations button:nth-child(4)")))
	assert.NotEqual(t, first, value[string](tab, last))
	assert.Equal(t, fmt.Sprintf("rank %d", particles.profile().Worst[3].Last), value[string](tab, last))
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
	colours := func() [3]string {
		return value[[3]string](tab, `[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color, `+pixel(20, 50)+`.join()]`)
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
	assert.Greater(t, value[int](tab, `document.querySelector("#heat canvas").clientWidth`), 250)
	tab.do(chromedp.EmulateViewport(900, 900))
	assert.Eventually(t, func() bool {
		return value[int](tab, `document.querySelector("#heat canvas").clientWidth`) > 600
	}, 10*time.Second, 50*time.Millisecond, "the pictures follow the window")
	tab.quiet()
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
	for _, place := range []string{"#heat canvas", "#bars", "#matrix", "#arrivals", "#curve"} {
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
		require.NoError(t, HTML(&page, j.profile()))
		assert.Less(t, page.Len(), 3<<20, "%d ranks", j.ranks)
		for _, attribute := range []string{"src=", "href=\"http", "url(", "@import", "fetch("} {
			assert.False(t, strings.Contains(page.String(), attribute), attribute)
		}
	}
}
