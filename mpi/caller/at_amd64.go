package caller

// At returns an address of the program: 0 is where the function that calls At goes
// on when it returns, 1 where its caller does, and so on. It follows frame pointers,
// which takes some 2 ns where [runtime.Callers] takes 200. The functions in between
// must not have been inlined.
//
//go:noescape
func At(up int) uintptr
