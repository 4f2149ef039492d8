// Command shim is libevenkeel-runtime.so, the Go runtime that libevenkeel.so
// opens inside MPI_Init of a program that is not written in Go
// (go build -buildmode=c-shared). The table that it exports is that of
// runtime/attach.
//
// The Makefile builds it with preemption by signals off (asyncpreemptoff=1):
// the program's own signal handling is put back after this library is loaded,
// and Go has no handler then.
package main

import (
	"runtime"
	"runtime/debug"

	_ "evenkeel/balancer/service"
	_ "evenkeel/pgas/gsm/service"
	_ "evenkeel/runtime/attach"
)

func init() {
	runtime.GOMAXPROCS(1) // a guest in another program: one thread at a time
	debug.SetGCPercent(400)
}

func main() {}
