package fabrictest

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/pkg/errors"

	"evenkeel/runtime/fabric"
)

// Directory has processes meet by files in a directory that they share: task
// self of so many. Between, if it is not nil, changes what task 0 tells all
// others of what each said in a round.
func Directory(directory string, self, tasks int, between func(round int, said [][]byte) ([][]byte, error)) fabric.Meeting {
	return &files{directory: directory, self: self, tasks: tasks, between: between}
}

type files struct {
	directory   string
	self, tasks int
	round       int
	between     func(int, [][]byte) ([][]byte, error)
}

func (f *files) Self() fabric.Task { return fabric.Task(f.self) }
func (f *files) Tasks() int        { return f.tasks }

func (f *files) Exchange(mine []byte) ([][]byte, error) {
	defer func() { f.round++ }()
	if err := f.write("said", f.self, mine); err != nil {
		return nil, err
	}
	if f.self == 0 {
		said, err := f.read("said")
		if err == nil && f.between != nil {
			said, err = f.between(f.round, said)
		}
		if err != nil {
			return nil, err
		}
		for task, s := range said {
			if err := f.write("heard", task, s); err != nil {
				return nil, err
			}
		}
	}
	return f.read("heard")
}

func (f *files) name(what string, task int) string {
	return filepath.Join(f.directory, fmt.Sprintf("%s.%d.%d", what, f.round, task))
}

func (f *files) write(what string, task int, data []byte) error {
	name := f.name(what, task)
	if err := os.MkdirAll(f.directory, 0o700); err != nil {
		return errors.Wrap(err, "telling the other tasks")
	}
	if err := os.WriteFile(name+".part", data, 0o600); err != nil {
		return errors.Wrap(err, "telling the other tasks")
	}
	return errors.Wrap(os.Rename(name+".part", name), "telling the other tasks")
}

func (f *files) read(what string) ([][]byte, error) {
	all := make([][]byte, f.tasks)
	for task := range all {
		for begin := time.Now(); ; time.Sleep(time.Millisecond) {
			data, err := os.ReadFile(f.name(what, task))
			if err == nil {
				all[task] = data
				break
			}
			if !os.IsNotExist(err) || time.Since(begin) > patience {
				return nil, errors.Wrapf(err, "waiting for task %d", task)
			}
		}
	}
	return all, nil
}
