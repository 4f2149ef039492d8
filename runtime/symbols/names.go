package symbols

import (
	"strings"

	"github.com/ianlancetaylor/demangle"
)

// longest bounds the length of a demangled name, in powers of two: a hostile
// name of a few bytes can stand for gigabytes.
const longest = 12

// demangled turns a linker's name into what stands in the source: C++ and Rust
// names without their parameters, Fortran's module procedures as
// module::procedure. Other names it returns as they are, with false.
func demangled(link string) (name string, mangled bool) {
	if rest, ok := strings.CutPrefix(link, "__"); ok {
		if module, procedure, ok := strings.Cut(rest, "_MOD_"); ok { // gfortran
			return module + "::" + procedure, true
		}
	}
	name, err := demangle.ToString(link, demangle.NoParams, demangle.NoEnclosingParams, demangle.MaxLength(longest))
	if err != nil {
		return link, false
	}
	return name, true
}
