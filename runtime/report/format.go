package report

import (
	"math"
	"strconv"
	"strings"
	"unicode"
)

// unit is a span of time with its sign.
type unit struct {
	size float64 // seconds
	name string
}

var units = []unit{{1e-9, "ns"}, {1e-6, "µs"}, {1e-3, "ms"}, {1, "s"}, {60, "min"}, {3600, "h"}}

// seconds writes a time with three significant digits in the unit that suits
// it: 812 µs, 36.4 ms, 5.21 s, 12.3 min.
func seconds(t float64) string {
	size := math.Abs(t)
	if size < 0.5e-9 {
		return "0 s"
	}
	// Seconds are used up to ten minutes, minutes up to two hours.
	switch {
	case size >= 7200:
		return inUnit(t, units[5])
	case size >= 600:
		return inUnit(t, units[4])
	}
	best := units[0]
	for _, u := range units[:4] {
		if size >= u.size*0.9995 {
			best = u
		}
	}
	return inUnit(t, best)
}

func inUnit(t float64, u unit) string {
	return digits(t/u.size) + " " + u.name
}

// within writes the error of a time: ±12 ms, or nothing where there is none.
func within(deviation float64) string {
	if deviation == 0 {
		return ""
	}
	return "±" + seconds(deviation)
}

// digits writes a number with three significant digits and no exponent, and
// groups the thousands of a larger one.
func digits(x float64) string {
	size := math.Abs(x)
	switch {
	case size >= 1e15:
		return strconv.FormatFloat(x, 'g', 3, 64)
	case size >= 999.5:
		return count(int64(math.Round(x)))
	case size >= 99.95:
		return strconv.FormatFloat(x, 'f', 0, 64)
	case size >= 9.995:
		return strconv.FormatFloat(x, 'f', 1, 64)
	default:
		return strconv.FormatFloat(x, 'f', 2, 64)
	}
}

// percent writes a share: 58%, 3.1%, 0.04%.
func percent(share float64) string {
	x := share * 100
	switch size := math.Abs(x); {
	case size >= 1e6:
		return strconv.FormatFloat(x, 'g', 3, 64) + "%"
	case size >= 9.95:
		return strconv.FormatFloat(x, 'f', 0, 64) + "%"
	case size >= 0.095:
		return strconv.FormatFloat(x, 'f', 1, 64) + "%"
	case size >= 0.005:
		return strconv.FormatFloat(x, 'f', 2, 64) + "%"
	default:
		return "0%"
	}
}

// efficiency writes a share that may be unknown.
func efficiency(share *float64) string {
	if share == nil {
		return "unknown"
	}
	return percent(*share)
}

// count writes a whole number with its thousands grouped: 12,480.
func count(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	var out strings.Builder
	for i, digit := range s {
		if i > 0 && (len(s)-i)%3 == 0 {
			out.WriteByte(',')
		}
		out.WriteRune(digit)
	}
	return sign + out.String()
}

// brief writes a whole number in at most nine characters: 1,382,400, 18.4 M.
func brief(n int64) string {
	switch size := math.Abs(float64(n)); {
	case size >= 1e13:
		return strconv.FormatFloat(float64(n), 'g', 3, 64)
	case size >= 1e10:
		return digits(float64(n)/1e9) + " G"
	case size >= 1e7:
		return digits(float64(n)/1e6) + " M"
	default:
		return count(n)
	}
}

// volume writes a size in the binary unit that suits it: 1.50 MiB.
func volume(n int64) string {
	size := float64(n)
	for _, name := range []string{"B", "KiB", "MiB", "GiB", "TiB"} {
		if math.Abs(size) < 1024 {
			if name == "B" {
				return strconv.FormatInt(n, 10) + " B"
			}
			return digits(size) + " " + name
		}
		size /= 1024
	}
	return digits(size) + " PiB"
}

// plural writes "1 rank", "4 ranks".
func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return count(n) + " " + noun + "s"
}

// part is the share that x has of whole; 0 of nothing.
func part(x, whole float64) float64 {
	if share := x / whole; !math.IsNaN(share) && !math.IsInf(share, 0) {
		return share
	}
	return 0
}

// clean makes a name fit for a terminal and a line: what is not printable, as
// an escape sequence or a line break, becomes a question mark.
func clean(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) && r != unicode.ReplacementChar {
			return r
		}
		return '?'
	}, name)
}
