package main

import (
	"strconv"
	"strings"

	"github.com/pkg/errors"
)

// parseFigure reads the one positive number that a probe prints.
func parseFigure(printed string) (float64, error) {
	figure, err := strconv.ParseFloat(strings.TrimSpace(printed), 64)
	if err != nil || figure <= 0 {
		return 0, errors.Errorf("expected one positive number, but the program printed %q", printed)
	}
	return figure, nil
}

// namedFigure is a line of a program that prints a name and a figure.
type namedFigure struct {
	name   string
	figure float64
}

// parseRows reads such lines in their order; a name ends at the separator.
func parseRows(printed, separator string) ([]namedFigure, error) {
	var all []namedFigure
	for _, line := range strings.Split(strings.TrimSpace(printed), "\n") {
		name, text, found := strings.Cut(line, separator)
		if !found {
			return nil, errors.Errorf("expected a name and a figure, but the program printed %q", line)
		}
		figure, err := parseFigure(text)
		if err != nil {
			return nil, errors.WithMessagef(err, "in %q", line)
		}
		all = append(all, namedFigure{name, figure})
	}
	return all, nil
}

// figures are a program's by their names.
type figures map[string]float64

// parseFigures reads lines of a name without blanks, a blank and a figure.
func parseFigures(printed string) (figures, error) {
	rows, err := parseRows(printed, " ")
	if err != nil {
		return nil, err
	}
	f := figures{}
	for _, row := range rows {
		f[row.name] = row.figure
	}
	return f, nil
}
