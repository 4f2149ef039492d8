package doctor

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const libmpi = "libmpi.so.40" // of Open MPI 3, 4 and 5

var openMPIVersion = regexp.MustCompile(`\(Open ?MPI\) (\S+)`)

func (m Machine) openMPI() []Finding {
	const why = "evenkeel records the calls of programs that use Open MPI."
	const install = "Install Open MPI (Debian: apt-get install openmpi-bin libopenmpi-dev), or put the directory of its mpirun into PATH."
	f := Finding{Status: Fail, Subject: "Open MPI", Why: why, Fix: install}
	mpirun, err := exec.LookPath("mpirun")
	if err != nil {
		f.What = "There is no mpirun in PATH."
		return []Finding{f}
	}
	said := m.output(mpirun, "--version")
	match := openMPIVersion.FindStringSubmatch(said)
	if match == nil {
		first, _, _ := strings.Cut(said, "\n")
		f.What = fmt.Sprintf("%s is not of Open MPI: it says %q.", mpirun, first)
		return []Finding{f}
	}
	library := m.findLibrary(libmpi)
	if library == "" {
		f.What = fmt.Sprintf("%s is of Open MPI %s, but there is no %s.", mpirun, match[1], libmpi)
		f.Fix = "Install the whole of Open MPI (Debian: libopenmpi3), or put the directory of the library into LD_LIBRARY_PATH."
		return []Finding{f}
	}
	f.Status, f.Fix = OK, ""
	f.What = fmt.Sprintf("%s, and %s.", mpirun, library)
	if version := textSymbol(library, "ompi_version_string"); version != match[1] {
		f.Status = Warn
		f.What = fmt.Sprintf("%s is of Open MPI %s, and %s of %s.", mpirun, match[1], library, version)
		f.Why = "Programs and mpirun of different versions often fail to find each other and start as single ranks."
		f.Fix = "Put mpirun and libmpi of the same installation first into PATH and LD_LIBRARY_PATH."
		return []Finding{f}
	}
	f.Subject += " " + match[1]
	return []Finding{f}
}

// findLibrary returns the path of a library that programs find, or that stands
// beside mpirun; empty if there is none.
func (m Machine) findLibrary(name string) string {
	directories := filepath.SplitList(m.variable("LD_LIBRARY_PATH"))
	if mpirun, err := exec.LookPath("mpirun"); err == nil {
		if real, err := filepath.EvalSymlinks(mpirun); err == nil {
			prefix := filepath.Dir(filepath.Dir(real))
			directories = append(directories, filepath.Join(prefix, "lib"), filepath.Join(prefix, "lib64"))
		}
	}
	for _, d := range directories {
		path := filepath.Join(d, name)
		if _, err := os.Stat(path); d != "" && err == nil {
			return path
		}
	}
	for _, ldconfig := range []string{"ldconfig", "/sbin/ldconfig"} {
		for _, line := range strings.Split(m.output(ldconfig, "-p"), "\n") {
			if library, path, found := strings.Cut(line, " => "); found && strings.HasPrefix(strings.TrimSpace(library), name+" ") {
				return path
			}
		}
	}
	return ""
}

// rootRights looks at the consent that mpirun wants from root.
func (m Machine) rootRights() []Finding {
	if m.uid != 0 || m.variable("OMPI_ALLOW_RUN_AS_ROOT") == "1" && m.variable("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM") == "1" {
		return nil
	}
	return []Finding{{Status: Warn, Subject: "root",
		What: "You are root, and mpirun has not been told to accept that.",
		Why:  "mpirun refuses to start as root.",
		Fix:  "Work as another user, or: export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"}}
}

func (m Machine) fortran() []Finding {
	f := Finding{Status: OK, Subject: "Fortran", Why: "Programs in Fortran, and no others, need the Fortran libraries of Open MPI."}
	var missing []string
	for _, name := range []string{"libmpi_mpifh.so.40", "libmpi_usempif08.so.40"} {
		if m.findLibrary(name) == "" {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		f.What = "The Fortran libraries of Open MPI are there."
		return []Finding{f}
	}
	f.What = fmt.Sprintf("Not there: %s (Debian: libopenmpi3). Programs in Fortran cannot run; others can.", strings.Join(missing, ", "))
	return []Finding{f}
}

// python looks at the mpi4py of the python3 in PATH, which may be built for
// another MPI.
func (m Machine) python() []Finding {
	f := Finding{Status: OK, Subject: "mpi4py", Why: "Programs in Python, and no others, need mpi4py, built for Open MPI."}
	said := strings.Fields(m.output("python3", "-c",
		"import glob, mpi4py, os; print(mpi4py.__version__, *glob.glob(os.path.join(os.path.dirname(mpi4py.__file__), 'MPI*.so')))"))
	if len(said) == 0 {
		f.What = "The python3 in PATH has no mpi4py (Debian: python3-mpi4py): programs in Python cannot use MPI with it; others can."
		return []Finding{f}
	}
	f.What = fmt.Sprintf("mpi4py %s.", said[0])
	for _, path := range said[1:] {
		module, err := elf.Open(path)
		if err != nil {
			continue
		}
		needed, _ := module.ImportedLibraries()
		module.Close()
		if i := slices.IndexFunc(needed, func(l string) bool { return strings.HasPrefix(l, "libmpi") && l != libmpi }); i >= 0 {
			f.Status = Warn
			f.What = fmt.Sprintf("mpi4py %s is built for another MPI: it needs %s.", said[0], needed[i])
			f.Fix = "Install an mpi4py that is built with this Open MPI: pip install --no-binary mpi4py mpi4py"
		}
	}
	return []Finding{f}
}

// symbolData returns up to size bytes of what a library holds under a name.
func symbolData(library, name string, size uint64) []byte {
	f, err := elf.Open(library)
	if err != nil {
		return nil
	}
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return nil
	}
	for _, s := range symbols {
		if s.Name != name || int(s.Section) >= len(f.Sections) {
			continue
		}
		section := f.Sections[s.Section]
		data := make([]byte, min(s.Size, size))
		if section.Type == elf.SHT_NOBITS || s.Value < section.Addr {
			return nil
		}
		n, _ := section.ReadAt(data, int64(s.Value-section.Addr))
		return data[:n]
	}
	return nil
}

// textSymbol returns the text that a library holds under a name; "unknown"
// if there is none.
func textSymbol(library, name string) string {
	const longest = 256
	text, _, _ := bytes.Cut(symbolData(library, name, longest), []byte{0})
	if len(text) == 0 {
		return "unknown"
	}
	return string(text)
}
