package tables

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSettingsTableParses(t *testing.T) {
	settings, err := Settings()
	require.NoError(t, err)
	require.NotEmpty(t, settings)
	seen := map[string]bool{}
	for _, s := range settings {
		assert.False(t, seen[s.Name], "%s stands twice", s.Name)
		seen[s.Name] = true
	}
}

func TestParseSettings(t *testing.T) {
	got, err := parseSettings(`
# a comment
EVENKEEL_OUT  | path          |   |    | where; empty: here
EVENKEEL_NAME | text          |   |    | a name
EVENKEEL_ON   | bool          | 1 |    | 0: off
EVENKEEL_N    | int 1..10     | 5 | ms | how many | or few
EVENKEEL_HOW  | auto|all|none | auto | | how
EVENKEEL_WAYS | set a|b|c     | a,c | | which
EVENKEEL_P    | power 1..10   | 4 | | how many
EVENKEEL_T    | traffic       |   | | which
`)
	require.NoError(t, err)
	assert.Equal(t, []Setting{
		{Name: "EVENKEEL_OUT", Kind: Path, Meaning: "where; empty: here"},
		{Name: "EVENKEEL_NAME", Kind: Text, Meaning: "a name"},
		{Name: "EVENKEEL_ON", Kind: Bool, Default: "1", Meaning: "0: off"},
	}, got[:3])
	assert.Equal(t, Setting{Name: "EVENKEEL_N", Kind: Int, Low: 1, High: 10, Default: "5", Unit: "ms",
		Meaning: "how many | or few"}, got[3])
	assert.Equal(t, []string{"auto", "all", "none"}, got[4].Choices)
	ways := got[5]
	assert.Equal(t, []string{"a", "c"}, ways.Members(ways.Default))
	assert.Equal(t, ways.Choices, ways.Members("all"))
	assert.Empty(t, ways.Members("none"))
	assert.NotNil(t, ways.Members("none"))
	for _, wrong := range []string{"", "a,", "a,d", "all,a", "A"} {
		assert.Nil(t, ways.Members(wrong), wrong)
	}
	assert.Equal(t, Setting{Name: "EVENKEEL_P", Kind: Int, Low: 1, High: 10, Power: true, Default: "4", Meaning: "how many"}, got[6])
	assert.Equal(t, Setting{Name: "EVENKEEL_T", Kind: Traffic, Meaning: "which"}, got[7])
}

func TestParseSettingsRefuses(t *testing.T) {
	for name, row := range map[string]string{
		"a column short":    "EVENKEEL_A | bool | 1 | what",
		"no kind":           "EVENKEEL_A | boolean | 1 | | what",
		"no range":          "EVENKEEL_A | int 1 | 1 | | what",
		"range upside down": "EVENKEEL_A | int 9..1 | 5 | | what",
		"default too large": "EVENKEEL_A | int 1..9 | 10 | | what",
		"default no power":  "EVENKEEL_A | power 1..9 | 6 | | what",
		"default no choice": "EVENKEEL_A | a|b | c | | what",
		"default missing":   "EVENKEEL_A | bool | | | what",
		"foreign name":      "OTHER_A | bool | 1 | | what",
		"no meaning":        "EVENKEEL_A | bool | 1 | | ",
	} {
		_, err := parseSettings("\n" + row)
		require.Error(t, err, name)
		assert.Contains(t, err.Error(), "line 2", name)
	}
}

func TestCheck(t *testing.T) {
	number := Setting{Kind: Int, Low: 1, High: 10, Unit: "ms"}
	choice := Setting{Kind: Choice, Choices: []string{"auto", "all", "none"}}
	flag := Setting{Kind: Bool}
	power := Setting{Kind: Int, Low: 4, High: 64, Power: true}
	traffic := Setting{Kind: Traffic}
	for _, good := range []struct {
		s     Setting
		value string
	}{{number, "1"}, {number, "10"}, {choice, "none"}, {flag, "0"}, {Setting{Kind: Path}, "/x y"}, {Setting{Kind: Text}, "?"},
		{power, "4"}, {power, "64"}, {traffic, "tag=0"}, {traffic, "tag=5-2147483647,comm=a=b,tag=7-7"}} {
		assert.NoError(t, good.s.Check(good.value), good.value)
	}
	for _, bad := range []struct {
		s           Setting
		value, text string
	}{
		{number, "0", `"0" is not a whole number from 1 to 10 (ms)`},
		{number, "11", `"11" is not a whole number from 1 to 10 (ms)`},
		{number, "1e1", `"1e1" is not a whole number from 1 to 10 (ms)`},
		{number, "99999999999999999999", `"99999999999999999999" is not a whole number from 1 to 10 (ms)`},
		{choice, "al", `"al" is not auto, all or none`},
		{flag, "yes", `"yes" is not 0 or 1`},
		{power, "48", `"48" is not a power of two from 4 to 64`},
		{power, "2", `"2" is not a power of two from 4 to 64`},
	} {
		assert.EqualError(t, bad.s.Check(bad.value), bad.text)
	}
	for _, bad := range append([]string{
		"tga=1", "tag", "tag=", "tag=x", "tag=1x", "tag=-1", "tag=+1", "tag= 1", "tag=3-1", "tag=1-", "tag=1-2-3", "tag=2147483648", "comm=", "tag=1,", ",tag=1"},
		strings.Repeat("tag=1,", MostTraffic)+"tag=1") {
		assert.EqualError(t, traffic.Check(bad),
			strconv.Quote(bad)+" is not any of tag=N, tag=N-M and comm=NAME with commas between, 16 at most")
	}
}
