package profile

import (
	"os"
	"reflect"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// documented gives the fields that each section of docs/profile.md describes.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/profile.md")
	require.NoError(t, err)
	lines := regexp.MustCompile("(?m)^## (\\w+)$|^\\| `(\\w+)` \\| [^|]*\\| [^|]+ \\|$").FindAllStringSubmatch(string(text), -1)
	sections := map[string][]string{}
	section := ""
	for _, line := range lines {
		if line[1] != "" {
			section = line[1]
			continue
		}
		sections[section] = append(sections[section], line[2])
	}
	return sections
}

// schema adds the fields of a type, and of the types it refers to.
func schema(kind reflect.Type, into map[string][]string) {
	for kind.Kind() == reflect.Slice || kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	if kind.Kind() != reflect.Struct || into[kind.Name()] != nil {
		return
	}
	into[kind.Name()] = []string{}
	for i := range kind.NumField() {
		field := kind.Field(i)
		if !field.Anonymous {
			into[kind.Name()] = append(into[kind.Name()], field.Tag.Get("json"))
		}
		schema(field.Type, into)
	}
}

func TestEveryFieldIsDocumented(t *testing.T) {
	want := map[string][]string{}
	schema(reflect.TypeFor[Profile](), want)
	have := documented(t)
	for name, fields := range want {
		assert.ElementsMatch(t, fields, have[name], "the section %s of docs/profile.md against the type", name)
	}
	for name := range have {
		assert.Contains(t, want, name, "a section of docs/profile.md that is no type")
	}
}
