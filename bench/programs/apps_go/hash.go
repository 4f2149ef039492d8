package main

// table is a hash table of keys and sums with open addressing, whose slots lie on all ranks.
type table struct {
	words
	bits, bitsOfRanks int
}

// place is where a slot's key is; its sum follows.
func (t table) place(slot int) (task, word int) {
	bits := t.bits - t.bitsOfRanks
	return slot >> bits, 2 * (slot & (1<<bits - 1))
}

// add adds to the sum of a key, which is not 0.
func (t table) add(key, value uint64) error {
	for slot := int(key >> (64 - t.bits)); ; slot = (slot + 1) & (1<<t.bits - 1) {
		task, word := t.place(slot)
		old, err := t.CompareAndSwap(task, word, 0, key)
		if err != nil {
			return err
		}
		if old == 0 || old == key {
			return t.Add(task, word+1, value)
		}
	}
}

// look returns the sum of a key, 0 if it is not there.
func (t table) look(key uint64) (uint64, error) {
	for slot := int(key >> (64 - t.bits)); ; slot = (slot + 1) & (1<<t.bits - 1) {
		task, word := t.place(slot)
		switch found, err := t.Get(task, word); {
		case err != nil || found == 0:
			return 0, err
		case found == key:
			return t.Get(task, word+1)
		}
	}
}

// hash fills half of a table's slots, each key by two additions, and looks up as many keys as there are slots, half of them
// in vain.
func hash(j *job) (*app, error) {
	bits := 18 - j.shrink
	slots := 1 << bits
	keys := slots / 2
	memory, err := j.newWords(2 * slots / j.ranks)
	if err != nil {
		return nil, err
	}
	right, found := make([]uint64, slots), make([]uint64, slots)
	for i := range slots {
		right[i%keys] += uint64(i) + 1
	}
	begin, end := j.part(slots)
	return &app{
		name: "hash", units: 2 * slots,
		prepare: func(way int) {
			clear(memory[way].Local())
			clear(found)
		},
		run: func(way int) error {
			t := table{memory[way], bits, j.bitsOfRanks()}
			for i := begin; i < end; i++ {
				if err := t.add(mix(uint64(i%keys)), uint64(i)+1); err != nil {
					return err
				}
			}
			if err := t.Fence(); err != nil {
				return err
			}
			for i := begin; i < end; i++ {
				if found[i], err = t.look(mix(uint64(i))); err != nil {
					return err
				}
			}
			return nil
		},
		fence: func(way int) error { return memory[way].Fence() },
		check: func(int) (sum uint64, err error) {
			for i := begin; i < end; i++ {
				if found[i] != right[i] {
					return 0, errWrong
				}
				sum += found[i] * mix(uint64(i))
			}
			return sum, nil
		},
		free: func() error { return freeWords(memory) },
	}, nil
}
