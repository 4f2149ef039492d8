package symbols

import (
	"debug/elf"
	"io"

	"github.com/pkg/errors"
)

// module is what is known of one ELF file.
type module struct {
	code  []span // executable parts
	table symbolTable
	debug *debugInfo // nil: none
}

// span is the addresses from low to high, high not included.
type span struct{ low, high uint64 }

func (s span) contains(pc uint64) bool { return s.low <= pc && pc < s.high }

func contain(spans []span, pc uint64) bool {
	for _, s := range spans {
		if s.contains(pc) {
			return true
		}
	}
	return false
}

// readModule reads an ELF file and, if it has no debug information itself, its
// separate debug file. The path is used for finding the latter alone.
func readModule(file io.ReaderAt, path, debugRoot string) (m *module, err error) {
	// debug/elf and debug/dwarf return errors for nearly everything that can
	// be wrong in a file. This runs inside a rank of somebody's program: a case
	// they have missed must not end it.
	defer func() {
		if p := recover(); p != nil {
			m, err = nil, errors.Errorf("%s: %v", path, p)
		}
	}()
	program, err := elf.NewFile(file)
	if err != nil {
		return nil, errors.Wrap(err, path)
	}
	m = &module{}
	for _, p := range program.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && p.Vaddr+p.Memsz > p.Vaddr {
			m.code = append(m.code, span{p.Vaddr, p.Vaddr + p.Memsz})
		}
	}
	m.table.add(program.Symbols)
	m.table.add(program.DynamicSymbols)
	m.debug = readDebugInfo(program, m.code)
	if m.debug == nil {
		if separate := openDebugFile(program, path, debugRoot); separate != nil {
			defer separate.Close()
			m.table.add(separate.Symbols)
			m.debug = readDebugInfo(separate.File, m.code)
		}
	}
	m.table.sort()
	return m, nil
}

// find returns the frame of the instruction at pc.
func (m *module) find(pc uint64) (frame Frame) {
	defer func() { // see readModule
		if recover() != nil {
			frame = Frame{}
		}
	}()
	if !contain(m.code, pc) {
		return Frame{}
	}
	if m.debug != nil {
		frame = m.debug.find(pc)
	}
	real := &frame // the function that is there in the machine code
	if n := len(frame.Inlined); n > 0 {
		real = &frame.Inlined[n-1]
	}
	// gcc gives local functions and lambdas in the debug information no name
	// with their namespace; the linker's has it.
	link := m.table.find(pc)
	if name, mangled := demangled(link); mangled || real.Function == "" {
		real.Function = name
	}
	return frame
}
