package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/pkg/errors"
)

const libraryName = "libevenkeel.so"

// openMPName is the library that is preloaded besides where cores are lent.
const openMPName = "libevenkeel-openmp.so"

// libraryVariable names libevenkeel.so where it is not in ../lib.
const libraryVariable = "EVENKEEL_LIB"

// findLibrary returns the absolute path of libevenkeel.so.
func findLibrary(environ []string) (string, error) {
	path, origin := variable(environ, libraryVariable), libraryVariable+" says so"
	if path == "" {
		self, err := os.Executable()
		if err != nil {
			return "", errors.Wrap(err, "cannot find out where the command evenkeel is")
		}
		path = filepath.Join(filepath.Dir(filepath.Dir(self)), "lib", libraryName)
		origin = "it belongs beside the command, or set " + libraryVariable + " to its path"
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", errors.WithStack(err)
	}
	switch info, err := os.Stat(path); {
	case os.IsNotExist(err):
		return "", errors.Errorf("there is no %s (%s)", path, origin)
	case err != nil:
		return "", errors.Errorf("cannot use %s: %v (%s)", path, err, origin)
	case !info.Mode().IsRegular():
		return "", errors.Errorf("%s is no file (%s)", path, origin)
	case strings.ContainsAny(path, ": "):
		return "", errors.Errorf("%s cannot be preloaded, because LD_PRELOAD takes no path with a blank or a colon; install evenkeel elsewhere", path)
	}
	return path, nil
}

// preload returns the value of LD_PRELOAD with the library first. What was in
// it stays, in its order, but for other copies of libevenkeel.so: two would
// count every call twice.
func preload(library, before string) string {
	list := []string{library}
	for _, entry := range strings.FieldsFunc(before, func(r rune) bool { return r == ':' || r == ' ' }) {
		if filepath.Base(entry) != libraryName {
			list = append(list, entry)
		}
	}
	return strings.Join(list, ":")
}

// withOpenMP returns the value of LD_PRELOAD with the library for OpenMP after
// libevenkeel.so, if it is beside that.
func withOpenMP(library, list string) string {
	path := filepath.Join(filepath.Dir(library), openMPName)
	if _, err := os.Stat(path); err != nil || strings.Contains(list, openMPName) {
		return list
	}
	return library + ":" + path + strings.TrimPrefix(list, library)
}

// variable returns the value of a variable, as getenv does; empty if there is
// none.
func variable(environ []string, name string) string {
	for _, entry := range environ {
		if value, found := strings.CutPrefix(entry, name+"="); found {
			return value
		}
	}
	return ""
}

// setVariable returns environ with the variable set, or without it if the
// value is empty.
func setVariable(environ []string, name, value string) []string {
	var changed []string
	for _, entry := range environ {
		if !strings.HasPrefix(entry, name+"=") {
			changed = append(changed, entry)
		}
	}
	if value == "" {
		return changed
	}
	return append(changed, name+"="+value)
}
