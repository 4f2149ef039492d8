package tables

import (
	_ "embed"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/pkg/errors"
)

//go:embed mpi.table
var mpiTable string

// Param is one parameter of an MPI function, as C declares it.
type Param struct {
	Type string // "const void *", "int", "MPI_Comm", "const int[]"
	Name string // "buf"
}

// Function is one wrapped MPI function, or one of evenkeel's own that is recorded like these.
type Function struct {
	Name   string // "MPI_Send"; of Go's "shared.World.Barrier"
	Class  string // "send"; see the head of mpi.table
	Fast   string // the member of EVENKEEL_FAST that has it done another way, or empty
	Own    bool   // evenkeel's own, not MPI's: Params are not told
	Newer  bool   // of MPI 4: wrapped only where the MPI that evenkeel is built with has it
	Params []Param
}

// Identifier is the name as C can spell it.
func (f Function) Identifier() string { return strings.ReplaceAll(f.Name, ".", "_") }

// Symbol is what libevenkeel.so exports for the function; those of Go packages are recorded through one for all.
func (f Function) Symbol() string {
	if f.Identifier() != f.Name {
		return "ek_own_binding"
	}
	return f.Name
}

// Param returns the parameter of that name and whether there is one.
func (f Function) Param(name string) (Param, bool) {
	for _, p := range f.Params {
		if p.Name == name {
			return p, true
		}
	}
	return Param{}, false
}

// Unwrapped is a group of MPI functions that are not wrapped.
type Unwrapped struct {
	Reason string
	Names  []string
	Newer  bool // of MPI 4
}

// MPI returns the functions of mpi.table in their order, which is their
// number in the node segment, and the functions that are not wrapped.
func MPI() ([]Function, []Unwrapped, error) {
	var functions []Function
	var unwrapped []Unwrapped
	for n, line := range strings.Split(mpiTable, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, "|")
		for i := range fields {
			fields[i] = strings.TrimSpace(fields[i])
		}
		newer := fields[0] == "newer"
		if newer {
			fields = fields[1:]
		}
		switch {
		case len(fields) == 3 && fields[0] == "-":
			unwrapped = append(unwrapped, Unwrapped{fields[1], strings.Fields(fields[2]), newer})
		case len(fields) == 3 && fields[0] == "own":
			for _, name := range strings.Fields(fields[2]) {
				functions = append(functions, Function{Name: name, Class: fields[1], Own: true})
			}
		case len(fields) == 3 && fields[0] == "fast":
			for _, name := range strings.Fields(fields[2]) {
				i := slices.IndexFunc(functions, func(f Function) bool { return f.Name == name })
				if i < 0 {
					return nil, nil, errors.Errorf("mpi.table line %d: %s is not wrapped above", n+1, name)
				}
				functions[i].Fast = fields[1]
			}
		case len(fields) == 2:
			f, err := parsePrototype(fields[1])
			if err != nil {
				return nil, nil, errors.Wrapf(err, "mpi.table line %d", n+1)
			}
			f.Class, f.Newer = fields[0], newer
			functions = append(functions, f)
		default:
			return nil, nil, errors.Errorf("mpi.table line %d: want `class | prototype`, `- | reason | names`, `fast | path | names` or `own | class | names`, the first two perhaps behind `newer |`", n+1)
		}
	}
	return functions, unwrapped, nil
}

// Hash identifies the numbering of functions: a segment written with another
// table is not to be read with this one.
func Hash(functions []Function) uint32 {
	h := fnv.New32a()
	for _, f := range functions {
		h.Write([]byte(f.Name))
		h.Write([]byte{0})
	}
	return h.Sum32()
}

// parsePrototype reads `int MPI_Name(type name, type name[], ...)`.
func parsePrototype(text string) (Function, error) {
	text, ok := strings.CutPrefix(text, "int ")
	name, rest, found := strings.Cut(text, "(")
	if !ok || !found || !strings.HasSuffix(rest, ")") {
		return Function{}, errors.Errorf("not a prototype that returns int: %q", text)
	}
	f := Function{Name: name}
	rest = strings.TrimSuffix(rest, ")")
	if rest == "void" {
		return f, nil
	}
	for _, p := range strings.Split(rest, ",") {
		p = strings.TrimSpace(p)
		if p == "..." {
			continue
		}
		array := ""
		if i := strings.Index(p, "["); i >= 0 {
			p, array = p[:i], "[]"
		}
		i := strings.LastIndexAny(p, " *") + 1
		if i == 0 || i == len(p) {
			return Function{}, errors.Errorf("%s: a parameter without type or name: %q", name, p)
		}
		f.Params = append(f.Params, Param{Type: strings.TrimSpace(p[:i]) + array, Name: p[i:]})
	}
	return f, nil
}
