package main

import (
	"context"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// surelyWithoutMPI says whether a program can be known not to use MPI: none of
// the libraries that it loads is libmpi, and neither it nor they can load
// another one or start another program, as an interpreter, a shell or a
// wrapper like numactl does.
func surelyWithoutMPI(path string, program *elf.File) bool {
	libraries, err := program.ImportedLibraries()
	if err != nil || slices.ContainsFunc(libraries, isMPI) {
		return false
	}
	if reachesFurther(program) {
		return false
	}
	loaded, known := loadedLibraries(path, program)
	if !known {
		return false
	}
	for _, l := range loaded {
		if isMPI(l) {
			return false
		}
		// Fortran's library can start a program for those that ask for it, and
		// these are recognised themselves.
		if strings.HasPrefix(filepath.Base(l), "libgfortran.so") {
			continue
		}
		f, err := elf.Open(l)
		if err != nil {
			return false
		}
		further := reachesFurther(f)
		f.Close()
		if further {
			return false
		}
	}
	return true
}

func isMPI(library string) bool { return strings.HasPrefix(filepath.Base(library), "libmpi") }

// reachesFurther says whether a file calls what loads a library or starts a
// program.
func reachesFurther(f *elf.File) bool {
	symbols, err := f.ImportedSymbols()
	return err != nil || slices.ContainsFunc(symbols, func(s elf.ImportedSymbol) bool {
		switch s.Name {
		case "dlopen", "dlmopen", "system", "popen", "_gfortran_execute_command_line", "_gfortran_system":
			return true
		}
		return strings.HasPrefix(s.Name, "exec") || strings.HasPrefix(s.Name, "posix_spawn")
	})
}

// loadedLibraries asks the program's own dynamic linker which libraries it
// loads, in the environment as it is, without running any code of the program.
// It is false if one of them is missing or there is no answer.
func loadedLibraries(path string, program *elf.File) (paths []string, known bool) {
	linker := ""
	for _, p := range program.Progs {
		if p.Type == elf.PT_INTERP {
			if text, err := readAll(p); err == nil {
				linker = strings.TrimRight(text, "\x00")
			}
		}
	}
	if linker == "" {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	command := exec.CommandContext(ctx, linker, "--list", path)
	command.Env = setVariable(os.Environ(), "LD_PRELOAD", "")
	output, err := command.Output()
	if err != nil {
		return nil, false
	}
	for _, line := range strings.Split(string(output), "\n") {
		// "libm.so.6 => /lib/libm.so.6 (0x00007f...)" or "/lib64/ld-linux-x86-64.so.2 (0x...)"
		if strings.Contains(line, "not found") {
			return nil, false
		}
		for _, word := range strings.Fields(line) {
			if filepath.IsAbs(word) {
				paths = append(paths, word)
			}
		}
	}
	return paths, len(paths) > 0
}

func readAll(p *elf.Prog) (string, error) {
	const longest = 4096 // a path
	buffer := make([]byte, min(p.Filesz, longest))
	n, err := p.ReadAt(buffer, 0)
	if n == len(buffer) {
		err = nil
	}
	return string(buffer[:n]), err
}
