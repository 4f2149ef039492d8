package config

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/agext/levenshtein"

	"evenkeel/c/tables"
)

// Warning says what is wrong with one environment variable, and what holds
// instead.
type Warning struct {
	Name    string // of the variable
	Value   string // that it has; empty if the name is what is wrong
	Nearest string // valid name, or value, most like it; empty where none is
	Text    string // one sentence for people
}

// String returns the sentence.
func (w Warning) String() string { return w.Text }

var told sync.Once

// Tell writes the warnings to stderr, if this process is the one of its job that tells them. Its first
// call in a process alone does so: where the run is recorded, the runtime's in MPI_Init. Safe for concurrent use.
func Tell(warnings []Warning, tells bool) {
	told.Do(func() {
		if !tells {
			return
		}
		for _, w := range warnings {
			fmt.Fprintf(os.Stderr, "evenkeel: %s\n", w)
		}
	})
}

func unknownName(name string) Warning {
	var names []string
	for _, s := range table {
		names = append(names, s.Name)
	}
	near := nearest(name, names)
	return Warning{Name: name, Nearest: near,
		Text: fmt.Sprintf("%s is not a setting and has no effect; the nearest is %s", name, near)}
}

func badValue(s tables.Setting, value string) Warning {
	w := Warning{Name: s.Name, Value: value}
	// Every word is equally far from 0 and 1; of more choices one can be meant.
	switch s.Kind {
	case tables.Choice:
		w.Nearest = nearest(value, s.Values())
	case tables.Set:
		for _, word := range strings.Split(value, ",") {
			if !slices.Contains(s.Choices, word) {
				w.Nearest = nearest(word, s.Values())
				break
			}
		}
	}
	hint := ""
	if w.Nearest != "" {
		hint = fmt.Sprintf(" (the nearest is %s)", w.Nearest)
	}
	normal := s.Default
	if normal == "" {
		normal = "none"
	}
	w.Text = fmt.Sprintf("%s=%s: this is not %s%s; the default, %s, is used", s.Name, value, s.Allowed(), hint, normal)
	return w
}

// nearest returns the candidate at the smallest edit distance from text, the
// first of those equally near.
func nearest(text string, candidates []string) string {
	best, distance := "", math.MaxInt
	for _, c := range candidates {
		d := levenshtein.Distance(strings.ToUpper(text), strings.ToUpper(c), nil)
		if d < distance {
			best, distance = c, d
		}
	}
	return best
}
