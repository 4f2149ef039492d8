package symbols

import "debug/dwarf"

// body is the machine code of a function.
type body struct {
	span
	entry dwarf.Offset
}

// Which functions of a unit to look at. The outermost ones are quick to find;
// nested ones (Fortran's internal procedures, local classes) are looked for
// where none of the outermost fits.
const (
	outermost = iota
	nested
)

// find returns the frame of the instruction at pc as far as the debug
// information knows.
func (d *debugInfo) find(pc uint64) Frame {
	var frame Frame
	for _, u := range d.units {
		if !contain(u.code, pc) {
			continue
		}
		if u.lines == nil {
			u.lines = d.readLines(u)
		}
		found := d.frame(u, d.callChain(u, pc), pc)
		if found.Function != "" {
			return found
		}
		// Units of assembler code have lines and no functions.
		if frame.Line == 0 {
			frame = found
		}
	}
	return frame
}

// callChain returns the entries of the function around pc and of the calls
// inlined there, from the outermost inwards; nil if there is none.
func (d *debugInfo) callChain(u *unit, pc uint64) []*dwarf.Entry {
	for _, depth := range []int{outermost, nested} {
		if !u.read[depth] {
			u.bodies[depth], u.read[depth] = d.readBodies(u, depth), true
		}
		for _, b := range u.bodies[depth] {
			if b.contains(pc) {
				return d.inlinedCalls(u, b.entry, pc)
			}
		}
	}
	return nil
}

func (d *debugInfo) readBodies(u *unit, depth int) []body {
	var bodies []body
	d.walk(u, u.head.Offset, func(entry *dwarf.Entry) bool {
		switch entry.Tag {
		case dwarf.TagSubprogram:
			for _, s := range d.spans(entry) {
				bodies = append(bodies, body{s, entry.Offset})
			}
			return depth == nested
		case dwarf.TagClassType, dwarf.TagStructType, dwarf.TagUnionType:
			return depth == nested
		}
		return true
	})
	return bodies
}

func (d *debugInfo) inlinedCalls(u *unit, function dwarf.Offset, pc uint64) []*dwarf.Entry {
	var chain []*dwarf.Entry
	d.walk(u, function, func(entry *dwarf.Entry) bool {
		block := entry.Tag == dwarf.TagLexDwarfBlock
		if !block && entry.Tag != dwarf.TagInlinedSubroutine && entry.Offset != function {
			return false
		}
		here := contain(d.spans(entry), pc)
		if here && !block {
			chain = append(chain, entry)
		}
		return here
	})
	return chain
}

// frame names a chain of calls: the instruction belongs to the last of it,
// each of the others holds the call of the next.
func (d *debugInfo) frame(u *unit, chain []*dwarf.Entry, pc uint64) Frame {
	var frame Frame
	frame.File, frame.Line = u.lines.find(pc)
	for last := len(chain) - 1; last > 0 && d.artificial(chain[last]); last-- {
		frame.File, frame.Line = u.callOf(chain[last])
		chain = chain[:last]
	}
	for i := len(chain) - 1; i >= 0; i-- {
		name := d.name(chain[i], 0)
		if i == len(chain)-1 {
			frame.Function = name
			continue
		}
		file, line := u.callOf(chain[i+1])
		frame.Inlined = append(frame.Inlined, Frame{Function: name, File: file, Line: line})
	}
	return frame
}

// callOf is where an inlined function was called.
func (u *unit) callOf(entry *dwarf.Entry) (file string, line int) {
	number, _ := entry.Val(dwarf.AttrCallFile).(int64)
	at, _ := entry.Val(dwarf.AttrCallLine).(int64)
	return u.lines.file(number), max(0, int(at))
}

// artificial says whether an inlined function's author wants it to count as a part of its
// caller (gcc's attribute of that name), as small functions in headers do.
func (d *debugInfo) artificial(entry *dwarf.Entry) bool {
	const enough = 8 // a damaged file can lead in a circle
	for range enough {
		if artificial, _ := entry.Val(dwarf.AttrArtificial).(bool); artificial {
			return true
		}
		offset, ok := entry.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset)
		if !ok {
			return false
		}
		reader := d.data.Reader()
		reader.Seek(offset)
		origin, err := reader.Next()
		if err != nil || origin == nil {
			return false
		}
		entry = origin
	}
	return false
}

// name returns the name of a function's entry. A copy of a function, and one
// defined outside of its class, refer to another entry for their name.
func (d *debugInfo) name(entry *dwarf.Entry, steps int) string {
	if link, ok := entry.Val(dwarf.AttrLinkageName).(string); ok {
		if name, mangled := demangled(link); mangled {
			return name
		}
	}
	const enough = 8 // a damaged file can lead in a circle
	for _, attribute := range []dwarf.Attr{dwarf.AttrAbstractOrigin, dwarf.AttrSpecification} {
		if offset, ok := entry.Val(attribute).(dwarf.Offset); ok && steps < enough {
			reader := d.data.Reader()
			reader.Seek(offset)
			if origin, err := reader.Next(); err == nil && origin != nil {
				return d.name(origin, steps+1)
			}
		}
	}
	name, _ := entry.Val(dwarf.AttrName).(string)
	return name
}
