// Package symbols finds the function and the source line behind a call site
// that is stored as a module (a program or a shared library) and an offset in
// it.
//
// What it tells depends on what the module's file, or its separate debug file,
// has: with DWARF debug information function, file, line and inlining; with a
// symbol table alone the function; in a stripped program nothing. It reads C,
// C++, Fortran, Go and whatever else leaves ELF symbols and DWARF 2 to 5.
package symbols

import (
	"math"
	"os"
	"strings"
	"sync"

	"github.com/pkg/errors"
)

// Frame is a place in the source. What is not known is empty or 0.
type Frame struct {
	// Function is the function whose source text holds the place, in the form
	// in which it is written: "ns::Class::method", "module::procedure" in
	// Fortran.
	Function string
	File     string // as the compiler recorded it, mostly absolute
	Line     int
	// Inlined is not empty if the compiler copied Function into another one:
	// it lists the places of these copies, outwards, so that the last one's
	// Function is the one that is really there in the machine code. The Inlined
	// of its elements are empty.
	Inlined []Frame
}

// Resolver turns modules and offsets into frames. It keeps what it has read of
// a module, so that the next look-up in it is quick; drop the Resolver to free
// that memory. It is safe for concurrent use.
type Resolver struct {
	debugRoot string
	mu        sync.Mutex
	modules   map[string]*module
	frames    map[site]Frame
}

type site struct {
	module string
	offset uint64
}

// DebugRoot is where Linux distributions install separate debug files.
const DebugRoot = "/usr/lib/debug"

// NewResolver returns a Resolver that looks for separate debug files beside
// their module and below debugRoot, which is normally DebugRoot.
func NewResolver(debugRoot string) *Resolver {
	return &Resolver{debugRoot: debugRoot, modules: map[string]*module{}, frames: map[site]Frame{}}
}

// Resolve returns the place of a call. The offset is the call's return
// address as an address in the module's file: the address in memory minus the
// load bias. If nothing is known, because the file is gone, is no ELF file, is
// damaged or has no symbols, the Frame is empty.
//
// Of a function of a program in Python, whose path is "FILE::FUNCTION", the
// offset is the line.
func (r *Resolver) Resolve(modulePath string, offset uint64) Frame {
	if file, function, ok := strings.Cut(modulePath, "::"); ok {
		return Frame{Function: function, File: file, Line: int(min(offset, math.MaxInt32))}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	key := site{modulePath, offset}
	if frame, known := r.frames[key]; known {
		return frame
	}
	m, known := r.modules[modulePath]
	if !known {
		// A module that cannot be read is remembered as nil: one attempt is enough.
		m, _ = openModule(modulePath, r.debugRoot)
		r.modules[modulePath] = m
	}
	var frame Frame
	if m != nil && offset > 0 {
		// The return address is behind the call, which can be the last
		// instruction of its line or even of its function.
		frame = m.find(offset - 1)
	}
	r.frames[key] = frame
	return frame
}

// openModule reads the module of that path. Paths come from a recording that
// anybody may have written, so only a regular file is opened: opening a named
// pipe would hang.
func openModule(path, debugRoot string) (*module, error) {
	file, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readModule(file, path, debugRoot)
}

func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, errors.WithStack(err)
	}
	if !info.Mode().IsRegular() {
		return nil, errors.Errorf("%s is not a regular file", path)
	}
	file, err := os.Open(path)
	return file, errors.WithStack(err)
}
