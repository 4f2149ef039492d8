package report

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// viewerPage is a page with Chrome's own trace viewer (what chrome://tracing
// shows), which says what it found in the trace. The viewer is from the time of
// the first web components, which today's browsers know by a polyfill.
const viewerPage = `<!DOCTYPE html>
<script>window.found = ""; window.onerror = message => { found = "error: " + message; };</script>
<script src="viewer/webcomponents.min.js"></script>
<link rel="import" href="viewer/trace_viewer_full.html">
<body><script>
addEventListener("WebComponentsReady", async () => {
	try {
		const model = new tr.Model(), options = new tr.importer.ImportOptions();
		options.pruneEmptyContainers = false;
		new tr.importer.Import(model, options).importTraces([await (await fetch("trace.json")).text()]);
		const told = {processes: [], threads: 0, slices: 0, arrows: model.flowEvents.length,
			warnings: model.importWarnings.map(w => w.message)};
		for (const process of Object.values(model.processes)) {
			told.processes.push(process.name);
			for (const thread of Object.values(process.threads)) {
				told.threads++;
				told.slices += thread.sliceGroup.slices.length;
			}
		}
		found = JSON.stringify(told);
	} catch (problem) {
		found = "error: " + problem.stack;
	}
});
</script>`

// viewerFolder is the folder of the viewer in Go's own source, which has it for
// `go tool trace`.
func viewerFolder(t *testing.T) string {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(t, err)
	folder := filepath.Join(strings.TrimSpace(string(root)), "src/internal/trace/traceviewer/static")
	require.FileExists(t, filepath.Join(folder, "trace_viewer_full.html"))
	return folder
}

func TestTraceOpensInChromesTraceViewer(t *testing.T) {
	parent := startBrowser(t)
	const ranks, cycles = 4, 50
	var trace bytes.Buffer
	require.NoError(t, Trace(&trace, recording(ranks, cycles), TraceOptions{}))
	site := http.NewServeMux()
	site.Handle("/viewer/", http.StripPrefix("/viewer", http.FileServer(http.Dir(viewerFolder(t)))))
	for path, content := range map[string]string{"/{$}": viewerPage, "/trace.json": trace.String()} {
		site.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, content) })
	}
	server := httptest.NewServer(site)
	defer server.Close()

	ctx, cancel := chromedp.NewContext(parent)
	defer cancel()
	ctx, cancel = context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tab := &tab{Context: ctx, t: t}
	tab.do(chromedp.Navigate(server.URL))
	require.Eventually(t, func() bool { return value[string](tab, "found") != "" }, 30*time.Second, 50*time.Millisecond)

	// Each cycle has a receive and a reduction on every rank, a mark at the last
	// to arrive, and an arrow from it to the one that waited longest.
	require.JSONEq(t, `{"processes": ["rank 0 (node01)", "rank 1 (node01)", "rank 2 (node02)", "rank 3 (node02)"],
		"threads": 4, "slices": 450, "arrows": 50, "warnings": []}`, value[string](tab, "found"))
}
