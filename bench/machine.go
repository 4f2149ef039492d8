package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/pkg/errors"
	"golang.org/x/sys/unix"
)

// describeMachine is one line about what the figures were measured on, the
// load at the start included: a busy machine makes them worthless.
func describeMachine() (string, error) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return "", errors.Wrap(err, "the kernel's version")
	}
	version, err := exec.Command("mpirun", "--version").Output()
	if err != nil {
		return "", errors.Wrap(err, "mpirun --version; is Open MPI installed")
	}
	first, _, _ := strings.Cut(string(version), "\n")
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "", errors.Wrap(err, "the load of the machine")
	}
	cpus, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "", errors.Wrap(err, "the processor's name")
	}
	return fmt.Sprintf("Machine: %s, %d cores, Linux %s, %s; load average %s at the start.",
		processorName(string(cpus)), runtime.NumCPU(), unix.ByteSliceToString(name.Release[:]),
		strings.TrimSpace(first), strings.Fields(string(load))[0]), nil
}

// processorName is the model in the text of /proc/cpuinfo, or the architecture
// where it has none.
func processorName(cpuinfo string) string {
	for line := range strings.Lines(cpuinfo) {
		key, value, found := strings.Cut(line, ":")
		if found && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}
