package job

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/pkg/errors"
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

// Publish makes the profile of a job out of what one world's nodes recorded: its
// own one, whose rings are drained, and the images of the others. It saves all
// images in the directory, together with those of other worlds of the job that
// are there already, writes profile.json, and, if show is set, the summary to
// stderr. Where the directory can't be written, or has no room, the profile
// goes to one in the temporary directory, and a sentence says so.
func Publish(own *segment.Segment, others [][]byte, dir string, stderr *os.File, show bool) error {
	var image bytes.Buffer
	if err := own.Encode(&image); err != nil {
		return err
	}
	nodes, images := []*segment.Segment{own}, [][]byte{image.Bytes()}
	for _, other := range others {
		s, err := segment.Decode(bytes.NewReader(other))
		if err != nil {
			return err
		}
		defer s.Close()
		nodes, images = append(nodes, s), append(images, other)
	}
	p, err := figures(nodes)
	if err != nil {
		return err
	}
	out, err := keep(p, nodes, images, dir)
	if err != nil {
		var second error
		if out, second = keepElsewhere(p, nodes, images, dir); second != nil {
			fmt.Fprintf(stderr, "evenkeel: %v; the profile is not kept (%v)\n", err, second)
		} else {
			fmt.Fprintf(stderr, "evenkeel: %v; the profile goes to %s\n", err, out)
		}
	}
	if !show {
		return nil
	}
	return Show(stderr, p, report.Options{Width: 80, Dir: relative(out)})
}

// figures analyses what the nodes recorded.
func figures(nodes []*segment.Segment) (*profile.Profile, error) {
	run, err := Assemble(nodes)
	if err != nil {
		return nil, err
	}
	p := analysis.Analyse(run)
	Describe(p, run, nodes)
	return p, nil
}

// keep saves the images and the profile in the directory, or in one beside it
// if that holds another job, and returns which. Where images of other worlds
// of the job are there already, the profile becomes that of all of them.
func keep(p *profile.Profile, nodes []*segment.Segment, images [][]byte, path string) (string, error) {
	out, err := openDirectory(path, nodes[0].Header)
	if err != nil {
		return "", err
	}
	defer out.close()
	for i, n := range nodes {
		if err := out.save(n.Header, images[i]); err != nil {
			return "", err
		}
	}
	others := out.others(nodes[0].Header)
	defer CloseAll(others)
	if len(others) > 0 {
		whole, err := figures(slices.Concat(nodes, others))
		if err != nil {
			return "", err
		}
		*p = *whole
	}
	return out.path, profile.Write(filepath.Join(out.path, ProfileName), p)
}

// keepElsewhere keeps the profile in a new directory for temporary files.
func keepElsewhere(p *profile.Profile, nodes []*segment.Segment, images [][]byte, path string) (string, error) {
	dir, err := os.MkdirTemp("", filepath.Base(path)+"-*")
	if err != nil {
		return "", errors.Wrap(err, "cannot make a directory for it")
	}
	return keep(p, nodes, images, dir)
}

// Show writes the summary in one write, so that it is not torn between other
// lines, with colours where the file is a terminal that wants them, and in the
// characters of the locale.
func Show(w *os.File, p *profile.Profile, options report.Options) error {
	if term.IsTerminal(int(w.Fd())) {
		options.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
		if width, _, err := term.GetSize(int(w.Fd())); err == nil {
			options.Width = width
		}
	}
	options.ASCII = report.ASCII(os.Getenv)
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
	p.CallSites = analysis.JoinLines(p.CallSites)
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
