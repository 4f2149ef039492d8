package report

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"evenkeel/runtime/profile"
	"evenkeel/runtime/report/draw"
)

// browser is one headless Chromium for all tests of the page.
var browser struct {
	once    sync.Once
	context context.Context
	reason  string // why there is none
	close   func()
}

func TestMain(m *testing.M) {
	code := m.Run()
	if browser.close != nil {
		browser.close()
	}
	os.Exit(code)
}

// startBrowser skips the test where there is no Chromium; in CI there must be.
func startBrowser(t *testing.T) context.Context {
	t.Helper()
	browser.once.Do(func() {
		path := ""
		for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
			if found, err := exec.LookPath(name); err == nil {
				path = found
				break
			}
		}
		if path == "" {
			browser.reason = "no Chromium in PATH: install the package chromium"
			return
		}
		temporary, err := os.MkdirTemp("", "ek") // which it does not clear itself
		if err != nil {
			browser.reason = err.Error()
			return
		}
		options := append(chromedp.DefaultExecAllocatorOptions[:],
			chromedp.Env("TMPDIR="+temporary), chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
			chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true))
		allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
		ctx, cancel := chromedp.NewContext(allocator)
		browser.context, browser.close = ctx, func() { cancel(); stop(); os.RemoveAll(temporary) }
		if err := chromedp.Do(ctx); err != nil {
			browser.reason = "Chromium does not start: " + err.Error()
		}
	})
	if browser.reason != "" && os.Getenv("CI") == "true" {
		t.Fatal(browser.reason)
	}
	if browser.reason != "" {
		t.Skip(browser.reason)
	}
	return browser.context
}

// tab is a page of a profile, open in the browser, with what it did.
type tab struct {
	context.Context
	t *testing.T

	mutex    sync.Mutex
	requests []string // beyond the page itself
	trouble  []string // errors, refusals, messages and dialogues
}

// open writes the page of a profile and opens it at a width.
func open(t *testing.T, p *profile.Profile, width int64) *tab {
	t.Helper()
	parent := startBrowser(t)
	path := filepath.Join(t.TempDir(), "report.html")
	file, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, HTML(file, p, draw.SVG))
	require.NoError(t, file.Close())

	ctx, cancel := chromedp.NewContext(parent)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, time.Minute)
	t.Cleanup(cancel)
	tab := &tab{Context: ctx, t: t}
	url := "file://" + path
	require.NoError(t, chromedp.Listen(ctx, func(event any) { tab.note(event, url) }))
	_, err = chromedp.Call(ctx, network.Enable, network.EnableParams{})
	require.NoError(t, err)
	_, err = chromedp.Call(ctx, log.Enable, cdp.Empty{})
	require.NoError(t, err)
	tab.do(chromedp.EmulateViewport(width, 900), chromedp.Navigate(url))
	return tab
}

func (tab *tab) note(event any, url string) {
	tab.mutex.Lock()
	defer tab.mutex.Unlock()
	switch event := event.(type) {
	case *network.EventRequestWillBeSent:
		if event.Request.URL != url && !strings.HasPrefix(event.Request.URL, "data:") { // what is in the page is asked of nobody
			tab.requests = append(tab.requests, event.Request.URL)
		}
	case *runtime.EventExceptionThrown:
		tab.trouble = append(tab.trouble, fmt.Sprint(event.ExceptionDetails.Text, event.ExceptionDetails.Exception))
	case *runtime.EventConsoleAPICalled:
		tab.trouble = append(tab.trouble, "console: "+string(event.Type))
	case *log.EventEntryAdded:
		tab.trouble = append(tab.trouble, event.Entry.Text)
	case *cdppage.EventJavascriptDialogOpening:
		tab.trouble = append(tab.trouble, "dialogue: "+event.Message)
	}
}

func (tab *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	tab.t.Helper()
	require.NoError(tab.t, chromedp.Do(tab, steps...))
}

// quiet asserts that the page neither complained nor asked for anything.
func (tab *tab) quiet() {
	tab.t.Helper()
	tab.mutex.Lock()
	defer tab.mutex.Unlock()
	require.Empty(tab.t, tab.trouble)
	require.Empty(tab.t, tab.requests)
}

// value is what an expression in the page gives.
func value[T any](tab *tab, expression string) T {
	tab.t.Helper()
	result, err := chromedp.Run(tab, chromedp.Evaluate[T](expression))
	require.NoError(tab.t, err)
	return result
}

// settle waits until the page has told its scripts what happened to it: events
// of scrolling and of preferences come with the next frame.
func (tab *tab) settle() {
	tab.t.Helper()
	_, err := chromedp.Run(tab, chromedp.Evaluate[bool](`new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`, chromedp.EvalAwaitPromise))
	require.NoError(tab.t, err)
}

// point moves the mouse over a place of an element, in shares of its size, and
// gives the text of the tooltip, or "" if there is none.
func (tab *tab) point(selector string, x, y float64) string {
	tab.t.Helper()
	tab.do(chromedp.ScrollIntoView(chromedp.CSS(selector)))
	tab.settle()
	box := value[[]float64](tab, `(() => { const b = document.querySelector("`+selector+`").getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; })()`)
	tab.do(chromedp.MouseEvent("mouseMoved", box[0]+x*box[2], box[1]+y*box[3]))
	return value[string](tab, `byId("tip").hidden ? "" : byId("tip").innerText`)
}

// tip is the same for a place in a picture, in shares of what its axes span.
func (tab *tab) tip(selector string, x, y float64) string {
	tab.t.Helper()
	area := value[[]float64](tab, `document.querySelector("`+selector+`").dataset.area.split(" ").map(Number)`)
	return tab.point(selector, area[0]+x*(area[2]-area[0]), area[1]+y*(area[3]-area[1]))
}
