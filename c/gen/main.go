// Command gen makes C from the tables in c/tables: the wrappers of every MPI
// function for C and Fortran, the table of the functions that they forward
// to, and the defaults and bounds of the settings.
//
//	go run ./c/gen -out build/gen
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pkg/errors"

	"evenkeel/c/tables"
)

func main() {
	out := flag.String("out", "build/gen", "`directory` for the generated files")
	flag.Parse()
	if err := run(*out); err != nil {
		fmt.Fprintf(os.Stderr, "gen: %v\n", err)
		os.Exit(1)
	}
}

func run(out string) error {
	functions, _, err := tables.MPI()
	if err != nil {
		return err
	}
	settings, err := tables.Settings()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o777); err != nil {
		return errors.Wrap(err, "cannot make the output directory")
	}
	files := map[string]func(*bytes.Buffer) error{
		"ek_functions.h":      func(b *bytes.Buffer) error { return functionsHeader(b, functions) },
		"ek_settings.h":       func(b *bytes.Buffer) error { return settingsHeader(b, settings) },
		"wrappers_c.c":        func(b *bytes.Buffer) error { return wrappersC(b, functions) },
		"wrappers_fortran.c":  func(b *bytes.Buffer) error { return wrappersFortran(b, functions) },
		"ek_functions_next.c": func(b *bytes.Buffer) error { return nextTable(b, functions) },
	}
	for name, write := range files {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			return errors.Wrap(err, name)
		}
		if err := writeIfChanged(filepath.Join(out, name), b.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// writeIfChanged keeps the time of a file that would not change, so that make
// does not compile it again.
func writeIfChanged(path string, content []byte) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, content) {
		return nil
	}
	return errors.Wrap(os.WriteFile(path, content, 0o666), "cannot write a generated file")
}
