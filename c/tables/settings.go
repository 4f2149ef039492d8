// Package tables holds the two tables that C and Go share: every MPI function
// (mpi.table) and every setting (settings.table). Code generators, the command
// line and the documentation read them here and nowhere else.
package tables

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/pkg/errors"
)

//go:embed settings.table
var settingsTable string

// SettingKind is the type of a setting's value.
type SettingKind int

// The kinds of settings.
const (
	Path    SettingKind = iota // a file or directory; empty: the library chooses
	Text                       // any text
	Bool                       // 0 or 1
	Int                        // a whole number from Low to High
	Choice                     // one of Choices
	Set                        // any of Choices with commas between, all, or none
	Traffic                    // tag=N, tag=N-M and comm=NAME with commas between; empty: none
)

// MostTraffic is how many words the value of a Traffic may have.
const MostTraffic = 16

// Setting is one environment variable that evenkeel obeys.
type Setting struct {
	Name    string // "EVENKEEL_RING"
	Kind    SettingKind
	Low     int64    // of an Int, included
	High    int64    // of an Int, included
	Power   bool     // of an Int: a power of two
	Choices []string // of a Choice or a Set
	Default string   // always a valid value, or empty for a Path or a Text
	Unit    string   // "ms", "events"; empty for a setting that has none
	Meaning string
}

// Settings returns the settings of settings.table in their order.
func Settings() ([]Setting, error) {
	return parseSettings(settingsTable)
}

func parseSettings(table string) ([]Setting, error) {
	var settings []Setting
	for n, line := range strings.Split(table, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		s, err := parseSetting(line)
		if err != nil {
			return nil, errors.Wrapf(err, "settings.table line %d", n+1)
		}
		settings = append(settings, s)
	}
	return settings, nil
}

func parseSetting(line string) (Setting, error) {
	columns := splitColumns(line)
	if len(columns) != 5 {
		return Setting{}, errors.Errorf("%d columns; want name | kind | default | unit | meaning", len(columns))
	}
	s := Setting{Name: columns[0], Default: columns[2], Unit: columns[3], Meaning: columns[4]}
	if err := s.parseKind(columns[1]); err != nil {
		return Setting{}, errors.Wrap(err, s.Name)
	}
	if !strings.HasPrefix(s.Name, "EVENKEEL_") || s.Meaning == "" {
		return Setting{}, errors.Errorf("%s: a setting has a name that begins with EVENKEEL_ and a meaning", s.Name)
	}
	mayBeEmpty := s.Kind == Path || s.Kind == Text || s.Kind == Traffic
	if !mayBeEmpty || s.Default != "" {
		if err := s.Check(s.Default); err != nil {
			return Setting{}, errors.Wrapf(err, "%s: the default", s.Name)
		}
	}
	return s, nil
}

// splitColumns cuts at the first four bars that have blanks around them: a bar
// without is part of a choice, as in auto|all|none.
func splitColumns(line string) []string {
	var columns []string
	padded := " " + line + " "
	start := 0
	for i := 1; i < len(padded)-1 && len(columns) < 4; i++ {
		if padded[i] == '|' && unicode.IsSpace(rune(padded[i-1])) && unicode.IsSpace(rune(padded[i+1])) {
			columns = append(columns, strings.TrimSpace(padded[start:i]))
			start = i + 1
		}
	}
	return append(columns, strings.TrimSpace(padded[start:]))
}

func (s *Setting) parseKind(text string) error {
	switch {
	case text == "path":
		s.Kind = Path
	case text == "text":
		s.Kind = Text
	case text == "traffic":
		s.Kind = Traffic
	case text == "bool":
		s.Kind = Bool
	case strings.HasPrefix(text, "int "), strings.HasPrefix(text, "power "):
		s.Kind = Int
		kind, bounds, _ := strings.Cut(text, " ")
		s.Power = kind == "power"
		low, high, found := strings.Cut(strings.TrimSpace(bounds), "..")
		var errLow, errHigh error
		s.Low, errLow = strconv.ParseInt(low, 10, 64)
		s.High, errHigh = strconv.ParseInt(high, 10, 64)
		if !found || errLow != nil || errHigh != nil || s.Low > s.High {
			return errors.Errorf("%q is not `%s LOWEST..HIGHEST`", text, kind)
		}
	case strings.HasPrefix(text, "set "):
		s.Kind = Set
		s.Choices = strings.Split(strings.TrimSpace(text[len("set "):]), "|")
	case strings.Contains(text, "|"):
		s.Kind = Choice
		s.Choices = strings.Split(text, "|")
	default:
		return errors.Errorf("%q is not a kind: path, text, traffic, bool, int LOWEST..HIGHEST, power LOWEST..HIGHEST, a|b|c or set a|b|c", text)
	}
	return nil
}

// Check returns nil if value is one that the setting can have, else an error
// that says which values it can.
func (s Setting) Check(value string) error {
	switch s.Kind {
	case Bool, Choice:
		for _, v := range s.Values() {
			if v == value {
				return nil
			}
		}
	case Set:
		if s.Members(value) != nil {
			return nil
		}
	case Int:
		n, err := strconv.ParseInt(value, 10, 64)
		if err == nil && n >= s.Low && n <= s.High && (!s.Power || n&(n-1) == 0) {
			return nil
		}
	case Traffic:
		words := strings.Split(value, ",")
		if len(words) <= MostTraffic && !slices.ContainsFunc(words, isNoTraffic) {
			return nil
		}
	default:
		return nil
	}
	return errors.Errorf("%q is not %s", value, s.Allowed())
}

// isNoTraffic is true for what is neither comm=NAME, tag=N nor tag=N-M.
func isNoTraffic(word string) bool {
	kind, value, _ := strings.Cut(word, "=")
	if kind == "comm" {
		return value == ""
	}
	first, last, isRange := strings.Cut(value, "-")
	low, err := strconv.ParseUint(first, 10, 31)
	high := low
	if err == nil && isRange {
		high, err = strconv.ParseUint(last, 10, 31)
	}
	return kind != "tag" || err != nil || low > high
}

// Members are the choices that a value of a Set stands for: not nil, but empty
// for none; nil if the Set can't have that value.
func (s Setting) Members(value string) []string {
	switch value {
	case "all":
		return s.Choices
	case "none":
		return []string{}
	}
	members := strings.Split(value, ",")
	for _, member := range members {
		if !slices.Contains(s.Choices, member) {
			return nil
		}
	}
	return members
}

// Values lists the values of a Bool or a Choice, and the words that those of a
// Set are made of. It is nil for other kinds.
func (s Setting) Values() []string {
	switch s.Kind {
	case Bool:
		return []string{"0", "1"}
	case Choice:
		return s.Choices
	case Set:
		return append([]string{"all", "none"}, s.Choices...)
	}
	return nil
}

// Allowed says in words which values the setting can have: "a whole number
// from 1 to 10000 (ms)".
func (s Setting) Allowed() string {
	switch s.Kind {
	case Path:
		return "a path"
	case Text:
		return "any text"
	case Traffic:
		return "any of tag=N, tag=N-M and comm=NAME with commas between, " + strconv.Itoa(MostTraffic) + " at most"
	case Int:
		allowed := "a whole number from "
		if s.Power {
			allowed = "a power of two from "
		}
		allowed += strconv.FormatInt(s.Low, 10) + " to " + strconv.FormatInt(s.High, 10)
		if s.Unit != "" {
			allowed += " (" + s.Unit + ")"
		}
		return allowed
	}
	if s.Kind == Set {
		return "all, none, or any of " + strings.Join(s.Choices, ", ") + " with commas between"
	}
	values := s.Values()
	last := len(values) - 1
	return strings.Join(values[:last], ", ") + " or " + values[last]
}
