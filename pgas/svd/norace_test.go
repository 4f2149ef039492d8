//go:build !race

package svd

// raced: under the race detector.
const raced = false
