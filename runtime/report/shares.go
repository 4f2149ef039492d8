package report

import (
	"github.com/jedib0t/go-pretty/v6/text"

	"evenkeel/runtime/profile"
)

// shares divide the core time, in the order in which they are drawn.
type shares []share

// share is one part of the core time.
type share struct {
	name   string
	class  string // its colour on the page
	glyph  string // its sign on a terminal without colours
	colors text.Colors
	time   float64 // seconds
}

func sharesOf(s *profile.Split) shares {
	return shares{
		{"useful", "useful", "█", green, s.Useful},
		{"waiting", "late", "▒", red, s.Late},
		{"transfer", "transfer", "░", yellow, s.Transfer},
		{"MPI", "own", "·", blue, s.Own},
		{"unknown", "unsplit", "?", faint, s.Unsplit},
	}
}

// whole is the sum of the parts; a part below zero, which an estimate may be,
// counts as nothing.
func (shares shares) whole() float64 {
	sum := 0.0
	for _, share := range shares {
		sum += max(share.time, 0)
	}
	return sum
}
