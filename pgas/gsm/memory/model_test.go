package memory_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"evenkeel/pgas/gsm/memory"
	"evenkeel/pgas/gsm/wire"
)

// shownWindow and taken are what the model knows.
type shownWindow struct {
	place, bytes uint64
	rights       memory.Rights
}

type taken struct {
	bytes uint64 // rounded up to what is the allocation's alone
	shown bool
}

// model is a window table and heap of the simplest kind: it asks a byte at a time.
type model struct {
	space    *memory.Space
	taken    map[uint64]taken
	released []interval // may not be taken before a fence
	denied   map[uint64]memory.Rights
	windows  map[wire.Window]shownWindow
	old      []wire.Window
}

type interval struct{ from, to uint64 }

const modelHeap = 16 * memory.Page

func (m *model) take(t *rapid.T) {
	bytes := rapid.Uint64Range(0, 6*memory.Page).Draw(t, "bytes")
	place, err := m.space.Take(rapid.SampledFrom([]memory.Part{memory.Own, memory.Collective}).Draw(t, "part"), bytes)
	if bytes == 0 {
		if err == nil {
			t.Fatal("no bytes were allocated")
		}
		return
	}
	if err != nil {
		return // whether there is room is not what this model knows
	}
	for at, other := range m.taken {
		if place < at+other.bytes && at < place+bytes {
			t.Fatalf("[%d, +%d) was taken, which overlaps [%d, +%d)", place, bytes, at, other.bytes)
		}
	}
	for _, r := range m.released {
		if place < r.to && r.from < place+bytes {
			t.Fatalf("[%d, +%d) was taken before a fence", place, bytes)
		}
	}
	for i, b := range m.space.Self().Bytes(place, bytes) {
		if b != 0 {
			t.Fatalf("byte %d of new memory is %d", i, b)
		}
	}
	content := m.space.Self().Bytes(place, bytes)
	for i := range content {
		content[i] = 1
	}
	unit := uint64(64)
	if bytes >= memory.Page {
		unit = memory.Page
	}
	m.taken[place] = taken{bytes: (bytes + unit - 1) / unit * unit}
}

// somewhere is a place of an allocation, or near one, or none.
func (m *model) somewhere(t *rapid.T) uint64 {
	places := []uint64{0, 1 << 40}
	for at := range m.taken {
		places = append(places, at)
	}
	slices.Sort(places)
	return rapid.SampledFrom(places).Draw(t, "place")
}

func (m *model) give(t *rapid.T) {
	place := m.somewhere(t)
	known, is := m.taken[place]
	inUse := false
	for _, w := range m.windows {
		inUse = inUse || is && w.bytes > 0 && w.place < place+max(known.bytes, 1) && place < w.place+w.bytes
	}
	err := m.space.Give(place)
	if (err == nil) != (is && !inUse) {
		t.Fatalf("giving back %d (taken %v, in use %v): %v", place, is, inUse, err)
	}
	if err != nil {
		return
	}
	if known.shown {
		m.released = append(m.released, interval{place, place + known.bytes})
	}
	if known.bytes >= memory.Page {
		for page := place / memory.Page; page < (place+known.bytes+memory.Page-1)/memory.Page; page++ {
			delete(m.denied, page)
		}
	}
	delete(m.taken, place)
}

// holding is where the allocation begins that holds these bytes as a whole.
func (m *model) holding(place, bytes uint64) (start uint64, is bool) {
	for at, known := range m.taken {
		if at <= place && place-at <= known.bytes && bytes <= known.bytes-(place-at) && (bytes > 0 || place-at < known.bytes) {
			return at, true
		}
	}
	return 0, false
}

func (m *model) show(t *rapid.T) {
	place := m.somewhere(t)
	length := m.taken[place].bytes
	place += rapid.Uint64Range(0, length+2).Draw(t, "offset")
	bytes := rapid.Uint64Range(0, length+2).Draw(t, "bytes")
	rights := memory.Rights(rapid.Uint32Range(0, 8).Draw(t, "rights"))
	w, err := m.space.Show(memory.Own, place, bytes, rights)
	start, fits := m.holding(place, bytes)
	allowed := (bytes == 0 || fits) && rights <= memory.All
	if full := len(m.windows)+len(m.old) >= 512; (err == nil) != allowed && !(full && allowed) {
		t.Fatalf("showing [%d, +%d) as %v: %v", place, bytes, rights, err)
	}
	if err != nil {
		return
	}
	m.windows[w] = shownWindow{place, bytes, rights}
	if bytes > 0 {
		m.taken[start] = taken{bytes: m.taken[start].bytes, shown: true}
	}
}

func (m *model) window(t *rapid.T) wire.Window {
	all := []wire.Window{0, 5, 1 << 31}
	for w := range m.windows {
		all = append(all, w, w+1024)
	}
	all = append(all, m.old...)
	slices.Sort(all)
	return rapid.SampledFrom(all).Draw(t, "window")
}

func (m *model) hide(t *rapid.T) {
	w := m.window(t)
	_, open := m.windows[w]
	if err := m.space.Hide(w); (err == nil) != open {
		t.Fatalf("hiding %d: %v", w, err)
	}
	if open {
		delete(m.windows, w)
		m.old = append(m.old, w)
	}
}

func (m *model) guard(t *rapid.T) {
	place := m.somewhere(t)
	known, is := m.taken[place]
	pages := rapid.Uint64Range(1, 3).Draw(t, "pages")
	rights := memory.Rights(rapid.Uint32Range(0, 7).Draw(t, "rights"))
	err := m.space.Guard(place, pages*memory.Page, rights)
	fits := is && known.bytes >= memory.Page && pages <= (known.bytes+memory.Page-1)/memory.Page
	if (err == nil) != fits {
		t.Fatalf("guarding %d pages at %d: %v", pages, place, err)
	}
	for page := place / memory.Page; err == nil && page < place/memory.Page+pages; page++ {
		m.denied[page] = memory.All &^ rights
	}
}

func (m *model) fence(*rapid.T) {
	m.space.Settle(m.space.Mark())
	m.released = nil
}

// admit compares the table's answer, and the short check's, with a look at every byte.
func (m *model) admit(t *rapid.T) {
	w := m.window(t)
	known, open := m.windows[w]
	kind := memory.Kind(rapid.IntRange(0, 2).Draw(t, "kind"))
	offset := rapid.OneOf(rapid.Uint64Range(0, known.bytes+9), rapid.Uint64()).Draw(t, "offset")
	bytes := rapid.OneOf(rapid.SampledFrom([]uint64{0, 4, 8}), rapid.Uint64Range(0, known.bytes+1), rapid.Uint64()).Draw(t, "bytes")
	want := wire.OK
	switch {
	case !open:
		want = wire.NoWindow
	case offset > known.bytes || bytes > known.bytes-offset:
		want = wire.Range
	case known.rights>>kind&1 == 0:
		want = wire.Protection
	default:
		for i := range bytes {
			if m.denied[(known.place+offset+i)/memory.Page]>>kind&1 != 0 {
				want = wire.Protection
			}
		}
	}
	area := m.space.Self()
	at, why := area.Admit(kind, w, offset, bytes)
	if why != want {
		t.Fatalf("%d bytes at %d of window %d, %+v, kind %d: %v, not %v", bytes, offset, w, known, kind, why, want)
	}
	for shift, width := range map[int]uint64{2: 4, 3: 8} {
		short := area.Word(kind, w, offset, shift)
		if bytes == width && short != nil && (want != wire.OK || offset%width != 0 || short != at) {
			t.Fatalf("a word of %d bytes at %d of window %d got through: %v", width, offset, w, want)
		}
	}
}

func checkTable(t *rapid.T) {
	i, err := memory.Invite(1, modelHeap)
	if err != nil {
		t.Fatal(err)
	}
	s, err := memory.Enter(i, 0)
	i.Uninvite()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Exit()
	m := &model{space: s, taken: map[uint64]taken{}, denied: map[uint64]memory.Rights{}, windows: map[wire.Window]shownWindow{}}
	t.Repeat(map[string]func(*rapid.T){
		"take": m.take, "give": m.give, "show": m.show, "hide": m.hide, "guard": m.guard, "fence": m.fence, "admit": m.admit,
	})
}

// The window table and the heaps against the model.
func TestTableAgainstModel(t *testing.T) { rapid.Check(t, checkTable) }

func FuzzTable(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkTable)) }
