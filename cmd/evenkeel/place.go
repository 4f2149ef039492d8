package main

import (
	"fmt"
	"path/filepath"

	"evenkeel/runtime/symbols"
)

// place names a call site as well as its module's symbols allow: "step
// (heat.f90:42)", "step (libheat.so)", or "libheat.so+0x1234".
func place(resolver *symbols.Resolver, module string, offset uint64) string {
	frame := resolver.Resolve(module, offset)
	switch {
	case frame.Line != 0:
		return fmt.Sprintf("%s (%s:%d)", frame.Function, filepath.Base(frame.File), frame.Line)
	case frame.Function != "":
		return fmt.Sprintf("%s (%s)", frame.Function, filepath.Base(module))
	}
	return fmt.Sprintf("%s+%#x", filepath.Base(module), offset)
}
