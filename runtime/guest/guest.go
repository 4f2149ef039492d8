// Package guest runs an idle program beside one rank, and sees to it that nothing
// of it is left when the rank is gone, whatever the rank died of.
//
// The rank itself stops and continues the program, by its process group: nothing
// stands between a wait and a signal. What the rank can't do is to clean up after
// its own death, so this runs in a process of its own, asleep in the lock on the
// rank's byte of the node segment (see runtime/job on locks).
package guest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pkg/errors"
	"golang.org/x/sys/unix"
)

// Guest is what to run, and for whom.
type Guest struct {
	Command string // for /bin/sh
	Segment string // path of the node segment
	Rank    int    // the rank's number on the node
	CPUs    []int  // where it may run
	Log     string // gets what the program writes; removed if that is nothing
}

// The program begins stopped: it runs first when the rank first waits.
const beginStopped = `kill -STOP $$; eval "$1"`

// Run starts the program, tells its process group on `ready` as a line, once it
// is there and stopped, and returns when the rank is gone, or the program and all
// that it started, which is then true of both. The error is of a program that
// could not be started or that ended with another status than 0 by itself.
// It changes the calling process for good: its signals, and whose orphans it gets.
func (g Guest) Run(ready io.Writer) error {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)
	// The death signal of the program is that of the thread which started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return errors.Wrap(err, "the orphans of an idle program")
	}
	segment, err := os.OpenFile(g.Segment, os.O_RDWR, 0)
	if err != nil {
		return errors.Wrap(err, "the segment of the job that an idle program is for")
	}
	defer segment.Close()
	// The kernel gives the lock when the rank has let go of its byte.
	rankGone := make(chan struct{})
	go func() {
		lock := unix.Flock_t{Type: unix.F_RDLCK, Start: int64(g.Rank), Len: 1}
		for unix.FcntlFlock(segment.Fd(), unix.F_SETLKW, &lock) == unix.EINTR {
		}
		lock.Type = unix.F_UNLCK // nobody is to take us for the rank
		unix.FcntlFlock(segment.Fd(), unix.F_SETLK, &lock)
		close(rankGone)
	}()
	pid, err := g.start()
	if err != nil {
		return err
	}
	defer killAll(pid)
	stopped := make(chan error, 1)
	go func() { stopped <- g.keepOutOfTheWay(pid) }()
	select {
	case <-rankGone:
		return nil
	case err := <-stopped:
		if err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintf(ready, "%d\n", pid); err != nil {
		return errors.Wrap(err, "telling the rank of its idle program")
	}
	programGone := make(chan error, 1)
	go func() { programGone <- waitForEnd(pid) }()
	select {
	case <-rankGone:
		return nil
	case err := <-programGone:
		return errors.WithMessagef(err, "the idle program %q", g.Command)
	}
}

// start starts the program, which will stop itself, and returns its process, which
// leads a group of that number.
func (g Guest) start() (int, error) {
	log, err := os.OpenFile(g.Log, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		if log, err = os.OpenFile(os.DevNull, os.O_WRONLY, 0); err != nil {
			return 0, errors.Wrap(err, "output of an idle program")
		}
	}
	defer log.Close()
	nothing, err := os.Open(os.DevNull)
	if err != nil {
		return 0, errors.Wrap(err, "input of an idle program")
	}
	defer nothing.Close()
	pid, err := syscall.ForkExec("/bin/sh", []string{"sh", "-c", beginStopped, "sh", g.Command}, &syscall.ProcAttr{
		Env:   os.Environ(),
		Files: []uintptr{nothing.Fd(), log.Fd(), log.Fd()},
		Sys:   &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return 0, errors.Wrap(err, "starting the idle program")
	}
	return pid, nil
}

// keepOutOfTheWay waits until the program has stopped itself, and gives it the
// lowest priority there is on the rank's cores, which all that it starts inherits.
func (g Guest) keepOutOfTheWay(pid int) error {
	var info unix.Siginfo
	if err := again(func() error { return unix.Waitid(unix.P_PID, pid, &info, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil) }); err != nil {
		return errors.Wrap(err, "waiting for the idle program to begin")
	}
	var cpus unix.CPUSet
	for _, cpu := range g.CPUs {
		cpus.Set(cpu)
	}
	if err := unix.SchedSetaffinity(pid, &cpus); err != nil {
		return errors.Wrap(err, "keeping the idle program on the rank's cores")
	}
	attributes := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}
	return errors.Wrap(unix.SchedSetAttr(pid, &attributes, 0), "giving the idle program the lowest priority")
}

// waitForEnd returns when the program has ended, and all that it started. It is
// not reaped yet, so that its number stays its group's.
func waitForEnd(pid int) error {
	var info unix.Siginfo
	again(func() error { return unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT, nil) })
	for len(childrenButZombie()) > 0 {
		time.Sleep(100 * time.Millisecond) // of programs that leave others behind
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, syscall.WNOHANG, nil); err != nil {
		return errors.Wrap(err, "its end")
	}
	switch {
	case status.Signaled() && status.Signal() == syscall.SIGKILL:
		return nil // by the rank, at its end
	case status.Signaled():
		return errors.Errorf("was killed by %s", status.Signal())
	case status.ExitStatus() != 0:
		return errors.Errorf("ended with status %d", status.ExitStatus())
	}
	return nil
}

// killAll ends the group, and whatever left it: what loses its parent becomes a
// child of this process.
func killAll(pid int) {
	syscall.Kill(-pid, syscall.SIGKILL)
	for {
		for _, child := range childrenButZombie() {
			syscall.Kill(child, syscall.SIGKILL)
		}
		if _, err := syscall.Wait4(-1, nil, 0, nil); err == syscall.ECHILD {
			return
		}
	}
}

// childrenButZombie are the children of this process that live.
func childrenButZombie() []int {
	var children []int
	paths, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		// 12 (name, of any characters) S 1 ...
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if len(fields) < 2 || fields[0] == "Z" || fields[1] != strconv.Itoa(os.Getpid()) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			children = append(children, pid)
		}
	}
	return children
}

func again(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

// Tidy removes the log if the program wrote nothing.
func (g Guest) Tidy() {
	if info, err := os.Stat(g.Log); err == nil && info.Mode().IsRegular() && info.Size() == 0 {
		os.Remove(g.Log)
	}
}
