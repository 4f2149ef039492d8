package caller

import (
	"runtime"
	"strings"
	"sync/atomic"
)

// kind is what is known of an address to which a call returns.
type kind uint8

const (
	unknown kind = iota
	program      // it lies in the program
	ours         // in a package of evenkeel's that programs import
	mixed        // in a function of such a package that was copied into one of the program
	bottom       // below all of them
)

// memory is of the addresses that were looked up last, each at a place that its bits give.
type memory [1024]atomic.Uintptr

func (m *memory) has(pc uintptr) bool { return m[pc%uintptr(len(m))].Load() == pc }

func (m *memory) keep(pc uintptr) { m[pc%uintptr(len(m))].Store(pc) }

var programs, others memory

// Program is At(up) where that lies in the program. Where it lies in a package of evenkeel's
// that programs import, it is the next address further up that does not: the place where the
// program called evenkeel. On a goroutine of evenkeel's own there is none, and At(up) stands.
// It takes some 2 ns more than At for each function.
//
//go:noinline
func Program(up int) uintptr {
	first := At(up + 1)
	if programs.has(first) {
		return first
	}
	// Frame pointers are followed through functions of evenkeel's alone: those of C, which may
	// have called one of them, have none.
	for pc := first; ; pc = At(up + 1) {
		switch look(pc) {
		case program:
			return pc
		case mixed:
			return search(first)
		case bottom:
			return first
		}
		up++
	}
}

// look finds out of what kind an address is.
func look(pc uintptr) kind {
	switch {
	case programs.has(pc):
		return program
	case others.has(pc):
		return ours
	}
	found := kindOf(pc)
	switch found {
	case program:
		programs.keep(pc)
	case ours:
		others.keep(pc)
	}
	return found
}

func kindOf(pc uintptr) kind {
	f := runtime.FuncForPC(pc - 1)
	switch {
	case f == nil || starts(f.Name()):
		return bottom
	case !imported(f.Name()):
		return program
	case !imported(runtime.FuncForPC(f.Entry()).Name()): // its entry is that of the function it was copied into
		return mixed
	}
	return ours
}

// starts says whether a function is one that goroutines begin in, below what was given to them.
func starts(function string) bool {
	for _, prefix := range []string{"runtime.", "_cgoexp", "sync.(*WaitGroup).Go"} {
		if strings.HasPrefix(function, prefix) {
			return true
		}
	}
	return false
}

// InProgram says whether an address lies in the program.
func InProgram(pc uintptr) bool { return look(pc) == program }

// search finds the program's place above evenkeel's functions, copied ones too.
func search(first uintptr) uintptr {
	var pcs [64]uintptr
	for _, pc := range pcs[:runtime.Callers(3, pcs[:])] { // past Callers, search and Program
		if kindOf(pc) == program {
			return pc
		}
	}
	return first
}

// imported says whether a function is of a package of evenkeel's that programs import.
func imported(function string) bool {
	name, found := strings.CutPrefix(function, "evenkeel/")
	if !found || strings.Contains(name, "_test.") {
		return false
	}
	for _, folder := range []string{"mpi.", "mpi/", "pgas/", "balancer/", "collectives", "runtime/"} {
		if strings.HasPrefix(name, folder) {
			return true
		}
	}
	return false
}
