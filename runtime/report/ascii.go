package report

import "strings"

// ASCII says whether what is written for people has to do without characters
// outside ASCII: where the locale, the first of these variables that is set,
// does not name UTF-8. None is set where a launcher passes no locale on, which
// says nothing.
func ASCII(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale := strings.ToLower(getenv(name)); locale != "" {
			return !strings.Contains(locale, "utf-8") && !strings.Contains(locale, "utf8")
		}
	}
	return false
}

// toASCII replaces the characters that a report uses; names of the program stay
// as they are.
var toASCII = strings.NewReplacer("█", "#", "▒", "=", "░", "-", "·", ".", "─", "-", "–", "-", "×", "x", "±", "+-", "µ", "u")
