package shm

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/pkg/errors"
	"golang.org/x/sys/unix"

	"evenkeel/runtime/fabric"
)

// Options are what can be chosen. The zero Options are the defaults. All tasks
// of a job give the same.
type Options struct {
	// Directory is where the node's shared memory is; empty: /dev/shm.
	Directory string
	// Slots is how many packets fit a FIFO, a power of two from 4; 0: 64.
	Slots int
	// Buffer is how many bytes fit a shadow buffer, and so a packet: a multiple of
	// 64, at most 8 MiB; 0: 8192.
	Buffer int
	// Spin is how long Wait looks before it sleeps.
	Spin time.Duration
}

func (o Options) complete() (Options, error) {
	if o.Directory == "" {
		o.Directory = "/dev/shm"
	}
	if o.Slots == 0 {
		o.Slots = 64
	}
	if o.Buffer == 0 {
		o.Buffer = 8192
	}
	if o.Slots < 4 || o.Slots > 1<<20 || o.Slots&(o.Slots-1) != 0 {
		return o, errors.Errorf("a FIFO can't have %d slots: it takes a power of two from 4 to %d", o.Slots, 1<<20)
	}
	if o.Buffer < lineSize || o.Buffer > 8<<20 || o.Buffer%lineSize != 0 {
		return o, errors.Errorf("a shadow buffer can't have %d bytes: it takes a multiple of %d, at most %d",
			o.Buffer, lineSize, 8<<20)
	}
	return o, nil
}

// Place names what the tasks of a node have in common, and no others: this
// kernel, since it was started, and the file system of the directory.
func Place(directory string) (string, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", errors.Wrap(err, "finding out which node this is")
	}
	var s unix.Stat_t
	if err := unix.Stat(directory, &s); err != nil {
		return "", errors.Wrapf(err, "looking at %s", directory)
	}
	return fmt.Sprintf("%s %d %d", strings.TrimSpace(string(boot)), s.Dev, s.Ino), nil
}

// Join makes the FIFOs of each node, and gives each task its end of them. It is
// collective over all tasks of the job, also those that are alone on their
// node. Where it fails it fails on all tasks of a node.
//
// The memory has a name only until all tasks of the node have opened it, so
// that nothing is left behind, however they end.
func Join(m fabric.Meeting, o Options) (*Fabric, error) {
	o, err := o.complete()
	place := ""
	if err == nil {
		place, err = Place(o.Directory)
	}
	var node []fabric.Task
	places, met := m.Exchange(told(place, err))
	if met != nil {
		return nil, met
	}
	if err == nil {
		for task, said := range places {
			if other, err := heard(said); err == nil && other == place {
				node = append(node, fabric.Task(task))
			}
		}
		if len(node) > maxTasks {
			err = errors.Errorf("%d tasks on a node are more than the %d that its FIFOs can serve", len(node), maxTasks)
		}
	}

	name, leads := "", err == nil && node[0] == m.Self()
	if leads {
		name, err = create(o, len(node))
	}
	names, met := m.Exchange(told(name, err))
	if leads && name != "" {
		defer os.RemoveAll(name)
	}
	if met != nil {
		return nil, met
	}
	var f *Fabric
	if err == nil {
		name, err = heard(names[node[0]])
	}
	if err == nil {
		f, err = open(name, o, node, m.Self())
	}
	opened, met := m.Exchange(told("", err))
	if err == nil {
		err = met
	}
	for _, task := range node {
		if err == nil {
			_, err = heard(opened[task])
			err = errors.WithMessagef(err, "task %d", task)
		}
	}
	if err != nil && f != nil {
		f.Close()
		f = nil
	}
	return f, errors.WithMessage(err, "the node's injection FIFOs")
}

// told is what a task says in a meeting: what it has, or why it has nothing.
func told(what string, err error) []byte {
	if err != nil {
		return []byte("!" + err.Error())
	}
	return []byte("=" + what)
}

func heard(said []byte) (string, error) {
	if len(said) == 0 || said[0] != '=' {
		return "", errors.New(strings.TrimPrefix(string(said), "!"))
	}
	return string(said[1:]), nil
}

// create makes a directory with the area of so many tasks, and their doorbells.
func create(o Options, tasks int) (name string, err error) {
	name, err = os.MkdirTemp(o.Directory, "evenkeel-fifos-")
	if err != nil {
		return "", errors.Wrap(err, "making a directory for shared memory")
	}
	defer func() {
		if err != nil {
			os.RemoveAll(name)
			name = ""
		}
	}()
	size, control := areaSize(o, tasks)
	file, err := os.OpenFile(filepath.Join(name, "area"), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0600)
	if err != nil {
		return name, errors.Wrap(err, "making shared memory")
	}
	defer file.Close()
	if err := file.Truncate(size); err != nil {
		return name, errors.Wrapf(err, "making %d bytes of shared memory", size)
	}
	if err := reserve(int(file.Fd()), 0, control); err != nil {
		return name, errors.WithMessagef(err, "in %s", o.Directory)
	}
	memory, err := unix.Mmap(int(file.Fd()), 0, int(control), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return name, errors.Wrap(err, "mapping shared memory")
	}
	writeHeader(unsafe.Pointer(&memory[0]), o, tasks)
	if err := unix.Munmap(memory); err != nil {
		return name, errors.Wrap(err, "unmapping shared memory")
	}
	for number := range tasks {
		if err := unix.Mkfifo(bellName(name, number), 0600); err != nil {
			return name, errors.Wrap(err, "making a doorbell")
		}
	}
	return name, nil
}

func bellName(directory string, number int) string {
	return filepath.Join(directory, fmt.Sprintf("bell%d", number))
}

// reserve makes room for a part of the area now, so that a full /dev/shm is an
// error here and not a SIGBUS later.
func reserve(fd int, offset, bytes int64) error {
	for {
		err := unix.Fallocate(fd, 0, offset, bytes)
		if err != unix.EINTR {
			return errors.Wrapf(err, "there is no room for %d bytes of shared memory: make it larger, or the FIFOs smaller", bytes)
		}
	}
}

// open maps the area and opens the doorbells.
func open(name string, o Options, node []fabric.Task, self fabric.Task) (*Fabric, error) {
	f := &Fabric{self: self, tasks: node, number: slices.Index(node, self), first: node[0], buffer: o.Buffer, area: -1}
	f.numbers = make([]int32, node[len(node)-1]-node[0]+1)
	for i := range f.numbers {
		f.numbers[i] = -1
	}
	for number, task := range node {
		f.numbers[task-node[0]] = int32(number)
	}
	if err := f.open(name, o); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (f *Fabric) open(name string, o Options) error {
	for number := range f.tasks {
		bell, err := unix.Open(bellName(name, number), unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			return errors.Wrap(err, "opening a doorbell")
		}
		f.bells = append(f.bells, bell)
	}
	var err error
	f.area, err = unix.Open(filepath.Join(name, "area"), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return errors.Wrap(err, "opening shared memory")
	}
	size, _ := areaSize(o, len(f.tasks))
	var s unix.Stat_t
	if err := unix.Fstat(f.area, &s); err != nil || s.Size != size {
		return errors.Errorf("the tasks of this node want FIFOs of different sizes: %d bytes are needed here, there are %d",
			size, s.Size)
	}
	f.memory, err = unix.Mmap(f.area, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return errors.Wrapf(err, "mapping %d bytes of shared memory", size)
	}
	if err := f.attach(o); err != nil {
		return err
	}
	return f.Open(o.Spin, f)
}
