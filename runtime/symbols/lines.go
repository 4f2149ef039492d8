package symbols

import (
	"debug/dwarf"
	"path/filepath"
	"sort"
)

// lineTable is the source lines of one unit.
type lineTable struct {
	files     []*dwarf.LineFile // nil where a number is not in use
	sequences []sequence
}

// sequence is a stretch of machine code; its rows are ordered by address.
type sequence struct {
	span
	rows []row
}

// row says that the instructions from address on, up to the next row's, come
// from that line.
type row struct {
	address uint64
	file    *dwarf.LineFile
	line    int
}

// readLines reads the lines of a unit; the table is empty if it has none.
func (d *debugInfo) readLines(u *unit) *lineTable {
	t := &lineTable{}
	reader, err := d.data.LineReader(u.head)
	if err != nil || reader == nil {
		return t
	}
	var rows []row
	var entry dwarf.LineEntry
	for reader.Next(&entry) == nil {
		if !entry.EndSequence {
			rows = append(rows, row{entry.Address, entry.File, entry.Line})
			continue
		}
		// As with functions, what the linker discarded is still listed.
		if len(rows) > 0 && contain(d.code, rows[0].address) {
			t.sequences = append(t.sequences, sequence{span{rows[0].address, entry.Address}, rows})
		}
		rows = nil
	}
	t.files = reader.Files()
	return t
}

// find returns file and line of the instruction at pc, empty and 0 if they
// are not known.
func (t *lineTable) find(pc uint64) (string, int) {
	for _, s := range t.sequences {
		if !s.contains(pc) {
			continue
		}
		next := sort.Search(len(s.rows), func(i int) bool { return s.rows[i].address > pc })
		// Line 0 marks what the compiler added: the line before is the nearest.
		for i := next - 1; i >= 0; i-- {
			if r := s.rows[i]; r.line > 0 && r.file != nil {
				return cleaned(r.file.Name), r.line
			}
		}
	}
	return "", 0
}

// file returns the name of the file of that number, empty if there is none.
func (t *lineTable) file(number int64) string {
	if number < 0 || number >= int64(len(t.files)) || t.files[number] == nil {
		return ""
	}
	return cleaned(t.files[number].Name)
}

// cleaned takes "/src/./a.c" to "/src/a.c".
func cleaned(path string) string {
	if path == "" {
		return ""
	}
	return filepath.Clean(path)
}
