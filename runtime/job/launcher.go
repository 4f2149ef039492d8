package job

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// What a watcher writes to stderr goes through mpirun, and with a rank that was
// killed mpirun ends too, listening no more. So a watcher also has mpirun's own
// stderr, if mpirun runs on its host.
type launcher struct {
	pid    int
	stderr *os.File
	// careful: mpirun's stderr is a file that could only be opened anew, in which
	// mpirun, while it lives, would overwrite what is written behind its back.
	careful bool
}

// launchers are the names of the programs that mpirun may be.
var launchers = []string{"orterun", "mpirun", "mpiexec", "prterun"}

// isLauncher says whether a process is an mpirun. That of Open MPI 5 is the
// program prte by the name of prterun; by its own name it is a daemon of many
// jobs, and its stderr none of theirs.
func isLauncher(pid int) bool {
	program, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	name, _, _ := strings.Cut(filepath.Base(program), ".")
	if name == "prte" {
		called, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		name = strings.TrimSpace(string(called))
	}
	return slices.Contains(launchers, name)
}

// findLauncher finds the launcher among the ancestors of a rank; one without
// stderr if there is none.
func findLauncher(pid int) launcher {
	for range 16 {
		if pid = parent(pid); pid <= 1 {
			break
		}
		if !isLauncher(pid) {
			continue
		}
		if stderr := share(pid); stderr != nil {
			return launcher{pid: pid, stderr: stderr}
		}
		stderr, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/2", pid), os.O_WRONLY|os.O_APPEND|unix.O_NOCTTY, 0)
		if err != nil {
			break
		}
		info, err := stderr.Stat()
		return launcher{pid, stderr, err != nil || info.Mode().IsRegular() && !appends(pid)}
	}
	return launcher{}
}

// share returns a process's own stderr, with the place in a file that the two
// then have in common; nil if that is not allowed.
func share(pid int) *os.File {
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(process)
	stderr, err := unix.PidfdGetfd(process, syscall.Stderr, 0)
	if err != nil {
		return nil
	}
	return os.NewFile(uintptr(stderr), "stderr of the launcher")
}

// parent is the process that started another; 0 if that is gone.
func parent(pid int) int {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// pid (name) state parent: the name may hold anything, also a parenthesis.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 2 {
		return 0
	}
	number, _ := strconv.Atoi(fields[1])
	return number
}

// appends says whether what a process writes to stderr goes to the end of the
// file, wherever that is by then.
func appends(pid int) bool {
	info, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/2", pid))
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(info), "flags:")
	line, _, _ := strings.Cut(after, "\n")
	flags, err := strconv.ParseUint(strings.TrimSpace(line), 8, 64)
	return err == nil && flags&unix.O_APPEND != 0
}

// choose returns the file in which text on stderr is not lost: own is the
// watcher's.
func (l launcher) choose(own *os.File) *os.File {
	if l.stderr == nil || l.careful && unix.Kill(l.pid, 0) == nil {
		return own
	}
	return l.stderr
}
