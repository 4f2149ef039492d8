// calls.go - call sites in Go: functions, methods, an inlined one. It prints
// what probe.c does; built with cgo and without.
package main

import (
	"fmt"
	"os"
	"runtime"
)

var zero int

//go:noinline
func probe(function, inlined string) int {
	pc, file, line, _ := runtime.Caller(1)
	fmt.Printf("%s\t%x\t%s\t%d\t%s\t%s\n", os.Args[0], pc, file, line, function, inlined)
	return zero
}

type grid struct{ n int }

//go:noinline
func (g *grid) exchange() int { return probe("main.(*grid).exchange", "") + g.n }

//go:noinline
func reduce() int { return probe("main.reduce", "") + zero }

func small(inlined string) int { return probe("main.small", inlined) + zero }

func main() {
	zero = new(grid).exchange() + reduce()
	_, _, line, _ := runtime.Caller(0)
	zero = small(fmt.Sprintf("main.main:%d", line+1))
}
