package main

import (
	"os"
	"strings"

	"github.com/pkg/errors"
)

// replaceSection puts text between the marks of a section, which are lines of
// their own: <!-- bench:NAME --> and <!-- /bench:NAME -->.
func replaceSection(document, name, text string) (string, error) {
	begin, end := "<!-- bench:"+name+" -->", "<!-- /bench:"+name+" -->"
	before, rest, found := strings.Cut(document, begin)
	if !found {
		return "", errors.Errorf("no mark %s: put it and %s where the figures belong", begin, end)
	}
	_, after, found := strings.Cut(rest, end)
	if !found {
		return "", errors.Errorf("no mark %s after %s", end, begin)
	}
	return before + begin + "\n" + strings.TrimSpace(text) + "\n" + end + after, nil
}

func rewriteSection(path, name, text string) error {
	document, err := os.ReadFile(path)
	if err != nil {
		return errors.Wrap(err, "the document to rewrite")
	}
	replaced, err := replaceSection(string(document), name, text)
	if err != nil {
		return errors.WithMessage(err, path)
	}
	return errors.Wrap(os.WriteFile(path, []byte(replaced), 0o644), "the document to rewrite")
}
