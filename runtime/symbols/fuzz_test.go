package symbols

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// FuzzModule reads damaged ELF files and looks up places all over them: the
// answer may be anything, but there must be one.
func FuzzModule(f *testing.F) {
	for _, flags := range []string{"-O2 -gdwarf-4", "-O2 -gdwarf-5", "-O0 -g -gz", "-s"} {
		args := append(strings.Fields(flags), "-nostdlib", "-shared", "-fPIC", "plain.c", "elsewhere.c")
		program, err := os.ReadFile(build(f, "gcc", args...))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(program)
	}
	f.Add([]byte("\x7fELF"))
	f.Fuzz(func(t *testing.T, program []byte) {
		m, err := readModule(bytes.NewReader(program), "program", "nowhere")
		if err != nil {
			return
		}
		for pc := uint64(0x1000); pc < 0x1400; pc += 16 {
			m.find(pc)
		}
		for _, s := range m.code {
			m.find(s.low)
			m.find(s.high - 1)
		}
	})
}
