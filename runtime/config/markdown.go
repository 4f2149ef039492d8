package config

import (
	"fmt"
	"strings"

	"evenkeel/c/tables"
)

//go:generate sh -c "go run evenkeel/cmd/evenkeel settings --markdown >settings.md.new && mv settings.md.new ../../docs/settings.md"

// Markdown returns docs/settings.md.
func Markdown() string {
	var b strings.Builder
	b.WriteString(`# Settings

<!-- Made from c/tables/settings.table by "go generate ./runtime/config": change the table, not this file. -->

Each setting is an environment variable of the MPI program. ` + "`evenkeel run`" + ` has a
flag for each, which sets the variable for the program that it starts; with
` + "`mpirun`" + `, ` + "`-x NAME=value`" + ` carries a variable to every host. A name or a value that
evenkeel does not know gives one warning, and the default is used. An empty
value means the default.

| variable | flag | values | default | unit | meaning |
| --- | --- | --- | --- | --- | --- |
`)
	for _, s := range table {
		fmt.Fprintf(&b, "| `%s` | `--%s` | %s | %s | %s | %s |\n",
			s.Name, Flag(s), cell(values(s)), cell(s.Default), s.Unit, cell(s.Meaning))
	}
	return b.String()
}

// Flag returns the name of the flag of `evenkeel run` for a setting:
// "out" for EVENKEEL_OUT.
func Flag(s tables.Setting) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(s.Name, prefix)), "_", "-")
}

func values(s tables.Setting) string {
	switch s.Kind {
	case tables.Path:
		return "path"
	case tables.Text, tables.Traffic:
		return "text"
	case tables.Set:
		return s.Allowed()
	case tables.Int:
		return fmt.Sprintf("%d to %d", s.Low, s.High)
	}
	return strings.Join(s.Values(), ", ")
}

// cell escapes what would end a cell of a Markdown table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
