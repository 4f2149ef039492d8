package memory

// What tries again, for tests that come in between.
var (
	CompareAndSwapBy = compareAndSwap[uint64]
	ExclusiveOrBy    = exclusiveOr[uint64]
)

// SetProcess makes an area that of another process.
func SetProcess(a *Area, pid int) { a.pid = uint64(pid) }
