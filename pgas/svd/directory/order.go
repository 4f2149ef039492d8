//go:build !amd64 || race

package directory

// ordered says that stores become visible in the order of the program, and none before
// what was loaded ahead of it. Elsewhere, and for the race detector, a Reader's stores are
// atomic ones.
const ordered = false
