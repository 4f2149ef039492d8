package doctor

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"

	"evenkeel/c/tables"
	"evenkeel/runtime/config"
)

// What the runtime's table says of itself; c/runtime.h has the same.
const (
	runtimeTable   = "ek_runtime"
	runtimeVersion = 2
)

// libraries looks at the files of evenkeel itself.
func (m Machine) libraries() []Finding {
	f := Finding{Status: Fail, Subject: "libevenkeel.so", Why: "It is what is preloaded into programs and records their calls.",
		Fix: "Install evenkeel again, all of it from one build (make install)."}
	if m.LibraryErr != nil {
		f.What = fmt.Sprintf("Not found: %v.", m.LibraryErr)
		return []Finding{f}
	}
	functions, _, err := tables.MPI()
	if err != nil {
		f.What = fmt.Sprintf("This command is damaged: %v.", err)
		return []Finding{f}
	}
	exported, err := exports(m.Library)
	if err != nil {
		f.What = fmt.Sprintf("%s is damaged: %v.", m.Library, err)
		return []Finding{f}
	}
	missing, wrapped := "", 0
	for _, function := range functions {
		there := exported[function.Symbol()]
		if !there && !function.Newer {
			missing = function.Symbol()
		}
		if there && !function.Own {
			wrapped++
		}
	}
	switch {
	case !exported["ek_register_runtime"]:
		f.What = fmt.Sprintf("%s is not evenkeel's library.", m.Library)
		return []Finding{f}
	case missing != "":
		f.What = fmt.Sprintf("%s is of another build than this command: it has no %s.", m.Library, missing)
		return []Finding{f}
	}
	f.Status, f.Fix = OK, ""
	f.What = fmt.Sprintf("%s, with %d MPI functions.", m.Library, wrapped)
	return append([]Finding{f}, m.runtime(), m.watcher())
}

func exports(library string) (map[string]bool, error) {
	f, err := elf.Open(library)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF {
			names[s.Name] = true
		}
	}
	return names, nil
}

// runtime looks at the Go part, which libevenkeel.so opens.
func (m Machine) runtime() Finding {
	f := Finding{Status: Warn, Subject: "runtime", Why: "Without it a run is recorded with less detail, and no summary is shown.",
		Fix: "Install both libraries from one build (make install)."}
	settings, _ := config.Load(m.Environ)
	path := settings.Runtime()
	if path == "" {
		path = filepath.Join(filepath.Dir(m.Library), "libevenkeel-runtime.so")
	}
	if _, err := os.Stat(path); err != nil {
		f.What = fmt.Sprintf("There is no %s.", path)
		return f
	}
	head := symbolData(path, runtimeTable, 4)
	if len(head) < 4 {
		f.What = fmt.Sprintf("%s is not evenkeel's runtime.", path)
		return f
	}
	if version := binary.NativeEndian.Uint32(head); version != runtimeVersion {
		f.What = fmt.Sprintf("%s has version %d of the interface, and this evenkeel %d.", path, version, runtimeVersion)
		return f
	}
	f.Status, f.Fix = OK, ""
	f.What = path + "."
	return f
}

// watcher looks at the command in the place where libevenkeel.so starts it.
func (m Machine) watcher() Finding {
	f := Finding{Status: OK, Subject: "watcher", Why: "It writes the profile of a job that is killed, and removes its segment."}
	path := filepath.Join(filepath.Dir(filepath.Dir(m.Library)), "bin", "evenkeel")
	f.What = path + "."
	if info, err := os.Stat(path); err != nil || info.Mode()&0o111 == 0 {
		f.Status = Warn
		f.What = fmt.Sprintf("There is no program %s.", path)
		f.Fix = "Install the command evenkeel in bin, beside the lib of libevenkeel.so."
	}
	return f
}

// settings looks at the EVENKEEL_ variables.
func (m Machine) settings() []Finding {
	_, warnings := config.Load(m.Environ)
	var findings []Finding
	for _, w := range warnings {
		findings = append(findings, Finding{Status: Warn, Subject: "settings", What: w.Text + ".",
			Why: "A setting that is not understood does not do what you want.",
			Fix: "evenkeel settings lists them, with their values; correct or unset " + w.Name + "."})
	}
	return findings
}
