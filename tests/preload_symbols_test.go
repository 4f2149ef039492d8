package tests

import (
	"debug/elf"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/c/tables"
)

// exported are the names that a library defines for others.
func exported(t testing.TB, path string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, s := range dynamicSymbols(t, path) {
		if s.Section != elf.SHN_UNDEF && elf.ST_BIND(s.Info) != elf.STB_LOCAL {
			names[s.Name] = elf.ST_TYPE(s.Info) == elf.STT_FUNC
		}
	}
	return names
}

func dynamicSymbols(t testing.TB, path string) []elf.Symbol {
	t.Helper()
	file, err := elf.Open(path)
	require.NoError(t, err)
	defer file.Close()
	symbols, err := file.DynamicSymbols()
	require.NoError(t, err)
	return symbols
}

// libraryOf is the path of a library that a program is linked to.
func libraryOf(t testing.TB, program, library string) string {
	t.Helper()
	out, err := exec.Command("ldd", program).Output()
	require.NoError(t, err)
	found := regexp.MustCompile(`(?m)^\s*` + regexp.QuoteMeta(library) + ` => (\S+)`).FindSubmatch(out)
	require.NotNil(t, found, "%s is not linked to %s:\n%s", program, library, out)
	return string(found[1])
}

// known are the functions of mpi.table by name, true if they are wrapped; of those
// that are new in MPI 4, the ones that libmpi has.
func known(t testing.TB, libmpi map[string]bool) map[string]bool {
	t.Helper()
	functions, unwrapped, err := tables.MPI()
	require.NoError(t, err)
	names := map[string]bool{}
	add := func(name string, wrapped, newer bool) {
		assert.NotContains(t, names, name, "mpi.table names it twice")
		if _, there := libmpi[name]; there || !newer {
			names[name] = wrapped
		}
	}
	for _, f := range functions {
		if !f.Own {
			add(f.Name, true, f.Newer)
		}
	}
	for _, u := range unwrapped {
		assert.NotEmpty(t, u.Reason)
		for _, name := range u.Names {
			add(name, false, u.Newer)
		}
	}
	return names
}

func TestEveryFunctionOfMPIIsWrappedOrSaysWhyNot(t *testing.T) {
	mpi, ours := exportedByMPI(t), exported(t, Library)
	table := known(t, mpi)
	for name, isFunction := range mpi {
		if !isFunction || !strings.HasPrefix(name, "MPI_") {
			continue
		}
		wrapped, listed := table[name]
		assert.True(t, listed, "%s is not in mpi.table", name)
		assert.Equal(t, wrapped, ours[name], "%s: whether libevenkeel.so exports it", name)
	}
	for name := range table {
		assert.Contains(t, mpi, name, "mpi.table names what libmpi does not have")
	}
	inC := regexp.MustCompile(`^MPI_[A-Z][a-z]`)
	for name := range ours {
		if _, there := mpi[name]; inC.MatchString(name) {
			assert.True(t, there, "libmpi does not have %s: a program that looks for it would find ours alone", name)
		}
	}
}

func exportedByMPI(t testing.TB) map[string]bool {
	t.Helper()
	return exported(t, libraryOf(t, Program("calls"), "libmpi.so.40"))
}

// fortranOnly are Fortran functions that have no namesake in C: they compute
// from their arguments and call nothing.
var fortranOnly = regexp.MustCompile(`^mpi_(sizeof_.*|aint_add|aint_diff|f_sync_reg|fortran_.*)$`)

// fortranVariant is a second symbol of a function, for other types of arguments.
var fortranVariant = regexp.MustCompile(`_cptr$`)

func TestEveryFortranSpellingIsWrapped(t *testing.T) {
	table, ours := map[string]bool{}, exported(t, Library)
	named := known(t, exportedByMPI(t))
	for name, wrapped := range named {
		table[strings.ToLower(name)] = wrapped
	}
	spellings := 0
	for library, spelling := range map[string]*regexp.Regexp{
		"libmpi_mpifh.so.40":     regexp.MustCompile(`^(?:(mpi_[a-z0-9_]*[a-z0-9])(?:|_|__)|(MPI_[A-Z0-9_]*[A-Z0-9]))$`),
		"libmpi_usempif08.so.40": regexp.MustCompile(`^(mpi_[a-z0-9_]*[a-z0-9])_f08_()$`),
	} {
		for symbol, isFunction := range exported(t, libraryOf(t, Program("fortran_f08"), library)) {
			match := spelling.FindStringSubmatch(symbol)
			if !isFunction || match == nil {
				continue
			}
			name := strings.ToLower(match[1] + match[2])
			if fortranOnly.MatchString(name) {
				continue
			}
			wrapped, listed := table[fortranVariant.ReplaceAllString(name, "")]
			assert.True(t, listed, "%s in %s is not in mpi.table", symbol, library)
			assert.Equal(t, wrapped, ours[symbol], "%s in %s: whether libevenkeel.so exports it", symbol, library)
			if wrapped {
				spellings++
			}
		}
	}
	functions := 0
	for _, wrapped := range named {
		if wrapped {
			functions++
		}
	}
	assert.GreaterOrEqual(t, spellings, 5*functions, "four spellings and one for mpi_f08 of each function")
}

// What the library needs of MPI it looks up when it is first called: else each
// shell that is preloaded would load libmpi, or not start at all.
func TestLibraryNeedsNothingOfMPI(t *testing.T) {
	file, err := elf.Open(Library)
	require.NoError(t, err)
	defer file.Close()
	needed, err := file.ImportedLibraries()
	require.NoError(t, err)
	for _, library := range needed {
		assert.Regexp(t, `^(lib(c|dl|pthread|gcc_s)\.|ld-linux)`, library)
	}
	foreign := regexp.MustCompile(`(?i)^p?mpi_|^ompi_|^opal_`)
	for _, s := range dynamicSymbols(t, Library) {
		assert.False(t, s.Section == elf.SHN_UNDEF && foreign.MatchString(s.Name), "%s is undefined in libevenkeel.so", s.Name)
	}
}

// Nothing but MPI's names and ours is visible, so that no program's own
// function is taken for one of ours; besides these the inner ones of Open MPI
// through which derived datatypes and waits go, and the one of PMIx by which
// MPI_Init tells others.
func TestLibraryExportsNothingElse(t *testing.T) {
	for name := range exported(t, Library) {
		assert.Regexp(t, `^(MPI_|mpi_|ek_|opal_convertor_(un)?pack$|opal_convertor_set_position_nocheck$|opal_progress$|sched_yield$|PMIx_Commit$)`, name)
	}
}
