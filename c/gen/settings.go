package main

import (
	"bytes"
	"fmt"
	"strings"

	"evenkeel/c/tables"
)

// settingsHeader writes the settings as a C struct and the function that reads
// them from the environment. A value that does not fit its kind leaves the
// default; the warning about it is the Go side's.
func settingsHeader(b *bytes.Buffer, settings []tables.Setting) error {
	b.WriteString(head + "#ifndef EK_SETTINGS_H\n#define EK_SETTINGS_H\n\n#include <stdlib.h>\n#include <string.h>\n\n")
	for _, s := range settings {
		for i, choice := range s.Choices {
			if s.Kind == tables.Set {
				i = 1 << i // a set is the sum of its members
			}
			fmt.Fprintf(b, "#define EK_%s_%s %d\n", strings.ToUpper(field(s)), strings.ToUpper(choice), i)
		}
	}
	fmt.Fprintf(b, "#define EK_MOST_TRAFFIC %d\n", tables.MostTraffic)
	b.WriteString("\nstruct ek_settings {\n")
	for _, s := range settings {
		switch s.Kind {
		case tables.Path, tables.Text, tables.Traffic:
			fmt.Fprintf(b, "\tconst char *%s; /* empty if not set */\n", field(s))
		default:
			fmt.Fprintf(b, "\tlong %s;\n", field(s))
		}
	}
	b.WriteString("};\n\n" + settingsParsers + "\nstatic inline struct ek_settings ek_settings_read(void)\n{\n\tstruct ek_settings s;\n")
	for _, s := range settings {
		switch s.Kind {
		case tables.Path, tables.Text, tables.Traffic:
			fmt.Fprintf(b, "\ts.%s = ek_setting_text(%q, %q);\n", field(s), s.Name, s.Default)
		case tables.Bool:
			fmt.Fprintf(b, "\ts.%s = ek_setting_int(%q, 0, 1, %s);\n", field(s), s.Name, s.Default)
		case tables.Int:
			read := "ek_setting_int"
			if s.Power {
				read = "ek_setting_power"
			}
			fmt.Fprintf(b, "\ts.%s = %s(%q, %d, %d, %s);\n", field(s), read, s.Name, s.Low, s.High, s.Default)
		case tables.Choice:
			fmt.Fprintf(b, "\ts.%s = ek_setting_choice(%q, %q, EK_%s_%s);\n", field(s), s.Name,
				"|"+strings.Join(s.Choices, "|")+"|", strings.ToUpper(field(s)), strings.ToUpper(s.Default))
		case tables.Set:
			normal := []string{"0"}
			for _, member := range s.Members(s.Default) {
				normal = append(normal, "EK_"+strings.ToUpper(field(s)+"_"+member))
			}
			fmt.Fprintf(b, "\ts.%s = ek_setting_set(%q, %q, %d, %s);\n", field(s), s.Name,
				"|"+strings.Join(s.Choices, "|")+"|", 1<<len(s.Choices)-1, strings.Join(normal, " | "))
		}
	}
	b.WriteString("\treturn s;\n}\n\n#endif\n")
	return nil
}

// field is the setting's name in C: EVENKEEL_RING is settings.ring.
func field(s tables.Setting) string {
	return strings.ToLower(strings.TrimPrefix(s.Name, "EVENKEEL_"))
}

const settingsParsers = `static inline const char *ek_setting_text(const char *name, const char *normal)
{
	const char *value = getenv(name);
	return value ? value : normal;
}

static inline long ek_setting_int(const char *name, long low, long high, long normal)
{
	const char *value = getenv(name);
	char *end;
	if (!value || !*value)
		return normal;
	long number = strtol(value, &end, 10);
	return *end || number < low || number > high ? normal : number;
}

static inline long ek_setting_power(const char *name, long low, long high, long normal)
{
	long number = ek_setting_int(name, low, high, normal);
	return number & (number - 1) ? normal : number;
}

/* The place of a word in "|one|two|", counted from 0; -1 if it is not there. */
static inline long ek_setting_place(const char *choices, const char *word, size_t length)
{
	long place = 0;
	for (const char *c = choices; length && c[1]; place++) {
		const char *next = strchr(c + 1, '|');
		if ((size_t)(next - c - 1) == length && memcmp(c + 1, word, length) == 0)
			return place;
		c = next;
	}
	return -1;
}

static inline long ek_setting_choice(const char *name, const char *choices, long normal)
{
	const char *value = getenv(name);
	long place = value ? ek_setting_place(choices, value, strlen(value)) : -1;
	return place < 0 ? normal : place;
}

/* "one,two" as a sum of bits, bit 0 for the first of the choices. */
static inline long ek_setting_set(const char *name, const char *choices, long all, long normal)
{
	const char *value = getenv(name);
	long set = 0;
	if (!value || !*value)
		return normal;
	if (strcmp(value, "none") == 0)
		return 0;
	if (strcmp(value, "all") == 0)
		return all;
	for (const char *word = value, *end;; word = end + 1) {
		end = word + strcspn(word, ",");
		long place = ek_setting_place(choices, word, (size_t)(end - word));
		if (place < 0)
			return normal;
		set |= 1l << place;
		if (!*end)
			return set;
	}
}
`
