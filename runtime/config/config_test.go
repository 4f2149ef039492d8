package config

import (
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"evenkeel/c/tables"
)

func TestDefaults(t *testing.T) {
	for _, environ := range [][]string{nil, {"PATH=/bin", "EVENKEEL_RING=", "evenkeel_ring=1", "no equals sign"}} {
		c, warnings := Load(environ)
		assert.Empty(t, warnings)
		assert.True(t, c.Enable())
		assert.Equal(t, "auto", c.Time())
		assert.Equal(t, 8192, c.Ring())
		assert.Equal(t, 50*time.Millisecond, c.Drain())
	}
	assert.Equal(t, 8192, Config{}.Ring(), "the zero Config holds the defaults")
}

func TestValues(t *testing.T) {
	c, warnings := Load([]string{
		"EVENKEEL_ENABLE=0", "EVENKEEL_OUT=/tmp/a=b", "EVENKEEL_SUMMARY=0", "EVENKEEL_TIME=all",
		"EVENKEEL_RUNTIME=/lib/r.so", "EVENKEEL_WATCH=0", "EVENKEEL_THREADS=3", "EVENKEEL_RING=256",
		"EVENKEEL_HISTORY=1024", "EVENKEEL_DRAIN=7", "EVENKEEL_DRAIN=8"})
	assert.Empty(t, warnings)
	assert.False(t, c.Enable())
	assert.Equal(t, "/tmp/a=b", c.Out())
	assert.False(t, c.Summary())
	assert.Equal(t, "all", c.Time())
	assert.Equal(t, "/lib/r.so", c.Runtime())
	assert.False(t, c.Watch())
	assert.Equal(t, 3, c.Threads())
	assert.Equal(t, 256, c.Ring())
	assert.Equal(t, 1024, c.History())
	assert.Equal(t, 7*time.Millisecond, c.Drain(), "of two, the first counts, as for getenv")
}

// TestEverySettingHasAnAccessor calls, for EVENKEEL_RING, the method Ring, once
// with the default and once with another value.
func TestEverySettingHasAnAccessor(t *testing.T) {
	for _, s := range Settings() {
		short := strings.TrimPrefix(s.Name, prefix)
		name := ""
		for _, word := range strings.Split(short, "_") {
			name += word[:1] + strings.ToLower(word[1:])
		}
		_, exists := reflect.TypeFor[Config]().MethodByName(name)
		require.True(t, exists, "%s has no method Config.%s", s.Name, name)
		call := func(c Config) any {
			return reflect.ValueOf(c).MethodByName(name).Call(nil)[0].Interface()
		}
		byDefault := call(Config{})
		switch s.Kind {
		case tables.Bool:
			assert.Equal(t, s.Default == "1", byDefault, s.Name)
		case tables.Path, tables.Text, tables.Traffic, tables.Choice:
			assert.Equal(t, s.Default, byDefault, s.Name)
		}
		c, warnings := Load([]string{s.Name + "=" + another(s)})
		require.Empty(t, warnings)
		assert.NotEqual(t, byDefault, call(c), "%s is not read from its variable", s.Name)
	}
}

// another returns a valid value of s that is not its default.
func another(s tables.Setting) string {
	switch s.Kind {
	case tables.Int:
		if low := strconv.FormatInt(s.Low, 10); low != s.Default {
			return low
		}
		return strconv.FormatInt(s.High, 10)
	case tables.Path, tables.Text:
		return "/elsewhere"
	case tables.Traffic:
		return "tag=5"
	}
	for _, v := range s.Values() {
		if v != s.Default {
			return v
		}
	}
	return ""
}

func TestWarnings(t *testing.T) {
	for entry, want := range map[string]Warning{
		"EVENKEEL_RINGS=512": {"EVENKEEL_RINGS", "", "EVENKEEL_RING",
			"EVENKEEL_RINGS is not a setting and has no effect; the nearest is EVENKEEL_RING"},
		"EVENKEEL_Time=all": {"EVENKEEL_Time", "", "EVENKEEL_TIME",
			"EVENKEEL_Time is not a setting and has no effect; the nearest is EVENKEEL_TIME"},
		"EVENKEEL_FAST=shadow,barier": {"EVENKEEL_FAST", "shadow,barier", "barrier",
			"EVENKEEL_FAST=shadow,barier: this is not all, none, or any of barrier, shadow, datatype with commas between " +
				"(the nearest is barrier); the default, all, is used"},
		"EVENKEEL_TIME=nome": {"EVENKEEL_TIME", "nome", "none",
			"EVENKEEL_TIME=nome: this is not auto, all or none (the nearest is none); the default, auto, is used"},
		"EVENKEEL_SUMMARY=no": {"EVENKEEL_SUMMARY", "no", "",
			"EVENKEEL_SUMMARY=no: this is not 0 or 1; the default, 1, is used"},
		"EVENKEEL_RING=1000": {"EVENKEEL_RING", "1000", "",
			"EVENKEEL_RING=1000: this is not a power of two from 256 to 1048576 (events); the default, 8192, is used"},
		"EVENKEEL_SHADOW_CONTROL=tga=1": {"EVENKEEL_SHADOW_CONTROL", "tga=1", "",
			"EVENKEEL_SHADOW_CONTROL=tga=1: this is not any of tag=N, tag=N-M and comm=NAME with commas between, 16 at most; " +
				"the default, none, is used"},
		"EVENKEEL_DRAIN=5s": {"EVENKEEL_DRAIN", "5s", "",
			"EVENKEEL_DRAIN=5s: this is not a whole number from 1 to 10000 (ms); the default, 50, is used"},
	} {
		c, warnings := Load([]string{entry, entry})
		require.Len(t, warnings, 1, entry)
		assert.Equal(t, want, warnings[0])
		assert.Equal(t, want.Text, warnings[0].String())
		assert.Equal(t, Config{values: map[string]string{}}, c, "the default is used")
	}
}

// TestLoadAnything holds for every environment: no panic, each number within
// its range, and at most one warning for a variable.
func TestLoadAnything(t *testing.T) {
	names := []string{"HOME", "EVENKEEL_", "EVENKEEL_RINGS"}
	for _, s := range Settings() {
		names = append(names, s.Name)
	}
	rapid.Check(t, func(t *rapid.T) {
		var environ []string
		for range rapid.IntRange(0, 12).Draw(t, "n") {
			value := rapid.OneOf(rapid.String(), rapid.StringMatching(`-?[0-9]{1,25}`)).Draw(t, "value")
			environ = append(environ, rapid.SampledFrom(names).Draw(t, "name")+"="+value)
		}
		c, warnings := Load(environ)
		warned := map[string]bool{}
		for _, w := range warnings {
			assert.False(t, warned[w.Name])
			warned[w.Name] = true
		}
		for _, s := range Settings() {
			if s.Kind == tables.Int {
				n := int64(c.number(s.Name))
				assert.True(t, s.Low <= n && n <= s.High, "%s is %d", s.Name, n)
			}
		}
	})
}

func TestDocumentIsUpToDate(t *testing.T) {
	document, err := os.ReadFile("../../docs/settings.md")
	require.NoError(t, err)
	assert.Equal(t, Markdown(), string(document), "run: go generate ./runtime/config")
	for _, s := range Settings() {
		assert.Contains(t, string(document), "| `"+s.Name+"` | `--"+Flag(s)+"` |")
	}
}
