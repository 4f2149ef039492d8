package history

import "math/bits"

// A long run leaves more events than a rank has room for. All ranks then thin
// them out by the same rule, without a word between them, so that what is
// kept on one is kept on the others too: at level L one operation, and one
// slice of time, in 2^L. Each level keeps a part of what the one before kept.

// SliceBits is the width of a time slice: 2^24 ns, about 17 ms.
const SliceBits = 24

// LongSlices is how many slices (at level 0; doubling with each level) an
// event must last to be kept whatever else.
const LongSlices = 8

// MaxLevel is the highest level: chances have 32 bits.
const MaxLevel = 32

// Chance is that of the n-th operation on a communicator with that seed, in
// units of 2^-32: a hash of both. ek_chance in c/record.h is the same function: what decides there whether an operation
// is timed decides here whether it is kept.
func Chance(n, seed uint64) uint32 {
	x := n*0x9e3779b97f4a7c15 + seed
	x ^= x >> 32
	return uint32(x * 0xd6e8feb86659fd93 >> 32)
}

// Kept says whether level keeps what has this chance: 1 in 2^level.
func Kept(chance uint32, level int) bool {
	return bits.LeadingZeros32(chance) >= level
}

// Mix gives neighbouring numbers unrelated bits (MurmurHash3's finalizer);
// ek_mix in C.
func Mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// KeptSlice says whether level keeps all that happened in a slice of aligned
// time (ns >> SliceBits).
func KeptSlice(slice int64, level int) bool {
	return Kept(uint32(Mix(uint64(slice))), level)
}

// KeepEvent is the rule: an event stays if its operation does, if it touches a
// slice that stays, or if it is long. chance is that of a collective
// operation, and not looked at otherwise; enter and leave are aligned ns.
func KeepEvent(collective bool, chance uint32, enter, leave int64, level int) bool {
	if level == 0 || collective && Kept(chance, level) {
		return true
	}
	first, last := enter>>SliceBits, leave>>SliceBits
	if last-first >= LongSlices<<level {
		return true
	}
	for slice := first; slice <= last; slice++ {
		if KeptSlice(slice, level) {
			return true
		}
	}
	return false
}
