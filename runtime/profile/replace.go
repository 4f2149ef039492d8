package profile

import (
	"bufio"
	"io"
	"os"
	"path/filepath"

	"github.com/pkg/errors"
)

// Replace writes a file through write, and puts it in its place only when it
// is complete: a reader sees the old file or the new one, and a failure (a full
// disk, a directory that may not be written) leaves what was there before and
// no remains. What is not a file but a device or a pipe (/dev/stdout) stays and
// is written into, and a link stays one. The error names the file and the cause.
func Replace(path string, write func(io.Writer) error) (err error) {
	switch info, err := os.Stat(path); {
	case err != nil || info.Mode().IsRegular():
	case info.IsDir():
		return errors.Errorf("cannot write %s: it is a directory; name a file in it", path)
	default:
		return errors.Wrapf(writeInto(path, write), "cannot write %s", path)
	}
	place := path
	if behind, err := filepath.EvalSymlinks(path); err == nil {
		place = behind
	}
	file, err := os.CreateTemp(filepath.Dir(place), "."+filepath.Base(place)+".*")
	if err != nil {
		return errors.Wrapf(err, "cannot write %s", path)
	}
	defer func() {
		if err != nil {
			err = errors.Wrapf(err, "cannot write %s", path)
			file.Close()
			os.Remove(file.Name())
		}
	}()
	if err := writeBuffered(file, write); err != nil {
		return err
	}
	// CreateTemp makes files that only their owner may read.
	if err := file.Chmod(0o644); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	return os.Rename(file.Name(), place)
}

func writeInto(path string, write func(io.Writer) error) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	return writeBuffered(file, write)
}

func writeBuffered(file *os.File, write func(io.Writer) error) error {
	buffer := bufio.NewWriterSize(file, 1<<16)
	if err := write(buffer); err != nil {
		return err
	}
	return buffer.Flush()
}
