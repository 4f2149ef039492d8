//go:build amd64 && !race

package directory

// ordered says that stores become visible in the order of the program, and none before
// what was loaded ahead of it.
const ordered = true
