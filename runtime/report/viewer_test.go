package report

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
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
<script src="webcomponents.js"></script>
<link rel="import" href="trace_viewer_full.html">
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

// fetchViewer brings Chrome's trace viewer out of the npm registry.
func fetchViewer(t *testing.T) string {
	t.Helper()
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("no npm to bring Chrome's trace viewer with: install the package npm")
	}
	folder := t.TempDir()
	for name, part := range map[string]string{
		"traceviewer@1.0.11":      "package/tracing/bin/trace_viewer_full.html",
		"webcomponents.js@0.7.24": "package/webcomponents.js",
	} {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		pack := exec.CommandContext(ctx, npm, "pack", "--silent", name)
		pack.Dir = t.TempDir()
		archive, err := pack.Output()
		if err != nil {
			t.Skipf("the npm registry, which is not ours to keep up, does not give %s: %v", name, err)
		}
		packed := filepath.Join(pack.Dir, string(bytes.TrimSpace(archive)))
		text, err := exec.Command("tar", "-xzOf", packed, part).Output()
		require.NoError(t, err, "%s has no %s", name, part)
		require.NoError(t, os.WriteFile(filepath.Join(folder, filepath.Base(part)), text, 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(folder, "index.html"), []byte(viewerPage), 0o600))
	return folder
}

func TestTraceOpensInChromesTraceViewer(t *testing.T) {
	parent := startBrowser(t)
	folder := fetchViewer(t)
	const ranks, cycles = 4, 50
	var trace bytes.Buffer
	require.NoError(t, Trace(&trace, recording(ranks, cycles), TraceOptions{}))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "trace.json"), trace.Bytes(), 0o600))
	server := httptest.NewServer(http.FileServer(http.Dir(folder)))
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
