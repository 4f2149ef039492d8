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
// no remains. The error names the file and the cause.
func Replace(path string, write func(io.Writer) error) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
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
	buffer := bufio.NewWriterSize(file, 1<<16)
	if err := write(buffer); err != nil {
		return err
	}
	if err := buffer.Flush(); err != nil {
		return err
	}
	// CreateTemp makes files that only their owner may read.
	if err := file.Chmod(0o644); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
