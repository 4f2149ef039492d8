package main

// gups updates random words of a table that lies on all ranks by XOR.
func gups(j *job) (*app, error) {
	bits := 22 - j.shrink
	updates := 1 << (bits - 2)
	share := 1 << (bits - j.bitsOfRanks())
	table, err := j.newWords(share)
	if err != nil {
		return nil, err
	}
	right := make([]uint64, share)
	begin, end := j.part(1 << bits)
	for i := range right {
		right[i] = uint64(begin + i)
	}
	for i := range updates {
		value := mix(uint64(i))
		if index := int(value >> (64 - bits)); index >= begin && index < end {
			right[index-begin] ^= value
		}
	}
	return &app{
		name: "gups", units: updates,
		prepare: func(way int) {
			for i := range table[way].Local() {
				table[way].Local()[i] = uint64(begin + i)
			}
		},
		run: func(way int) error {
			t := table[way]
			first, last := j.part(updates)
			for i := first; i < last; i++ {
				value := mix(uint64(i))
				index := int(value >> (64 - bits))
				if err := t.Xor(index>>(bits-j.bitsOfRanks()), index&(share-1), value); err != nil {
					return err
				}
			}
			return nil
		},
		fence: func(way int) error { return table[way].Fence() },
		check: func(way int) (sum uint64, err error) {
			for i, v := range table[way].Local() {
				if v != right[i] {
					return 0, errWrong
				}
				sum += v * mix(uint64(begin+i))
			}
			return sum, nil
		},
		free: func() error { return freeWords(table) },
	}, nil
}
