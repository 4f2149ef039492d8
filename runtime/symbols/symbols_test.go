package symbols

import (
	"debug/dwarf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The order matters: what a linker discards of elsewhere.c must not be found
// before what lies in plain.c.
var plain = []string{"elsewhere.c", "plain.c", "probe.c"}

// In Python what is recorded is the place itself.
func TestPython(t *testing.T) {
	r := NewResolver(DebugRoot)
	assert.Equal(t, Frame{Function: "Solver.step.<locals>.again", File: "/home/u/solve.py", Line: 42},
		r.Resolve("/home/u/solve.py::Solver.step.<locals>.again", 42))
	assert.Equal(t, Frame{Function: "<module>", File: "<string>", Line: 1}, r.Resolve("<string>::<module>", 1))
}

func TestC(t *testing.T) {
	for compiler, variants := range map[string][]string{
		"gcc": {
			"-g -O0",
			"-g -O2",
			"-g -O2 -flto",
			"-gdwarf-4 -O2",
			"-gdwarf-5 -O2 -fPIE -pie",
			"-g -O2 -fno-PIE -no-pie",
			"-g -O2 -gz",
			"-gdwarf-4 -O2 -ffunction-sections -Wl,--gc-sections",
			"-gdwarf-5 -O2 -ffunction-sections -Wl,--gc-sections",
		},
		"clang": {
			"-g -O0",
			"-g -O2",
			"-gdwarf-4 -O2",
			"-g -O2 -ffunction-sections -Wl,--gc-sections",
		},
	} {
		for _, flags := range variants {
			t.Run(compiler+" "+flags, func(t *testing.T) {
				program := build(t, compiler, append(strings.Fields(flags), plain...)...)
				requireTruth(t, NewResolver(t.TempDir()), run(t, program))
			})
		}
	}
}

// TestArtificial has call sites in a function that its author has marked as a part of its
// callers, which no compiler tells of with -flto.
func TestArtificial(t *testing.T) {
	for _, compiler := range []string{"gcc", "clang"} {
		for _, flags := range []string{"-g -O0", "-g -O2", "-gdwarf-4 -O2"} {
			t.Run(compiler+" "+flags, func(t *testing.T) {
				program := build(t, compiler, append(strings.Fields(flags), "transparent.c", "probe.c")...)
				requireTruth(t, NewResolver(t.TempDir()), run(t, program))
			})
		}
	}
}

func TestCPlusPlus(t *testing.T) {
	for _, flags := range []string{"-g -O0", "-g -O2", "-gdwarf-4 -O2"} {
		t.Run(flags, func(t *testing.T) {
			probe := build(t, "gcc", "-c", "probe.c")
			program := build(t, "g++", append(strings.Fields(flags), "classes.cc", "-x", "none", probe)...)
			requireTruth(t, NewResolver(t.TempDir()), run(t, program))
		})
	}
}

func TestFortran(t *testing.T) {
	for _, flags := range []string{"-g -O0", "-g -O2 -fno-inline", "-gdwarf-4 -O2 -fno-inline"} {
		t.Run(flags, func(t *testing.T) {
			probe := build(t, "gcc", "-c", "probe.c")
			program := build(t, "gfortran", append(strings.Fields(flags), "-J", t.TempDir(), "heat.F90", probe)...)
			requireTruth(t, NewResolver(t.TempDir()), run(t, program))
		})
	}
}

func TestGo(t *testing.T) {
	program := build(t, "go", "calls.go")
	requireTruth(t, NewResolver(t.TempDir()), run(t, program))
}

func TestAssembler(t *testing.T) {
	program := build(t, "gcc", "-g", "assembly.c", "assembly.S", "probe.c")
	requireTruth(t, NewResolver(t.TempDir()), run(t, program))
}

// TestSharedLibrary has a call site in a library that is loaded anywhere.
func TestSharedLibrary(t *testing.T) {
	library := build(t, "gcc", "-shared", "-fPIC", "-g", "elsewhere.c", "probe.c")
	program := build(t, "gcc", "-g", "plain.c", library)
	truths := run(t, program)
	requireTruth(t, NewResolver(t.TempDir()), truths)
	modules := map[string]bool{}
	for _, truth := range truths {
		modules[truth.module] = true
	}
	assert.Len(t, modules, 2)
}

// TestSeparateDebugFile takes the debug information out of a program and puts
// it into each of the places where it can be.
func TestSeparateDebugFile(t *testing.T) {
	const id = "0123456789abcdef"
	for _, c := range []struct{ name, buildID, place string }{
		{"by build-id", "0x" + id, "ROOT/.build-id/01/23456789abcdef.debug"},
		{"beside the program", "none", "DIR/program.debug"},
		{"beside the program, with build-id", "0x" + id, "DIR/program.debug"},
		{"in .debug", "none", "DIR/.debug/program.debug"},
		{"below the root", "none", "ROOT/DIR/program.debug"},
	} {
		t.Run(c.name, func(t *testing.T) {
			program, debug := splitProgram(t, c.buildID)
			truths := run(t, program)
			root := t.TempDir()
			place := strings.ReplaceAll(c.place, "DIR", filepath.Dir(program))
			place = strings.ReplaceAll(place, "ROOT", root)
			require.NoError(t, os.MkdirAll(filepath.Dir(place), 0o755))

			bare := NewResolver(root).Resolve(truths[0].module, truths[0].offset)
			assert.Equal(t, Frame{}, bare, "without the debug file nothing is known")

			require.NoError(t, os.Rename(debug, place))
			requireTruth(t, NewResolver(root), truths)
		})
	}
}

// TestForeignDebugFile has a debug file in the right place, of another build.
func TestForeignDebugFile(t *testing.T) {
	for _, buildID := range []string{"0x0123456789abcdef", "none"} {
		program, _ := splitProgram(t, buildID)
		other := build(t, "gcc", append([]string{"-g", "-O2", "-Wl,--build-id=0xfedcba9876543210"}, plain...)...)
		command(t, "objcopy", "--only-keep-debug", other, program+".debug")
		truths := run(t, program)
		assert.Equal(t, Frame{}, NewResolver(t.TempDir()).Resolve(truths[0].module, truths[0].offset))
	}
}

// splitProgram returns a program without symbols, with a link to program.debug,
// and the file of its debug information, which is in another directory.
func splitProgram(t *testing.T, buildID string) (program, debug string) {
	program = build(t, "gcc", append([]string{"-g", "-O2", "-Wl,--build-id=" + buildID}, plain...)...)
	debug = filepath.Join(t.TempDir(), "program.debug")
	command(t, "objcopy", "--only-keep-debug", program, debug)
	command(t, "objcopy", "--strip-all", "--add-gnu-debuglink="+debug, program)
	return program, debug
}

// TestSymbolTableAlone knows functions and no lines.
func TestSymbolTableAlone(t *testing.T) {
	program := build(t, "gcc", append([]string{"-O2"}, plain...)...)
	functions := map[string]bool{}
	r := NewResolver(t.TempDir())
	for _, truth := range run(t, program) {
		frame := r.Resolve(truth.module, truth.offset)
		assert.Equal(t, Frame{Function: frame.Function}, frame)
		functions[frame.Function] = true
	}
	assert.Equal(t, map[string]bool{"main": true, "hidden": true, "visible": true, "elsewhere": true, "ending": true}, functions)
}

// TestExportedSymbolsAlone is a stripped library: what it exports is known, and
// what lies between is not taken for it.
func TestExportedSymbolsAlone(t *testing.T) {
	library := build(t, "gcc", "-s", "-shared", "-fPIC", "-O2", "elsewhere.c", "probe.c")
	program := build(t, "gcc", "-s", "-O2", "plain.c", library)
	r := NewResolver(t.TempDir())
	for _, truth := range run(t, program) {
		want := Frame{}
		if truth.function == "elsewhere" {
			want.Function = "elsewhere"
		}
		assert.Equal(t, want, r.Resolve(truth.module, truth.offset), "%+v", truth)
	}
}

func TestNothingKnown(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	require.NoError(t, os.WriteFile(text, []byte("#!/bin/sh\n"), 0o755))
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	r := NewResolver(dir)
	for _, path := range []string{"", "[vdso]", dir, text, pipe, filepath.Join(dir, "gone"), "/dev/zero"} {
		assert.Equal(t, Frame{}, r.Resolve(path, 0x1234), path)
	}
	program := build(t, "gcc", append([]string{"-g"}, plain...)...)
	for _, offset := range []uint64{0, 1, 1 << 40, 1<<64 - 1} {
		assert.Equal(t, Frame{}, r.Resolve(program, offset))
	}
}

// TestLineZero has instructions that the compiler ascribes to no line.
func TestLineZero(t *testing.T) {
	file := &dwarf.LineFile{Name: "/src/./a.c"}
	lines := &lineTable{sequences: []sequence{{span{0x10, 0x30}, []row{{0x10, file, 0}, {0x14, file, 7}, {0x20, file, 0}}}}}
	for pc, want := range map[uint64]int{0x0f: 0, 0x10: 0, 0x14: 7, 0x1f: 7, 0x20: 7, 0x2f: 7, 0x30: 0} {
		name, line := lines.find(pc)
		assert.Equal(t, want, line, "%#x", pc)
		assert.Equal(t, want != 0, name == "/src/a.c")
	}
}

// TestKeepsWhatItRead removes the program between two look-ups.
func TestKeepsWhatItRead(t *testing.T) {
	program := build(t, "gcc", append([]string{"-g", "-O2"}, plain...)...)
	truths := run(t, program)
	r := NewResolver(t.TempDir())
	requireTruth(t, r, truths[:1])
	require.NoError(t, os.Remove(program))
	requireTruth(t, r, truths)
}

func TestConcurrentUse(t *testing.T) {
	program := build(t, "gcc", append([]string{"-g", "-O2"}, plain...)...)
	truths := run(t, program)
	r := NewResolver(t.TempDir())
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for _, truth := range truths {
				assert.Equal(t, truth.line, r.Resolve(truth.module, truth.offset).Line)
			}
		})
	}
	all.Wait()
}

// TestSystemLibrary looks into a large library as it is installed.
func TestSystemLibrary(t *testing.T) {
	libc, err := exec.Command("sh", "-c", "ldd /bin/sh | awk '/libc.so/ {print $3}'").Output()
	require.NoError(t, err)
	path := strings.TrimSpace(string(libc))
	m, err := openModule(path, DebugRoot)
	require.NoError(t, err)
	require.NotEmpty(t, m.table.functions)
	r := NewResolver(DebugRoot)
	for _, f := range m.table.functions[:100] {
		assert.NotEmpty(t, r.Resolve(path, f.low+1).Function, f.name)
	}
}

func TestDemangled(t *testing.T) {
	for link, want := range map[string]string{
		"main":                      "main",
		"MPI_Barrier":               "MPI_Barrier",
		"step_":                     "step_",
		"__heat_MOD_step":           "heat::step",
		"__heat":                    "__heat",
		"_ZN4mesh4Halo8exchangeEd":  "mesh::Halo::exchange",
		"_ZN4mesh4Halo4sendIdEEiT_": "mesh::Halo::send<double>",
		"_ZZ4mainENKUlvE_clEv":      "main::{lambda()#1}::operator()",
		"_ZN4core3fmt9Formatter3pad17h0123456789abcdefE": "core::fmt::Formatter::pad",
		"_Zbroken": "_Zbroken",
	} {
		name, mangled := demangled(link)
		assert.Equal(t, want, name)
		assert.Equal(t, want != link, mangled)
	}
}

// TestHostileName has a template argument that doubles its length thirty times.
func TestHostileName(t *testing.T) {
	doubled := func(times int) string {
		link := "_Z1fISt4pairIiiE"
		for i := range times {
			s := strings.ToUpper(strconv.FormatInt(int64(i), 36))
			link += fmt.Sprintf("S_IS%s_S%s_E", s, s)
		}
		return link + "Evv"
	}
	name, mangled := demangled(doubled(3))
	assert.True(t, mangled)
	assert.Greater(t, len(name), 100)
	name, _ = demangled(doubled(30))
	assert.LessOrEqual(t, len(name), 1<<longest)
}
