//go:build race

package fabrictest

// raced: under the race detector calls of the kernel allocate.
const raced = true
