package tests

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// lostLock is what is said of a lock where thread 1 died; the same in C and in Go.
const lostLock = "thread 1 died, or can't be reached, while it held the lock or waited for it: nobody gets the lock any more; " +
	"end the job, and find out why that thread ended"

// A thread dies at a lock, on one node and apart, and the job goes on: nobody waits for ever.
func TestAThreadDiesAtALock(t *testing.T) {
	const lost, notHeld = 77, 72 // EK_UPC_LOST, EK_UPC_NOT_HELD
	for _, apart := range []bool{false, true} {
		for _, of := range []struct {
			language, how string
			heard         map[int][]string // by thread, what is said of the lock's loss
		}{
			{"C", "holds", map[int][]string{0: {"locks", "locks again", "tries again", "unlocks again", "frees"}, 2: {"locks", "locks again", "tries again", "unlocks again", "frees"}}},
			{"C", "kill", map[int][]string{0: {"locks"}, 2: {"locks"}}},
			{"C", "waits", map[int][]string{0: {"locks again", "tries again"}, 2: {"locks", "locks again", "tries again", "unlocks again", "frees"}}},
			{"C", "comes", map[int][]string{0: {"unlocks", "locks again", "tries again", "unlocks again", "frees"}, 2: {"tries"}}},
			{"C", "books", map[int][]string{0: {"allocates"}, 2: {"allocates"}}},
			{"Go", "holds", map[int][]string{0: {"locks", "locks again", "tries again", "unlocks again", "frees"}, 2: {"locks", "locks again", "tries again", "unlocks again", "frees"}}},
			{"Go", "kill", map[int][]string{0: {"locks"}, 2: {"locks"}}},
			{"Go", "waits", map[int][]string{0: {"locks again", "tries again"}, 2: {"locks", "locks again", "tries again", "unlocks again", "frees"}}},
		} {
			if apart && (of.how == "comes" || of.how == "books") {
				continue // the program writes into another thread's memory there
			}
			name := map[bool]string{false: "together", true: "apart"}[apart]
			t.Run(strings.Join([]string{of.language, of.how, name}, " "), func(t *testing.T) {
				program := Program("shared_wait")
				if of.language == "Go" {
					program = Program("shared_go")
				}
				env := []string{"EVENKEEL_GSM_SILENCE=500"}
				if apart {
					env = append(env, "EVENKEEL_GSM_APART=1")
				}
				j := Start(t, Run{Ranks: 3, Preload: linked, Env: env, Mpirun: []string{"--enable-recovery"}}, program, "die", of.how)
				for thread, heard := range of.heard {
					j.Until(t, fmt.Sprintf("thread %d is done", thread))
					for _, done := range heard {
						said := sayings(j.stdout.text())[fmt.Sprintf("thread %d %s", thread, done)]
						assert.Contains(t, said, lostLock, "thread %d %s", thread, done)
						if of.language == "C" {
							assert.Contains(t, said, fmt.Sprint(lost), "thread %d %s", thread, done)
						} else {
							assert.Contains(t, said, "true", "thread %d %s", thread, done)
						}
					}
				}
			})
		}
	}
}

// sayings are lines by what stands before the first colon.
func sayings(text string) map[string]string {
	said := map[string]string{}
	for line := range strings.Lines(text) {
		who, what, _ := strings.Cut(line, ":")
		said[who] = what
	}
	return said
}
