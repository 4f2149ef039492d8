package job

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/pkg/errors"
	"golang.org/x/sys/unix"

	"evenkeel/runtime/profile"
	"evenkeel/runtime/segment"
)

// imagePattern names a node's image; %d are the world and the node.
const imagePattern = "world-%d.node-%d.image"

// directory is a profile's directory, locked: several worlds of a job, and the
// watchers of several nodes, may finish at once.
type directory struct {
	path string
	lock *os.File
}

// openDirectory makes and locks the directory of a job. One of the same name
// that holds another job is left alone, and the next free name taken.
func openDirectory(path string, h *segment.Header) (*directory, error) {
	for n := 1; ; n++ {
		candidate := path
		if n > 1 {
			candidate = fmt.Sprintf("%s-%d", path, n)
		}
		d, mine, err := tryDirectory(candidate, h)
		if err != nil || mine {
			return d, err
		}
		d.close()
	}
}

func tryDirectory(path string, h *segment.Header) (d *directory, mine bool, err error) {
	if err := os.MkdirAll(path, 0o777); err != nil {
		return nil, false, errors.Wrap(err, "cannot make the profile's directory")
	}
	lock, err := lockFile(filepath.Join(path, ".lock"))
	if err != nil {
		return nil, false, errors.Wrap(err, "cannot write in the profile's directory")
	}
	d = &directory{path, lock}
	return d, d.belongs(h), nil
}

// lockFile makes and locks a file that its owner removes before it closes it.
// Who waited for the lock of a file that is removed begins anew.
func lockFile(path string) (*os.File, error) {
	for {
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
		if err != nil {
			return nil, err
		}
		if err := lockWhole(file); err != nil {
			file.Close()
			return nil, errors.Wrap(err, path)
		}
		locked, err := file.Stat()
		if there, other := os.Stat(path); err == nil && other == nil && os.SameFile(locked, there) {
			return file, nil
		}
		file.Close()
	}
}

// lockWhole locks a file, where its file system knows locks.
func lockWhole(file *os.File) error {
	for {
		switch err := unix.Flock(int(file.Fd()), unix.LOCK_EX); {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.ENOLCK), errors.Is(err, unix.EOPNOTSUPP):
			return nil
		default:
			return err
		}
	}
}

// belongs says whether what the directory holds is of this job: of another
// world of it, or of the same run of this one.
func (d *directory) belongs(h *segment.Header) bool {
	for _, path := range imagesIn(d.path) {
		other, err := readHeader(path)
		if err != nil {
			continue // what can't be read is nobody's
		}
		if segment.Text(other.Job[:]) != segment.Text(h.Job[:]) ||
			other.World == h.World && other.SampleSeed != h.SampleSeed {
			return false
		}
	}
	return true
}

func (d *directory) close() {
	os.Remove(d.lock.Name())
	d.lock.Close()
}

func (d *directory) save(h *segment.Header, image []byte) error {
	name := filepath.Join(d.path, fmt.Sprintf(imagePattern, h.World, h.Node))
	return profile.Replace(name, func(w io.Writer) error {
		_, err := w.Write(image)
		return errors.WithStack(err)
	})
}

// others are the nodes of other worlds of the same job. The caller closes them.
func (d *directory) others(h *segment.Header) []*segment.Segment {
	var others []*segment.Segment
	for _, path := range imagesIn(d.path) {
		header, err := readHeader(path)
		if err != nil || header.World == h.World {
			continue
		}
		if node, err := readImage(path); err == nil {
			others = append(others, node)
		}
	}
	return others
}

// imagesIn are the paths of the images in a directory.
func imagesIn(dir string) []string {
	files, _ := os.ReadDir(dir) // a directory that can't be read has none
	var paths []string
	for _, file := range files {
		if ok, _ := filepath.Match("world-*.node-*.image", file.Name()); ok {
			paths = append(paths, filepath.Join(dir, file.Name()))
		}
	}
	return paths
}

// readImages reads the images in a directory. The error is that of the first
// one that can't be read; the others are returned all the same.
func readImages(dir string) ([]*segment.Segment, error) {
	var nodes []*segment.Segment
	var first error
	for _, path := range imagesIn(dir) {
		s, err := readImage(path)
		if err != nil {
			if first == nil {
				first = err
			}
			continue
		}
		nodes = append(nodes, s)
	}
	return nodes, first
}

// readHeader reads no more of an image than who made it.
func readHeader(path string) (*segment.Header, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, errors.Wrap(err, "cannot open a node's image")
	}
	defer file.Close()
	h, err := segment.DecodeHeader(file)
	return h, errors.Wrap(err, path)
}

func readImage(path string) (*segment.Segment, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, errors.Wrap(err, "cannot open a node's image")
	}
	defer file.Close()
	s, err := segment.Decode(file)
	return s, errors.Wrap(err, path)
}
