package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/cmd/evenkeel/doctor"
)

// TestDoctor looks at the tests' own library, which is not evenkeel's.
func TestDoctor(t *testing.T) {
	got := invoke(t, nil, "doctor", "--json")
	assert.Equal(t, 1, got.status)
	assert.Empty(t, got.stderr)
	var findings []doctor.Finding
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &findings))
	var failed []string
	for _, f := range findings {
		if f.Status == doctor.Fail {
			failed = append(failed, f.Subject)
		}
	}
	assert.Contains(t, failed, "libevenkeel.so")

	got = invoke(t, nil, "doctor")
	assert.Equal(t, 1, got.status)
	assert.Empty(t, got.stderr)
	for _, f := range findings {
		assert.Contains(t, got.stdout, string(f.Status))
		assert.Contains(t, got.stdout, f.Subject)
	}
	assert.Contains(t, got.stdout, "fix: Install evenkeel again, all of it from one build (make install).\n")
	for _, line := range strings.Split(got.stdout, "\n") {
		assert.Equal(t, strings.TrimRight(line, " "), line, "no blanks at the ends of lines")
	}
}

// TestDoctorFindsNoFault has the libraries that make builds.
func TestDoctorFindsNoFault(t *testing.T) {
	built, err := filepath.Abs("../../build/lib/libevenkeel.so")
	require.NoError(t, err)
	if _, err := os.Stat(built); err != nil {
		require.Empty(t, os.Getenv("CI"), "in CI this must run: %v", err)
		t.Skipf("needs make: %v", err)
	}
	got := invoke(t, []string{"EVENKEEL_LIB=" + built}, "doctor", "--json")
	var findings []doctor.Finding
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &findings))
	found := map[string]doctor.Status{}
	for _, f := range findings {
		found[f.Subject] = f.Status
		assert.NotEqual(t, "settings", f.Subject, "EVENKEEL_LIB is no mistake")
	}
	assert.Equal(t, doctor.OK, found["libevenkeel.so"])
	assert.Equal(t, doctor.OK, found["runtime"])
}
