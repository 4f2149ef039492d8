package epoch

// window holds the entries of a bounded range of numbers, [base, end). Numbers never roll over. It grows with what is
// in it, to a power of two, so a pair that does little has little. The zero value is empty and begins at 0.
type window[T any] struct {
	base, end uint64
	slots     []T // entry n is slots[n&(len(slots)-1)]
}

const leastSlots = 2

func (w *window[T]) len() int { return int(w.end - w.base) }

// has says whether there is an entry of that number.
func (w *window[T]) has(n uint64) bool { return n-w.base < w.end-w.base }

// at is the entry of a number that it has.
func (w *window[T]) at(n uint64) *T { return &w.slots[n&uint64(len(w.slots)-1)] }

// reach makes entries up to and including n, which is not below base, and returns that of n. New entries are zero.
func (w *window[T]) reach(n uint64) *T {
	if n >= w.end {
		w.end = n + 1
		if w.len() > len(w.slots) {
			w.grow(n)
		}
	}
	return w.at(n)
}

func (w *window[T]) grow(n uint64) {
	size := max(leastSlots, len(w.slots))
	for uint64(size) < n+1-w.base {
		size *= 2
	}
	slots := make([]T, size)
	for i := w.base; i < w.base+uint64(len(w.slots)); i++ {
		slots[i&uint64(size-1)] = *w.at(i)
	}
	w.slots = slots
}

// advance removes all entries below n, and begins at n if that is beyond them all.
func (w *window[T]) advance(n uint64) {
	var zero T
	for w.base < n && w.base < w.end {
		*w.at(w.base) = zero
		w.base++
	}
	if w.base < n {
		w.base, w.end = n, n
	}
}

// marks are the numbers that have arrived: all below base, and those marked in a bounded range from there. (The window of
// RFC 6479, with its base at what is missing.)
type marks struct {
	base  uint64
	words []uint64 // mark n is bit n%64 of words[n/64 & (len(words)-1)]
}

// get says whether n is marked, or below base.
func (m *marks) get(n uint64) bool {
	if n < m.base {
		return true
	}
	if n-m.base >= m.room() {
		return false
	}
	return m.words[n/64&uint64(len(m.words)-1)]>>(n%64)&1 != 0
}

// room is how far from base marks go, at least: the word that base is in may be partly used.
func (m *marks) room() uint64 {
	if len(m.words) == 0 {
		return 0
	}
	return uint64(len(m.words))*64 - m.base%64
}

// set marks n, which is not below base, and moves base over all that is marked.
func (m *marks) set(n uint64) {
	for n-m.base >= m.room() {
		m.grow()
	}
	m.words[n/64&uint64(len(m.words)-1)] |= 1 << (n % 64)
	for len(m.words) > 0 {
		word := &m.words[m.base/64&uint64(len(m.words)-1)]
		if *word>>(m.base%64)&1 == 0 {
			break
		}
		m.base++
		if m.base%64 == 0 {
			*word = 0
		}
	}
}

func (m *marks) grow() {
	words := make([]uint64, max(1, 2*len(m.words)))
	for i := range uint64(len(m.words)) {
		n := m.base/64 + i
		words[n&uint64(len(words)-1)] = m.words[n&uint64(len(m.words)-1)]
	}
	m.words = words
}

// appendFrom appends the marks from base on as words, without empty ones at the end.
func (m *marks) appendFrom(words []uint64) []uint64 {
	first, shift := m.base/64, m.base%64
	size := uint64(len(m.words))
	from, used := len(words), len(words)
	for i := range size {
		word := m.words[(first+i)&(size-1)] >> shift
		if shift != 0 && i+1 < size {
			word |= m.words[(first+i+1)&(size-1)] << (64 - shift)
		}
		words = append(words, word)
		if word != 0 {
			used = from + int(i) + 1
		}
	}
	return words[:used]
}

// reset forgets all marks.
func (m *marks) reset() {
	m.base = 0
	clear(m.words)
}
