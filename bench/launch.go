package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/pkg/errors"

	"evenkeel/tests/hosts"
)

// job is a program to run under mpirun.
type job struct {
	ranks   int
	command []string
}

// String is the command as a person would type it, without directories.
func (j job) String() string {
	words := append([]string{"mpirun"}, j.placement()...)
	for _, word := range j.command {
		if filepath.IsAbs(word) {
			word = filepath.Base(word)
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// placement is how mpirun is told to place the ranks: each on a core of its own,
// as long as there are some.
func (j job) placement() []string {
	args := []string{"-np", fmt.Sprint(j.ranks)}
	if j.ranks > runtime.NumCPU() {
		return append(args, "--oversubscribe", "--bind-to", "none")
	}
	return append(args, "--bind-to", "core")
}

// launcher runs jobs.
type launcher struct {
	mpirun    string // name or path
	directory string // where the programs run and write; the profile too
	nice      int    // niceness of the ranks
}

const jobTimeout = 5 * time.Minute

// run runs a job and returns what it printed and how
// long mpirun took. The preload is for the ranks alone, not for mpirun.
func (l launcher) run(ctx context.Context, v variant, j job) (stdout string, wall time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, jobTimeout)
	defer cancel()
	args := j.placement()
	for _, setting := range l.environment(v) {
		args = append(args, "-x", setting)
	}
	if l.nice != 0 {
		args = append(args, "nice", "-n", fmt.Sprint(l.nice))
	}
	command := exec.CommandContext(ctx, l.mpirun, append(args, j.command...)...)
	command.Dir = l.directory
	command.Env = os.Environ()
	if os.Geteuid() == 0 {
		// mpirun refuses to start as root unless it is told twice.
		command.Env = append(command.Env, "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	}
	// SIGTERM, unlike SIGKILL, lets mpirun end its ranks.
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = 10 * time.Second
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs

	begin := time.Now()
	err = command.Run()
	wall = time.Since(begin)
	if err != nil {
		return "", 0, errors.Wrapf(err, "%s with %s\n%s", j, v.name, lastLines(errs.String(), 12))
	}
	return out.String(), wall, nil
}

// on returns what runs a job as run does, but on so many hosts (0: this machine as it
// is), and what ends these.
func (l launcher) on(count, slots int) (run func(context.Context, variant, job) (string, error), end func() error, err error) {
	if count == 0 {
		return func(ctx context.Context, v variant, j job) (string, error) {
			printed, _, err := l.run(ctx, v, j)
			return printed, err
		}, func() error { return nil }, nil
	}
	cluster, err := hosts.Start(l.directory, hosts.Spec{Count: count, Slots: slots})
	if err != nil {
		return nil, nil, errors.WithMessage(err, "hosts, which only root can make")
	}
	return func(ctx context.Context, v variant, j job) (string, error) {
		command := cluster.Mpirun(ctx, j.ranks, l.environment(v), j.command...)
		command.Dir = l.directory
		printed, err := command.Output()
		return string(printed), errors.Wrapf(err, "%s on %d hosts with %s", j, count, v.name)
	}, cluster.Close, nil
}

func (l launcher) environment(v variant) []string {
	if v.preload == "" {
		return v.env
	}
	settings := []string{"LD_PRELOAD=" + v.preload, "EVENKEEL_OUT=" + filepath.Join(l.directory, "profile")}
	return append(settings, v.env...)
}

func lastLines(text string, count int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-count):], "\n")
}
