//go:build !amd64

package caller

import "runtime"

// At returns an address of the program: 0 is where the function that calls At goes
// on when it returns, 1 where its caller does, and so on. The functions in between
// must not have been inlined.
func At(up int) uintptr {
	var pcs [1]uintptr
	runtime.Callers(up+3, pcs[:]) // past Callers, At, and the function that calls At
	return pcs[0]
}
