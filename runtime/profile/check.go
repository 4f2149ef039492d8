package profile

import (
	"math"
	"reflect"
	"strconv"

	"github.com/pkg/errors"
)

// MaxRows is the most rows that Timeline.MPI and Timeline.Late have.
const MaxRows = 256

// check says what in the profile contradicts the rest of it, or nil. Whatever
// draws a profile relies on it.
func (p *Profile) check() error {
	for i, rank := range p.Ranks {
		if rank.Node < 0 || rank.Node >= len(p.Nodes) {
			return errors.Errorf("ranks[%d].node is %d, and there are %d nodes", i, rank.Node, len(p.Nodes))
		}
	}
	return p.Timeline.check(len(p.Ranks))
}

func (t *Timeline) check(ranks int) error {
	if len(t.MPI) != len(t.Late) {
		return errors.Errorf("timeline.mpi has %d rows and timeline.late %d", len(t.MPI), len(t.Late))
	}
	if len(t.MPI) > MaxRows {
		return errors.Errorf("timeline.mpi has %d rows, more than the %d there may be", len(t.MPI), MaxRows)
	}
	bins := len(t.Efficiency)
	if len(t.LoadBalance) != bins {
		return errors.Errorf("timeline.efficiency has %d bins and timeline.load_balance %d", bins, len(t.LoadBalance))
	}
	for r := range t.MPI {
		if len(t.MPI[r]) != bins || len(t.Late[r]) != bins {
			return errors.Errorf("row %d of timeline.mpi and timeline.late has %d and %d bins, and timeline.efficiency %d", r, len(t.MPI[r]), len(t.Late[r]), bins)
		}
	}
	if bins > 0 && t.BinWidth <= 0 {
		return errors.Errorf("timeline.bin_width is %g", t.BinWidth)
	}
	if rows := len(t.MPI); rows > 0 {
		if t.Group < 1 || t.Group > ranks || rows != (ranks+t.Group-1)/t.Group {
			return errors.Errorf("timeline has %d rows of %d ranks each, and there are %d ranks", rows, t.Group, ranks)
		}
	}
	return nil
}

// notFinite names the first number in v that is NaN or infinite, with its path
// in the JSON, or gives "". Such numbers cannot be written as JSON.
func notFinite(v reflect.Value, path string) string {
	switch v.Kind() {
	case reflect.Float64:
		if f := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
			return path
		}
	case reflect.Pointer:
		if !v.IsNil() {
			return notFinite(v.Elem(), path)
		}
	case reflect.Slice:
		for i := range v.Len() {
			if where := notFinite(v.Index(i), path+"["+strconv.Itoa(i)+"]"); where != "" {
				return where
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			inner := path
			if name := v.Type().Field(i).Tag.Get("json"); name != "" {
				inner = path + "." + name
				if path == "" {
					inner = name
				}
			}
			if where := notFinite(v.Field(i), inner); where != "" {
				return where
			}
		}
	}
	return ""
}
