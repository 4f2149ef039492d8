//go:build !race

package fabrictest

const raced = false
