package symbols

import (
	"debug/elf"
	"sort"
)

// symbolTable is the functions of a module by address.
type symbolTable struct{ functions []function }

type function struct {
	span
	name   string
	global bool
}

// add takes in what one of elf.File's methods for reading symbols returns. A
// table that is missing or damaged adds nothing.
func (t *symbolTable) add(read func() ([]elf.Symbol, error)) {
	symbols, err := read()
	if err != nil {
		return
	}
	for _, s := range symbols {
		kind := elf.ST_TYPE(s.Info)
		isFunction := kind == elf.STT_FUNC || kind == elf.STT_GNU_IFUNC
		if isFunction && s.Section != elf.SHN_UNDEF && s.Value+s.Size > s.Value {
			t.functions = append(t.functions, function{span{s.Value, s.Value + s.Size}, s.Name,
				elf.ST_BIND(s.Info) != elf.STB_LOCAL})
		}
	}
}

// sort must be called after the last add. Of several names of one function,
// a global one comes last, and is found.
func (t *symbolTable) sort() {
	sort.SliceStable(t.functions, func(i, j int) bool {
		a, b := t.functions[i], t.functions[j]
		if a.low != b.low {
			return a.low < b.low
		}
		return !a.global && b.global
	})
}

// find returns the linker's name of the function around pc, empty if there is none:
// between two known functions of a stripped library lies what is not known,
// and the nearest name would be a lie.
func (t *symbolTable) find(pc uint64) string {
	// Functions do not nest, so only those that begin at the last address
	// below pc can hold it.
	next := sort.Search(len(t.functions), func(i int) bool { return t.functions[i].low > pc })
	for i := next - 1; i >= 0 && t.functions[i].low == t.functions[next-1].low; i-- {
		if t.functions[i].contains(pc) {
			return t.functions[i].name
		}
	}
	return ""
}
