package main

import (
	"bufio"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/pkg/errors"
	"golang.org/x/sys/unix"
)

// asLauncher says whether the program is one that starts the ranks of a job,
// and the name under which people know it.
func asLauncher(program string) (string, bool) {
	name := strings.TrimSuffix(filepath.Base(program), ".openmpi")
	switch name {
	case "mpirun", "mpiexec", "orterun", "prterun", "prun", "oshrun", "srun":
		return name, true
	}
	return "", false
}

// findProgram returns the path of a program that is named as in a shell: by
// path, or by a name to look for in PATH.
func findProgram(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil || errors.Is(err, exec.ErrDot) {
		return path, nil
	}
	// LookPath tells neither a directory nor a missing permission apart.
	info, statErr := os.Stat(name)
	inPath := !strings.ContainsRune(name, filepath.Separator)
	switch {
	case inPath && statErr == nil && info.Mode().IsRegular():
		return "", errors.Errorf("there is no program %s in PATH; the one in this directory is ./%s", name, name)
	case inPath:
		return "", errors.Errorf("there is no program %s in PATH", name)
	case os.IsNotExist(statErr):
		return "", errors.Errorf("there is no program %s", name)
	case statErr != nil:
		return "", errors.Errorf("cannot start %s: %v", name, errors.Cause(statErr))
	case info.IsDir():
		return "", errors.Errorf("%s is a directory, not a program", name)
	}
	return "", errors.Errorf("%s may not be executed; chmod +x makes it a program", name)
}

// inspect says whether a program can run under the library. The error says
// why it cannot; the note, one sentence, what its user should know although
// it can.
func inspect(path, name, library string) (note string, err error) {
	file, err := os.Open(path)
	if err != nil {
		return "", nil // may be executed, not read: the system will judge it
	}
	defer file.Close()
	if interpreter := interpreterOf(file); interpreter != "" {
		if _, err := os.Stat(interpreter); os.IsNotExist(err) {
			return "", errors.Errorf("%s cannot start: there is no %s, which its first line asks for", name, interpreter)
		}
		return "", nil
	}
	program, err := elf.NewFile(file)
	if err != nil {
		return "", nil // not ELF: the system will judge it
	}
	ours, err := elf.Open(library)
	if err != nil {
		return "", errors.Errorf("%s is damaged (%v); install evenkeel again", library, err)
	}
	defer ours.Close()
	switch {
	case program.Machine != ours.Machine || program.Class != ours.Class:
		return "", errors.Errorf("%s is a program for %s, and this evenkeel is for %s", name, architecture(program), architecture(ours))
	case !loadsLibraries(program):
		return "", errors.Errorf("%s is linked statically, so nothing can be preloaded into it: link it dynamically to run it under evenkeel", name)
	}
	if mpich := foreignMPI(program); mpich != "" {
		return "", errors.Errorf("%s uses another MPI than Open MPI (%s), and evenkeel works with Open MPI alone", name, mpich)
	}
	switch {
	case losesPreload(file):
		return fmt.Sprintf("%s runs with other rights than yours (set-user-ID or the like), so the system preloads nothing: there will be no report", name), nil
	case surelyWithoutMPI(path, program):
		return fmt.Sprintf("%s does not use MPI (no libmpi among its libraries): it runs as it is, and there will be no report", name), nil
	}
	return "", nil
}

// interpreterOf returns the program that a script names behind #! in its first
// line, empty if the file is no such script.
func interpreterOf(file io.ReaderAt) string {
	const longest = 256 // of which the kernel takes notice
	line, _ := bufio.NewReader(io.NewSectionReader(file, 0, longest)).ReadString('\n')
	if rest, is := strings.CutPrefix(line, "#!"); is {
		if words := strings.Fields(rest); len(words) > 0 {
			return words[0]
		}
	}
	return ""
}

// loadsLibraries says whether the dynamic linker has a part in a program: it
// is named in the program, or the program is the dynamic linker itself.
func loadsLibraries(program *elf.File) bool {
	for _, p := range program.Progs {
		if p.Type == elf.PT_INTERP {
			return true
		}
	}
	names, _ := program.DynString(elf.DT_SONAME)
	return len(names) > 0 && strings.HasPrefix(names[0], "ld-")
}

func architecture(f *elf.File) string {
	bits := map[elf.Class]string{elf.ELFCLASS32: "32-bit ", elf.ELFCLASS64: "64-bit "}[f.Class]
	return bits + strings.TrimPrefix(f.Machine.String(), "EM_")
}

// foreignMPI returns the library of MPICH, or of one that is binary compatible
// with it, that a program is linked to. Its handles mean something else.
func foreignMPI(program *elf.File) string {
	libraries, _ := program.ImportedLibraries()
	for _, l := range libraries {
		if strings.HasPrefix(l, "libmpich.so") || l == "libmpi.so.12" {
			return l
		}
	}
	return ""
}

// losesPreload says whether the system ignores LD_PRELOAD because the program
// runs with more rights than who starts it.
func losesPreload(file *os.File) bool {
	info, err := file.Stat()
	if err != nil {
		return false
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	if info.Mode()&os.ModeSetuid != 0 && int(owner.Uid) != os.Getuid() {
		return true
	}
	if info.Mode()&os.ModeSetgid != 0 && int(owner.Gid) != os.Getgid() {
		return true
	}
	size, err := unix.Fgetxattr(int(file.Fd()), "security.capability", nil)
	return err == nil && size > 0 && os.Getuid() != 0
}
