package symbols

import (
	"debug/dwarf"
	"debug/elf"
	"encoding/binary"
	"math"
)

// debugInfo is a module's DWARF information. Of each compilation unit only the
// head is read at first; what is inside is read when a call site lies in it.
type debugInfo struct {
	data  *dwarf.Data
	code  []span
	units []*unit
}

// unit is one compilation unit: mostly one source file with all it includes.
type unit struct {
	head   *dwarf.Entry
	end    dwarf.Offset // of its entries
	code   []span
	bodies [2][]body // outermost functions; all functions, nested ones too
	read   [2]bool   // which of the two has been
	lines  *lineTable
}

// readDebugInfo returns nil if the file has no DWARF that can be read.
func readDebugInfo(file *elf.File, code []span) *debugInfo {
	// elf.File.DWARF would read all of the debug sections; locations, macros
	// and the like are as large as the rest and of no use here.
	section := func(name string) []byte {
		s := file.Section(".debug_" + name)
		if s == nil || s.Type == elf.SHT_NOBITS {
			return nil
		}
		data, err := s.Data()
		if err != nil {
			return nil
		}
		return data
	}
	info := section("info")
	if len(info) == 0 {
		return nil
	}
	data, err := dwarf.New(section("abbrev"), nil, nil, info, section("line"), nil, section("ranges"), section("str"))
	if err != nil {
		return nil
	}
	for _, name := range []string{"addr", "line_str", "str_offsets", "rnglists"} {
		if err := data.AddSection(".debug_"+name, section(name)); err != nil {
			return nil
		}
	}
	d := &debugInfo{data: data, code: code}
	d.readUnits(info, file.ByteOrder)
	return d
}

// readUnits reads the head of each unit. debug/dwarf knows where units begin
// but does not tell, and finding out through its Reader would mean reading
// every entry, so the lengths in .debug_info are followed here.
func (d *debugInfo) readUnits(info []byte, order binary.ByteOrder) {
	reader := d.data.Reader()
	for at := uint64(0); at+12 <= uint64(len(info)); {
		length, size := uint64(order.Uint32(info[at:])), uint64(4)
		if length == 0xffffffff { // the 64-bit form
			length, size = order.Uint64(info[at+4:]), 12
		}
		begin, end := at+size, at+size+length
		if length < 7 || end < begin || end > uint64(len(info)) || end > math.MaxUint32 {
			return
		}
		if entries := begin + headSize(info[begin:end], order, size == 12); entries < end {
			reader.Seek(dwarf.Offset(entries))
			if head, err := reader.Next(); err == nil && head != nil {
				d.addUnit(head, dwarf.Offset(end))
			}
		}
		at = end
	}
}

// headSize returns the size of a unit's header behind its length.
func headSize(unit []byte, order binary.ByteOrder, wide bool) uint64 {
	offset := uint64(4)
	if wide {
		offset = 8
	}
	const version, addressSize, unitType = 2, 1, 1
	if order.Uint16(unit) < 5 {
		return version + offset + addressSize
	}
	size := version + unitType + addressSize + offset
	switch unit[2] {
	case 4, 5: // skeleton, split compile: an id
		size += 8
	case 2, 6: // type, split type: a signature and an offset
		size += 8 + offset
	}
	return size
}

func (d *debugInfo) addUnit(head *dwarf.Entry, end dwarf.Offset) {
	if head.Tag != dwarf.TagCompileUnit && head.Tag != dwarf.TagSkeletonUnit {
		return
	}
	if code := d.spans(head); len(code) > 0 {
		d.units = append(d.units, &unit{head: head, end: end, code: code})
	}
}

// spans returns the addresses of an entry. Functions that the linker has
// discarded keep their debug information, at address 0 or at the top: they
// are left out, as they would pose as what lies there.
func (d *debugInfo) spans(entry *dwarf.Entry) []span {
	ranges, err := d.data.Ranges(entry)
	if err != nil {
		return nil
	}
	var spans []span
	for _, r := range ranges {
		if r[0] < r[1] && contain(d.code, r[0]) {
			spans = append(spans, span{r[0], r[1]})
		}
	}
	return spans
}

// walk calls visit for the entry at root, which lies in u, and the entries
// below it; visit says whether to go on below an entry. It ends early where
// the information is damaged.
func (d *debugInfo) walk(u *unit, root dwarf.Offset, visit func(*dwarf.Entry) bool) {
	reader := d.data.Reader()
	reader.Seek(root)
	depth, visible := 0, math.MaxInt // entries deeper than visible are passed over
	for next := root; ; {
		entry, err := reader.Next()
		if err != nil || entry == nil {
			return
		}
		if entry.Tag == 0 { // ends a list of children
			if depth--; depth <= 0 {
				return
			}
			continue
		}
		// A damaged reference to a sibling could lead back: offsets must grow.
		if entry.Offset < next || entry.Offset >= u.end {
			return
		}
		next = entry.Offset + 1
		if depth <= visible {
			visible = math.MaxInt
			if !visit(entry) && entry.Children {
				if sibling, ok := entry.Val(dwarf.AttrSibling).(dwarf.Offset); ok && depth > 0 && sibling < u.end {
					reader.Seek(sibling)
					continue
				}
				visible = depth
			}
		}
		if entry.Children {
			depth++
		} else if depth == 0 {
			return
		}
	}
}
