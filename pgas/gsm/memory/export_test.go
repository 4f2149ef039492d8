package memory

// What tries again, for tests that come in between.
var (
	CompareAndSwapBy = compareAndSwap[uint64]
	ExclusiveOrBy    = exclusiveOr[uint64]
)
