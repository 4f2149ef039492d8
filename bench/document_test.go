package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const page = "# Page\n\n<!-- bench:cost -->\nold\n<!-- /bench:cost -->\n\nprose\n\n<!-- bench:programs -->\n<!-- /bench:programs -->\n"

func TestReplaceSectionLeavesTheRest(t *testing.T) {
	once, err := replaceSection(page, "cost", "\nnew | figures\n\n")
	require.NoError(t, err)
	assert.Equal(t, "# Page\n\n<!-- bench:cost -->\nnew | figures\n<!-- /bench:cost -->\n\nprose\n\n<!-- bench:programs -->\n<!-- /bench:programs -->\n", once)
	twice, err := replaceSection(once, "cost", "new | figures")
	require.NoError(t, err)
	assert.Equal(t, once, twice)
	both, err := replaceSection(once, "programs", "more")
	require.NoError(t, err)
	assert.Contains(t, both, "<!-- bench:programs -->\nmore\n<!-- /bench:programs -->")
}

func TestReplaceSectionNamesTheMissingMark(t *testing.T) {
	_, err := replaceSection("no marks", "cost", "text")
	assert.ErrorContains(t, err, "<!-- bench:cost -->")
	_, err = replaceSection("<!-- bench:cost -->", "cost", "text")
	assert.ErrorContains(t, err, "<!-- /bench:cost -->")
}

func TestRewriteSectionKeepsADocumentWithoutMarks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	require.NoError(t, os.WriteFile(path, []byte("no marks"), 0o600))
	assert.ErrorContains(t, rewriteSection(path, "cost", "text"), path)
	kept, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "no marks", string(kept))
}
