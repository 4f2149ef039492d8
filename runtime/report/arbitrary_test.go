package report

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"evenkeel/runtime/profile"
	"evenkeel/runtime/report/draw"
)

// arbitrary is any profile that is read without an error, however senseless.
func arbitrary(t *rapid.T) *profile.Profile {
	p := new(profile.Profile)
	fill(t, reflect.ValueOf(p).Elem())
	p.Format, p.Version = profile.Format, profile.Version
	if len(p.Nodes) == 0 {
		p.Ranks = nil
	}
	for i := range p.Ranks {
		p.Ranks[i].Node = rapid.IntRange(0, len(p.Nodes)-1).Draw(t, "node")
	}
	bins := rapid.IntRange(0, 5).Draw(t, "bins")
	p.Timeline = profile.Timeline{BinWidth: rapid.Float64Range(1e-300, 1e300).Draw(t, "width"), Group: 1}
	for range p.Ranks {
		p.Timeline.MPI = append(p.Timeline.MPI, floats(t, bins))
		p.Timeline.Late = append(p.Timeline.Late, floats(t, bins))
	}
	p.Timeline.Efficiency, p.Timeline.LoadBalance = floats(t, bins), floats(t, bins)
	data, err := json.Marshal(p)
	require.NoError(t, err)
	read, err := profile.Decode(data)
	require.NoError(t, err)
	return read
}

func floats(t *rapid.T, n int) []float64 {
	return rapid.SliceOfN(rapid.Float64Range(-1e308, 1e308), n, n).Draw(t, "floats")
}

func fill(t *rapid.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "MPI_Barrier", "constant", "split", hostile,
			"a name that is quite long and goes on and on until it is far beyond every width that a line of the summary has"})).Draw(t, "string"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.OneOf(rapid.Int64(), rapid.Int64Range(0, 10)).Draw(t, "int"))
	case reflect.Uint64:
		v.SetUint(rapid.Uint64().Draw(t, "uint"))
	case reflect.Float64:
		v.SetFloat(rapid.OneOf(rapid.Float64Range(-1e308, 1e308), rapid.Float64Range(0, 2), rapid.Just(0.0)).Draw(t, "float"))
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "null") {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem())
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), rapid.IntRange(0, 4).Draw(t, "length"), 4))
		for i := range v.Len() {
			fill(t, v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	}
}

// drawEverything puts a profile through every form of report.
func drawEverything(t require.TestingT, p *profile.Profile) {
	require.NoError(t, Summary(io.Discard, p, Options{Color: true, Dir: "d"}))
	require.NoError(t, Text(io.Discard, p, false))
	var page bytes.Buffer
	require.NoError(t, HTML(&page, p, draw.SVG))
	_, rest, found := bytes.Cut(page.Bytes(), []byte(`<script type="application/json" id="data">`))
	require.True(t, found)
	data, _, _ := bytes.Cut(rest, []byte("</script>"))
	require.True(t, json.Valid(data), "what the pictures are drawn from: %.200s", data)
}

func TestEveryProfileIsDrawn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { drawEverything(t, arbitrary(t)) })
}

func FuzzReports(f *testing.F) {
	data, err := json.Marshal(job{seed: 9, ranks: 2, nodes: 2, bins: 2, elapsed: 1e-7, skew: 5}.profile())
	require.NoError(f, err)
	f.Add(data)
	f.Add([]byte(`{"format":"evenkeel-profile","version":1}`))
	f.Add([]byte(`{"format":"evenkeel-profile","version":1,"nodes":[null],"ranks":[{"useful":1e308,"mpi":1e308},null],"call_sites":[null],"culprits":[null],"worst_operations":[{"arrivals":[null]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if p, err := profile.Decode(data); err == nil {
			drawEverything(t, p)
		}
	})
}
