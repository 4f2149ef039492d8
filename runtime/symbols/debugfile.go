package symbols

import (
	"bytes"
	"debug/elf"
	"encoding/hex"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/pkg/errors"
)

// debugFile is the separate file with the debug information of a module.
type debugFile struct {
	*elf.File
	file *os.File
}

func (d *debugFile) Close() error { return d.file.Close() }

// openDebugFile finds the separate debug file of a module in the places in
// which gdb looks: by build-id below root, and by the name in .gnu_debuglink
// beside the module, in .debug beside it, and below root. It returns nil if
// there is none that belongs to the module.
func openDebugFile(program *elf.File, path, root string) *debugFile {
	id := buildID(program)
	var candidates []string
	if len(id) > 1 {
		text := hex.EncodeToString(id)
		candidates = append(candidates, filepath.Join(root, ".build-id", text[:2], text[2:]+".debug"))
	}
	link, sum := debugLink(program)
	if link != "" {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
		if absolute, err := filepath.Abs(path); err == nil {
			path = absolute
		}
		dir := filepath.Dir(path)
		candidates = append(candidates, filepath.Join(dir, link), filepath.Join(dir, ".debug", link), filepath.Join(root, dir, link))
	}
	for _, candidate := range candidates {
		if d, err := openMatching(candidate, id, sum); err == nil {
			return d
		}
	}
	return nil
}

// openMatching opens a debug file if it was made from the module: if both have
// a build-id these must be equal, else the checksum that the module holds must
// be that of the file.
func openMatching(path string, id []byte, sum uint32) (*debugFile, error) {
	file, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	debug, err := elf.NewFile(file)
	if err == nil {
		if theirs := buildID(debug); len(id) > 0 && len(theirs) > 0 {
			if !bytes.Equal(id, theirs) {
				err = errors.Errorf("%s belongs to another build", path)
			}
		} else {
			hash := crc32.NewIEEE()
			_, err = io.Copy(hash, file)
			if err == nil && hash.Sum32() != sum {
				err = errors.Errorf("%s has another checksum", path)
			}
		}
	}
	if err != nil {
		file.Close()
		return nil, errors.WithStack(err)
	}
	return &debugFile{debug, file}, nil
}

// buildID returns the build-id that the linker gave to a file, nil if none.
func buildID(f *elf.File) []byte {
	section := f.Section(".note.gnu.build-id")
	if section == nil {
		return nil
	}
	note, err := section.Data()
	// name size, description size, type; "GNU\0"; description
	if err != nil || len(note) < 16 || string(note[12:16]) != "GNU\x00" {
		return nil
	}
	if size := uint64(f.ByteOrder.Uint32(note[4:])); size <= uint64(len(note)-16) {
		return note[16 : 16+size]
	}
	return nil
}

// debugLink returns the file name and checksum in .gnu_debuglink.
func debugLink(f *elf.File) (name string, sum uint32) {
	section := f.Section(".gnu_debuglink")
	if section == nil {
		return "", 0
	}
	data, err := section.Data()
	end := bytes.IndexByte(data, 0)
	if err != nil || end < 1 || len(data) < end+5 {
		return "", 0
	}
	// A name is padded to four bytes; the checksum is the last word.
	name = string(data[:end])
	if strings.ContainsRune(name, filepath.Separator) {
		return "", 0
	}
	return name, f.ByteOrder.Uint32(data[len(data)-4:])
}
