package segment

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// recording is a segment in which a part of each table of every rank is in use
// and holds random words.
func recording(t require.TestingT, ranks, threads int, seed uint64) *Segment {
	s, err := Blank(Header{
		LocalRanks: uint32(ranks), WorldSize: uint32(ranks), ThreadSlots: 4, Accounts: 16, RingEvents: 64,
		HistoryEvents: 300, Members: 100, World: 1, Nodes: 1, SampleSeed: seed,
	})
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(seed, 0))
	for i := range ranks {
		a := s.Area(i)
		fill(random, view[uint64](s.memory, pageSize+uintptr(i)*s.layout.area, 40))
		a.Rank.Modules, a.Rank.Comms = random.Uint32N(5), random.Uint32N(50)
		a.Rank.Regions, a.Rank.Members = random.Uint32N(9), random.Uint32N(101)
		a.Rank.Threads, a.Rank.HistoryCount = uint32(threads), random.Uint64N(80)
		a = s.Area(i)
		fillAll(random, a.Modules)
		fillAll(random, a.Comms)
		fillAll(random, a.Regions)
		fillAll(random, a.Bins[:random.IntN(80)])
		fillAll(random, a.History[:a.Rank.HistoryCount])
		for t := range a.Threads {
			fillAll(random, a.Threads[t].Accounts[:random.IntN(16)])
			a.Threads[t].RingHead, a.Threads[t].RingTail = 7, 7
		}
	}
	return s
}

func fill(random *rand.Rand, words []uint64) {
	for i := range words {
		words[i] = random.Uint64()
	}
}

func fillAll[T any](random *rand.Rand, of []T) {
	if len(of) == 0 {
		return
	}
	var zero T
	fill(random, unsafe.Slice((*uint64)(unsafe.Pointer(&of[0])), len(of)*int(unsafe.Sizeof(zero))/8))
}

// requireSame compares all that the views of two segments show, but for rings.
func requireSame(t require.TestingT, a, b *Segment) {
	require.Equal(t, *a.Header, *b.Header)
	for i := range int(a.Header.LocalRanks) {
		x, y := a.Area(i), b.Area(i)
		require.Equal(t, *x.Rank, *y.Rank)
		require.Equal(t, x.Modules, y.Modules)
		require.Equal(t, x.Comms, y.Comms)
		require.Equal(t, x.Members, y.Members)
		require.Equal(t, x.Regions, y.Regions)
		require.Equal(t, x.Bins, y.Bins)
		require.Equal(t, x.History, y.History)
		require.Len(t, y.Threads, len(x.Threads))
		for n := range x.Threads {
			require.Equal(t, *x.Threads[n].Thread, *y.Threads[n].Thread)
			require.Equal(t, bytesOf(x.Threads[n].Accounts), bytesOf(y.Threads[n].Accounts))
		}
	}
}

// bytesOf compares accounts bit by bit: their variance may be no number.
func bytesOf(accounts []Account) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&accounts[0])), len(accounts)*int(unsafe.Sizeof(accounts[0])))
}

func encoded(t require.TestingT, s *Segment) []byte {
	var b bytes.Buffer
	require.NoError(t, s.Encode(&b))
	return b.Bytes()
}

func TestImageHoldsTheSegment(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := recording(t, rapid.IntRange(1, 3).Draw(t, "ranks"), rapid.IntRange(0, 4).Draw(t, "threads"), rapid.Uint64().Draw(t, "seed"))
		defer s.Close()
		back, err := Decode(bytes.NewReader(encoded(t, s)))
		require.NoError(t, err)
		defer back.Close()
		requireSame(t, s, back)
	})
}

func TestCopyHoldsTheSegmentAndItsRings(t *testing.T) {
	s := recording(t, 2, 3, 1)
	defer s.Close()
	ring := s.Area(1).Threads[2].Ring
	ring[5].Stamp, ring[63].Bytes = 6, 7
	c, err := s.Copy()
	require.NoError(t, err)
	defer c.Close()
	requireSame(t, s, c)
	assert.Equal(t, ring, c.Area(1).Threads[2].Ring)
	c.Area(0).Rank.Pid++
	assert.NotEqual(t, c.Area(0).Rank.Pid, s.Area(0).Rank.Pid, "the copy is private")
}

func TestEventsInTheRingsAreLostToAnImage(t *testing.T) {
	s := recording(t, 1, 1, 1)
	defer s.Close()
	s.Area(0).Threads[0].RingHead += 5
	back, err := Decode(bytes.NewReader(encoded(t, s)))
	require.NoError(t, err)
	defer back.Close()
	assert.Equal(t, uint64(5), back.Area(0).Threads[0].RingLost)
	assert.Equal(t, back.Area(0).Threads[0].RingHead, back.Area(0).Threads[0].RingTail)
}

func TestAnImageTakesNoRoomForWhatWasNotUsed(t *testing.T) {
	s, err := Blank(Header{LocalRanks: 64, ThreadSlots: 64, Accounts: 512, RingEvents: 8192, HistoryEvents: 65536, Members: 16384})
	require.NoError(t, err)
	defer s.Close()
	assert.Less(t, len(encoded(t, s)), 4096)
}

// runs packs the inside of an image.
func runs(t require.TestingT, plain []byte) []byte {
	b := bytes.NewBufferString(imageMagic)
	z := gzip.NewWriter(b)
	_, err := z.Write(plain)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return b.Bytes()
}

// plainOf unpacks the inside of an image.
func plainOf(t require.TestingT, image []byte) []byte {
	z, err := gzip.NewReader(bytes.NewReader(image[len(imageMagic):]))
	require.NoError(t, err)
	plain, err := io.ReadAll(z)
	require.NoError(t, err)
	return plain
}

func TestDamagedImagesAreNamed(t *testing.T) {
	s := recording(t, 1, 1, 3)
	defer s.Close()
	image := encoded(t, s)
	plain := plainOf(t, image)
	changed := func(at int, value uint64) []byte {
		c := bytes.Clone(plain)
		binary.LittleEndian.PutUint64(c[at:], value)
		return runs(t, c)
	}
	flipped := bytes.Clone(image)
	flipped[len(flipped)-6] ^= 1 // in gzip's checksum
	const header = 16            // behind the head of the first run
	for problem, damaged := range map[string][]byte{
		"not a node image of evenkeel":             []byte("\x89PNG\r\n\x1a\n and so on and so on"),
		"a truncated node image: it was cut short": image[:len(image)/2],
		"a damaged node image: gzip":               flipped,
		"does not begin with a header":             changed(0, 4096),
		"an impossible size":                       changed(header+16, 1<<50),
		"a run beyond its end":                     changed(header+pageSize+8, 1<<40),
		"not a node segment":                       changed(header, 1),
		"of layout 77":                             changed(header+8, 77),
		"header names impossible lengths":          changed(header+32, 0),
		"lengths do not add up":                    changed(header+24, 4096),
		"was cut short, as by a full":              runs(t, plain[:len(plain)-3]),
		"or run the job again":                     runs(t, nil),
		"a damaged node image: unexpected EOF":     []byte(imageMagic + "\x1f\x8b\x08"),
		"not a node image of evenkeel, or one of":  nil,
	} {
		_, err := Decode(bytes.NewReader(damaged))
		assert.ErrorContains(t, err, problem)
	}
}

// use looks at everything that the views show and writes an image of it.
func use(s *Segment) {
	for i := range int(s.Header.LocalRanks) {
		a := s.Area(i)
		sum := byte(0)
		for t := range a.Threads {
			sum += bytesOf(a.Threads[t].Accounts)[0] + byte(a.Threads[t].Ring[len(a.Threads[t].Ring)-1].Stamp)
		}
		for _, m := range a.Modules {
			sum += byte(len(Text(m.Path[:])))
		}
	}
	s.Encode(io.Discard)
}

// FuzzDecode takes the inside of an image, so that it gets past gzip.
func FuzzDecode(f *testing.F) {
	s, err := Blank(Header{LocalRanks: 1, ThreadSlots: 1, Accounts: 1, RingEvents: 1, HistoryEvents: 1})
	require.NoError(f, err)
	s.Area(0).Rank.Threads = 1
	s.Area(0).Rank.HistoryCount = 1
	f.Add(plainOf(f, encoded(f, s)))
	f.Add(plainOf(f, encoded(f, s))[:5000])
	s.Close()
	f.Fuzz(func(t *testing.T, plain []byte) {
		s, err := decodeRuns(bytes.NewReader(plain))
		if err != nil {
			return
		}
		defer s.Close()
		if s.Header.SegmentSize < 1<<26 { // looking through a large one takes long, not more
			use(s)
		}
	})
}

// FuzzDecodeImage takes an image as it is on disk.
func FuzzDecodeImage(f *testing.F) {
	s := recording(f, 1, 1, 4)
	f.Add(encoded(f, s))
	s.Close()
	f.Fuzz(func(_ *testing.T, image []byte) {
		if s, err := Decode(bytes.NewReader(image)); err == nil {
			s.Close()
		}
	})
}
