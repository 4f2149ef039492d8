// Package hosts makes several hosts on one machine, for tests that need more than one node.
//
// A host is a set of Linux namespaces: it has its own name, network interface, /dev/shm, /run and System V
// IPC, and on request its own monotonic clock. They last as long as the host, so that programs that run on it
// one after the other, or at once, meet in the same /dev/shm. All other files are shared between the hosts
// and the machine, as on a cluster with a network file system.
//
//	host0 eth0 10.0.0.1 ──┐
//	host1 eth0 10.0.0.2 ──┼── bridge, in a network namespace of its own
//	host2 eth0 10.0.0.3 ──┘
//
// Nothing of it can be seen on the real machine: no interface, no mount, no named namespace. So any number of
// clusters can exist at once, each with the same names and addresses. The processes of a cluster share a PID
// namespace whose first process ends when its creator closes the cluster or dies; the kernel then ends all
// others, and with them everything that was made. A cluster can't leave anything behind.
//
// mpirun, started on a host, finds all hosts and their slots by itself. It starts its daemons on the others
// through an agent that, like ssh, hands over a command line and nothing of the environment.
package hosts

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pkg/errors"
)

const (
	maximumCount = 250
	// switchHolder is the cluster's process 1. It holds the network namespace of the bridge.
	switchHolder = "1"
	// patience is how long a cancelled command has to end by itself before it is killed.
	patience = 10 * time.Second
)

// Spec describes a cluster.
type Spec struct {
	// Count is the number of hosts, 1 to 250.
	Count int
	// Slots is the number of ranks that mpirun places on a host before it goes to the next; 0 means 1.
	Slots int
	// ClockOffset is added to CLOCK_MONOTONIC and CLOCK_BOOTTIME as the host of that index sees them, to the
	// nanosecond. It may be negative as long as the clocks stay above zero. CLOCK_REALTIME and the processor's
	// time stamp counter can't be offset and are those of the machine.
	ClockOffset map[int]time.Duration
}

// Cluster is a running set of hosts. Its methods may be called from several goroutines.
type Cluster struct {
	count     int
	tools     tools
	first     *exec.Cmd      // process 1 of the cluster
	lifeline  io.WriteCloser // the cluster lives until this is closed
	stderr    bytes.Buffer   // of process 1; complete once it has ended
	holders   []string       // per host, the number within the cluster of the process that holds its namespaces
	closeOnce func() error
}

// New makes a cluster that lasts until Close or the end of the test. Where hosts can't be made it ends the
// test as Require does; a spec that makes no sense, or a step that fails, is fatal to the test.
func New(t testing.TB, spec Spec) *Cluster {
	t.Helper()
	Require(t)
	if len(spec.ClockOffset) > 0 {
		requireTimeNamespaces(t)
	}
	c, err := Start(t.TempDir(), spec)
	if err != nil {
		t.Fatalf("make %d hosts: %v", spec.Count, err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close the cluster: %v", err)
		}
	})
	return c
}

// Name returns the host's name, which is also what mpirun calls it.
func (c *Cluster) Name(host int) string { return name(host) }

// Count returns the number of hosts.
func (c *Cluster) Count() int { return c.count }

// Command returns a command that runs on one host, in the working directory and with the environment of the
// test. Signals sent to the command reach the program, and its exit status or fatal signal is the program's.
// When ctx ends it gets SIGTERM, and SIGKILL when it is still there ten seconds later.
//
// Process numbers that a program on a host sees are those within the cluster, the same on all its hosts. The
// command's Process.Pid is not one of them; to signal a rank, run kill on a host.
func (c *Cluster) Command(ctx context.Context, host int, program string, args ...string) *exec.Cmd {
	return c.enter(ctx, c.holders[host], program, args)
}

// Mpirun returns a command that runs np ranks from host 0, filling each host's slots in turn; more ranks than
// slots are allowed. Each element of env, "NAME=value", is set for the ranks alone, with -x. The arguments are
// what follows on mpirun's command line: further options, the program and its arguments.
//
// Ranks are not bound to cores and give way when idle, since the hosts share one machine's cores; an argument
// --mca overrides it.
func (c *Cluster) Mpirun(ctx context.Context, np int, env []string, args ...string) *exec.Cmd {
	options := []string{"-np", strconv.Itoa(np)}
	for _, variable := range env {
		options = append(options, "-x", variable)
	}
	return c.Command(ctx, 0, "mpirun", append(options, args...)...)
}

// Close ends every process of the cluster and returns when all are gone. Further calls do nothing.
func (c *Cluster) Close() error { return c.closeOnce() }

func name(host int) string { return fmt.Sprintf("host%d", host) }

func (s Spec) check() error {
	if s.Count < 1 || s.Count > maximumCount {
		return errors.Errorf("Spec.Count is %d: it must be 1 to %d", s.Count, maximumCount)
	}
	if s.Slots < 0 {
		return errors.Errorf("Spec.Slots is %d: it can't be negative", s.Slots)
	}
	for host := range s.ClockOffset {
		if host < 0 || host >= s.Count {
			return errors.Errorf("Spec.ClockOffset names host %d: hosts are 0 to %d", host, s.Count-1)
		}
	}
	return nil
}

// Start makes a cluster with its files in dir, or nothing. It lasts until Close or the end of the process.
func Start(dir string, spec Spec) (*Cluster, error) {
	if err := spec.check(); err != nil {
		return nil, err
	}
	tools, err := buildTools(dir)
	if err != nil {
		return nil, err
	}
	c := &Cluster{count: spec.Count, tools: tools}
	c.closeOnce = sync.OnceValue(c.end)

	err = c.makeHosts(spec)
	if err == nil {
		err = c.connect()
	}
	if err == nil {
		err = tools.writeMpirunFiles(c.holders, max(spec.Slots, 1))
	}
	if err != nil {
		if closing := c.Close(); closing != nil {
			err = errors.Wrap(err, closing.Error())
		}
		return nil, err
	}
	return c, nil
}

// makeHosts starts process 1 and learns from it who holds which host.
func (c *Cluster) makeHosts(spec Spec) error {
	hostsFile := filepath.Join(c.tools.dir, "etc-hosts")
	if err := os.WriteFile(hostsFile, []byte(addresses(spec.Count)), 0o644); err != nil {
		return errors.Wrap(err, "write the hosts' /etc/hosts")
	}
	c.first = exec.Command(c.tools.cluster, hostsFile)
	for host := range spec.Count {
		offset := spec.ClockOffset[host].Nanoseconds()
		c.first.Args = append(c.first.Args, fmt.Sprintf("%s=%d", name(host), offset))
	}
	c.first.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespacesOfCluster}
	c.first.Stderr = &c.stderr
	var err error
	if c.lifeline, err = c.first.StdinPipe(); err != nil {
		return errors.Wrap(err, "connect to the cluster's first process")
	}
	output, err := c.first.StdoutPipe()
	if err != nil {
		return errors.Wrap(err, "connect to the cluster's first process")
	}
	if err := c.first.Start(); err != nil {
		return errors.Wrap(err, "start the cluster's first process")
	}

	holderOf := map[string]string{}
	for lines := bufio.NewScanner(output); lines.Scan(); {
		if host, pid, ok := strings.Cut(lines.Text(), " "); ok {
			holderOf[host] = pid
		}
	}
	if len(holderOf) != spec.Count {
		return errors.Errorf("only %d of %d hosts could be made", len(holderOf), spec.Count)
	}
	for host := range spec.Count {
		c.holders = append(c.holders, holderOf[name(host)])
	}
	return nil
}

func (c *Cluster) enter(ctx context.Context, holder, program string, args []string) *exec.Cmd {
	into := []string{"-c", strconv.Itoa(c.first.Process.Pid), holder, program}
	cmd := exec.CommandContext(ctx, c.tools.enter, append(into, args...)...)
	cmd.Env = append(os.Environ(), c.tools.environment()...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = patience
	return cmd
}

func (c *Cluster) end() error {
	if c.first == nil || c.first.Process == nil {
		return nil
	}
	c.lifeline.Close()
	err := c.first.Wait()
	if text := strings.TrimSpace(c.stderr.String()); text != "" {
		return errors.New(text)
	}
	return errors.Wrap(err, "the cluster's first process")
}
