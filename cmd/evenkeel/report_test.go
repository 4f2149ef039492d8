package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/runtime/profile"
)

// finished writes the directory of a job that is over.
func finished(t *testing.T) string {
	dir := filepath.Join(t.TempDir(), "evenkeel.77")
	require.NoError(t, os.Mkdir(dir, 0o755))
	p := &profile.Profile{Format: profile.Format, Version: profile.Version, Job: "77", Command: "./solver", Complete: true,
		Total: profile.Scope{Elapsed: 2, Ranks: 1, Split: profile.Split{Useful: 2}},
		Nodes: []profile.Node{{World: 1, Host: "here", Ranks: 1}},
		Ranks: []profile.Rank{{World: 1, State: "finalized", Elapsed: 2, Split: profile.Split{Useful: 2}}}}
	require.NoError(t, profile.Write(filepath.Join(dir, "profile.json"), p))
	return dir
}

func TestReport(t *testing.T) {
	dir := finished(t)
	for _, name := range []string{dir, filepath.Join(dir, "profile.json")} {
		got := invoke(t, nil, "report", name)
		assert.Zero(t, got.status)
		assert.Empty(t, got.stderr)
		assert.Contains(t, got.stdout, "./solver")
	}
}

func TestReportInTheCharactersOfTheLocale(t *testing.T) {
	dir := finished(t)
	for locale, want := range map[string]string{"C": "load balance x communication", "C.UTF-8": "load balance × communication"} {
		assert.Contains(t, invoke(t, []string{"LC_ALL=" + locale}, "report", dir).stdout, want)
	}
}

func TestReportAsJSON(t *testing.T) {
	dir := finished(t)
	got := invoke(t, nil, "report", "--json", dir)
	assert.Zero(t, got.status)
	want, err := profile.Read(filepath.Join(dir, "profile.json"))
	require.NoError(t, err)
	p, err := profile.Decode([]byte(got.stdout))
	require.NoError(t, err)
	assert.Equal(t, want, p)
	assert.True(t, json.Valid([]byte(got.stdout)))
}

func TestReportAsPage(t *testing.T) {
	dir := finished(t)
	page := filepath.Join(t.TempDir(), "report.html")
	assert.Equal(t, outcome{}, invoke(t, nil, "report", dir, "--html", page))
	data, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.True(t, bytes.Contains(data, []byte("./solver")))
	got := invoke(t, nil, "report", dir, "--html", page+"/under")
	assert.Equal(t, 1, got.status)
	assert.Regexp(t, `^evenkeel: cannot write .*report.html/under: .*\n$`, got.stderr)
}

func TestReportRefuses(t *testing.T) {
	dir := t.TempDir()
	foreign := filepath.Join(dir, "foreign.json")
	require.NoError(t, os.WriteFile(foreign, []byte(`{"format": "other"}`), 0o644))
	half := filepath.Join(finished(t), "profile.json")
	require.NoError(t, os.Truncate(half, 50))
	for name, want := range map[string]string{
		"nosuchjob": `nosuchjob is neither the directory of a profile nor a job that runs on this host.*`,
		dir:         `.* holds no recording of evenkeel .*`,
		foreign:     `.*/foreign\.json: this is no evenkeel profile: .*`,
		half:        `.*/profile\.json: the file breaks off after 50 bytes: .*`,
	} {
		got := invoke(t, nil, "report", name)
		assert.Equal(t, 1, got.status)
		assert.Empty(t, got.stdout)
		assert.Regexp(t, `^evenkeel: `+want+`\n$`, got.stderr)
	}
}
