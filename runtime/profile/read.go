package profile

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"reflect"

	"github.com/pkg/errors"
)

// Read reads the profile in a file. An error names the file, what is wrong
// with it and what to do.
func Read(path string) (*Profile, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, errors.Wrap(err, "cannot read the profile")
	}
	p, err := Decode(data)
	return p, errors.Wrap(err, path)
}

// Decode reads a profile from the bytes of a profile.json. What it returns
// without an error is consistent: of this format and version, with every index
// in range and the rows of the timeline of one length. It never panics,
// whatever the bytes are.
func Decode(data []byte) (*Profile, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, errors.New("the file is empty: the job ended, or its disk was full, before the profile was written; run it again")
	}
	// The head is read first, so that a newer profile is called newer and not
	// broken.
	var head struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	if err := parse(data, &head); err != nil {
		return nil, err
	}
	switch {
	case head.Format == "":
		return nil, errors.Errorf("this is no evenkeel profile: it has no format, where one has %q; name a profile.json that evenkeel wrote, or the directory that holds one", Format)
	case head.Format != Format:
		return nil, errors.Errorf("this is no evenkeel profile: its format is %.40q, not %q; name a profile.json that evenkeel wrote, or the directory that holds one", head.Format, Format)
	case head.Version > Version:
		return nil, errors.Errorf("the profile is of version %d and this evenkeel reads up to %d: use the evenkeel that wrote it, or a newer one", head.Version, Version)
	case head.Version < 1:
		return nil, errors.Errorf("the profile gives its version as %d, and the first was 1: the file was changed by hand or is damaged", head.Version)
	}
	p := new(Profile)
	if err := parse(data, p); err != nil {
		return nil, err
	}
	if err := p.check(); err != nil {
		return nil, errors.Wrap(err, "the profile contradicts itself, so it was changed or is damaged; run the job again")
	}
	return p, nil
}

// parse is json.Unmarshal with errors for people.
func parse(data []byte, into any) error {
	err := json.Unmarshal(data, into)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &syntax) && breaksOff(data):
		return errors.Errorf("the file breaks off after %d bytes: it was cut short, as by a full disk or a copy that was interrupted; copy it again, or run the job again", len(data))
	case errors.As(err, &syntax):
		line, column := position(data, syntax.Offset)
		return errors.Errorf("this is not JSON at line %d, column %d (%v): name a profile.json that evenkeel wrote", line, column, syntax)
	case errors.As(err, &kind) && kind.Field == "":
		return errors.Errorf("the file holds a JSON %s, not a profile: name a profile.json that evenkeel wrote", kind.Value)
	case errors.As(err, &kind):
		return errors.Errorf("the field %q holds a %s where a %s belongs: the file is no evenkeel profile, or was changed by hand", kind.Field, kind.Value, kind.Type)
	default:
		return errors.Wrap(err, "the file cannot be read as a profile")
	}
}

// breaksOff says whether more bytes could make JSON of data. The error of
// Unmarshal does not: it takes the end within a word for a wrong character.
func breaksOff(data []byte) bool {
	var value json.RawMessage
	return errors.Is(json.NewDecoder(bytes.NewReader(data)).Decode(&value), io.ErrUnexpectedEOF)
}

// position turns a byte offset into a line and a column, both from 1.
func position(data []byte, offset int64) (line, column int) {
	before := data[:min(max(offset-1, 0), int64(len(data)))]
	return 1 + bytes.Count(before, []byte("\n")), len(before) - bytes.LastIndexByte(before, '\n')
}

// Write writes the profile to a file, all of it or, with an error, nothing.
func Write(path string, p *Profile) error {
	if where := notFinite(reflect.ValueOf(p).Elem(), ""); where != "" {
		return errors.Errorf("cannot write %s: the figure %s is not finite, which JSON cannot hold; this is a defect in evenkeel, please report it", path, where)
	}
	return Replace(path, func(w io.Writer) error {
		return json.NewEncoder(w).Encode(p)
	})
}
