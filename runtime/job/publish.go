package job

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/pkg/errors"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"evenkeel/runtime/analysis"
	"evenkeel/runtime/history"
	"evenkeel/runtime/profile"
	"evenkeel/runtime/report"
	"evenkeel/runtime/segment"
	"evenkeel/runtime/symbols"
)

// ProfileName is the file in a profile's directory that holds its figures. The
// images of the nodes stand beside it, from which they can be made again.
const ProfileName = "profile.json"

// imagePattern names a node's image; %d are the world and the node.
const imagePattern = "world-%d.node-%d.image"

// Publish makes the profile of a job out of the images of one world's nodes:
// it saves them in the directory, together with those of other worlds of the
// job that are there already, writes profile.json, and, if show is set, the
// summary to stderr. Where the directory can't be written, the profile goes to
// the temporary directory, and a sentence says so.
func Publish(images [][]byte, dir string, stderr *os.File, show bool) error {
	var nodes []*segment.Segment
	for _, image := range images {
		s, err := segment.Decode(bytes.NewReader(image))
		if err != nil {
			return err
		}
		defer s.Close()
		nodes = append(nodes, s)
	}
	if len(nodes) == 0 {
		return errors.New("no node sent its recording: no memory for it")
	}
	first := nodes[0].Header
	out, err := openDirectory(dir, first)
	if err != nil {
		fallback := filepath.Join(os.TempDir(), filepath.Base(dir))
		fmt.Fprintf(stderr, "evenkeel: %v; the profile goes to %s\n", err, fallback)
		if out, err = openDirectory(fallback, first); err != nil {
			fmt.Fprintf(stderr, "evenkeel: %v; the profile is not kept\n", err)
			return summarize(nodes, nil, stderr, show)
		}
	}
	defer out.close()
	for i, n := range nodes {
		if err := out.save(n.Header, images[i]); err != nil {
			fmt.Fprintf(stderr, "evenkeel: %v\n", err)
		}
	}
	return summarize(append(nodes, out.others(first)...), out, stderr, show)
}

// summarize analyses the nodes and tells the result; out is nil where there is
// no directory to write it to.
func summarize(nodes []*segment.Segment, out *directory, stderr *os.File, show bool) error {
	run, err := Assemble(nodes)
	if err != nil {
		return err
	}
	p := analysis.Analyse(run)
	Describe(p, run, nodes)
	options := report.Options{Width: 80}
	if out != nil {
		options.Dir = relative(out.path)
		if err := profile.Write(filepath.Join(out.path, ProfileName), p); err != nil {
			fmt.Fprintf(stderr, "evenkeel: %v\n", err)
			options.Dir = ""
		}
	}
	if !show {
		return nil
	}
	return Show(stderr, p, options)
}

// Show writes the summary in one write, so that it is not torn between other
// lines, with colours where the file is a terminal that wants them.
func Show(w *os.File, p *profile.Profile, options report.Options) error {
	if term.IsTerminal(int(w.Fd())) {
		options.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
		if width, _, err := term.GetSize(int(w.Fd())); err == nil {
			options.Width = width
		}
	}
	var b bytes.Buffer
	if err := report.Summary(&b, p, options); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return errors.Wrap(err, "cannot write the summary")
}

// Describe fills in what the analysis, which knows no files and no clock,
// leaves open: when the job ran, and the source lines of its call sites.
func Describe(p *profile.Profile, run *history.Run, nodes []*segment.Segment) {
	created := time.Unix(0, int64(nodes[0].Header.CreatedRealtimeNs))
	p.Created = created.Format(time.RFC3339)
	paths := map[string]string{} // the profile has base names
	for _, r := range run.Ranks {
		for _, a := range r.Accounts {
			paths[filepath.Base(a.Module)] = a.Module
		}
	}
	resolver := symbols.NewResolver(symbols.DebugRoot)
	for i := range p.CallSites {
		site := &p.CallSites[i]
		offset, err := strconv.ParseUint(site.Offset, 16, 64)
		if err != nil {
			continue
		}
		frame := resolver.Resolve(paths[site.Module], offset)
		site.Function, site.File, site.Line = frame.Function, frame.File, frame.Line
	}
}

// relative is the path as seen from the working directory, if that is shorter.
func relative(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	if rel, err := filepath.Rel(here, path); err == nil && len(rel) < len(path) {
		return rel
	}
	return path
}

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
	lock, err := os.OpenFile(filepath.Join(path, ".lock"), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, false, errors.Wrap(err, "cannot write in the profile's directory")
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		lock.Close()
		return nil, false, errors.Wrap(err, "cannot lock the profile's directory")
	}
	d = &directory{path, lock}
	return d, d.belongs(h), nil
}

// belongs says whether what the directory holds is of this job: of another
// world of it, or of the same run of this one.
func (d *directory) belongs(h *segment.Header) bool {
	for _, n := range d.nodes() {
		other := n.Header
		same := segment.Text(other.Job[:]) == segment.Text(h.Job[:]) &&
			(other.World != h.World || other.SampleSeed == h.SampleSeed)
		n.Close()
		if !same {
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

// nodes reads all images in the directory; what can't be read is left out.
func (d *directory) nodes() []*segment.Segment {
	nodes, _ := readImages(d.path)
	return nodes
}

// others are the nodes of other worlds of the same job.
func (d *directory) others(h *segment.Header) []*segment.Segment {
	var others []*segment.Segment
	for _, n := range d.nodes() {
		if n.Header.World != h.World {
			others = append(others, n)
		}
	}
	return others
}

// readImages reads the images in a directory. The error is that of the first
// one that can't be read; the others are returned all the same.
func readImages(dir string) ([]*segment.Segment, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "world-*.node-*.image"))
	if err != nil {
		return nil, errors.Wrap(err, "cannot look into the profile's directory")
	}
	var nodes []*segment.Segment
	var first error
	for _, path := range paths {
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

func readImage(path string) (*segment.Segment, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, errors.Wrap(err, "cannot open a node's image")
	}
	defer file.Close()
	s, err := segment.Decode(file)
	return s, errors.Wrap(err, path)
}
