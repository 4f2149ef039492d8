package report

import (
	"strconv"
	"strings"
)

// ramp is a scale of colours for the grey levels of heat maps, of a theme.
type ramp struct {
	Theme  string
	colors []uint32 // red, green and blue, at even distances
}

var (
	lightRamp = ramp{"light", []uint32{0xeef2f6, 0xfbd9b5, 0xf5955b, 0xdd4a26, 0x7d1419}}
	darkRamp  = ramp{"dark", []uint32{0x1c2632, 0x51302e, 0xa93f25, 0xff7145, 0xffe3a8}}
)

// Red, Green and Blue are the tables of an SVG filter. It reaches from grey level 0 to
// 255, and the colours from 0 to greyFull.
func (r ramp) Red() string   { return r.table(16) }
func (r ramp) Green() string { return r.table(8) }
func (r ramp) Blue() string  { return r.table(0) }

func (r ramp) table(shift uint) string {
	const steps = 51 // of 5 levels
	var values []string
	for i := range steps + 1 {
		at := min(float64(i)*255/steps/greyFull, 1) * float64(len(r.colors)-1)
		from := min(int(at), len(r.colors)-2)
		part := func(i int) float64 { return float64(r.colors[i] >> shift & 0xff) }
		value := part(from) + (at-float64(from))*(part(from+1)-part(from))
		values = append(values, strconv.FormatFloat(value/255, 'f', 3, 64))
	}
	return strings.Join(values, " ")
}

// Gradient are the colours as a background of the style sheet.
func (r ramp) Gradient() string {
	var stops []string
	for _, c := range r.colors {
		stops = append(stops, "#"+strconv.FormatUint(uint64(c)|1<<24, 16)[1:])
	}
	return strings.Join(stops, ", ")
}
