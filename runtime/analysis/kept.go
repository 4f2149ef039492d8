package analysis

import "evenkeel/runtime/history"

const sliceWidth = 1 << history.SliceBits // ns

// sliceKept says whether a level keeps all events of the time slice in which
// `at` lies.
func sliceKept(at int64, level int) bool {
	return level == 0 || history.KeptSlice(at>>history.SliceBits, level)
}

// alwaysKept says whether a call was so long that a level keeps its event
// whatever else.
func alwaysKept(enter, leave int64, level int) bool {
	return level > 0 && leave>>history.SliceBits-enter>>history.SliceBits >= history.LongSlices<<level
}

// shortestKept is how long, in nanoseconds, a call must last to be always kept
// wherever it begins.
func shortestKept(level int) int64 { return (history.LongSlices<<level + 1) * sliceWidth }

// operationWeight is how many operations a complete one stands for. Whether an
// operation is timed and whether it is kept is decided by the same bits, so
// the weight is the larger of the two; below that, it may also be kept because
// its slice is.
func operationWeight(timed int64, level int) float32 {
	if kept := float32(int64(1) << min(level, 40)); level > 0 && float32(timed) < kept {
		return kept / (1 + 1/float32(timed))
	}
	return float32(timed)
}
