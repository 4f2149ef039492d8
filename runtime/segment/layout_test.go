package segment

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// layoutInC prints what c/layout.h says for the lengths in its arguments:
// members, thread slots, accounts, ring events, history events, nodes, ranks of
// the world; again and again. Before them it prints the sizes of the structures.
const layoutInC = `
#include <stdio.h>
#include <stdlib.h>
#include "layout.h"

int main(int argc, char **argv)
{
	printf("%zu %zu %zu %zu %zu %zu %zu %zu %zu %zu %zu\n", sizeof(struct ek_header), sizeof(struct ek_rank),
	       sizeof(struct ek_module), sizeof(struct ek_comm), sizeof(struct ek_region), sizeof(struct ek_bin),
	       sizeof(struct ek_thread), sizeof(struct ek_account), sizeof(struct ek_event),
	       sizeof(struct ek_barrier), sizeof(struct ek_arrivals));
	for (int i = 1; i + 6 < argc; i += 7) {
		struct ek_header h = {.members = (uint32_t)atol(argv[i]), .thread_slots = (uint32_t)atol(argv[i + 1]),
		                      .accounts = (uint32_t)atol(argv[i + 2]), .ring_events = (uint32_t)atol(argv[i + 3]),
		                      .history_events = (uint32_t)atol(argv[i + 4]), .nodes = (uint32_t)atol(argv[i + 5]),
		                      .world_size = (uint32_t)atol(argv[i + 6])};
		struct ek_layout l = ek_layout_of(&h);
		printf("%zu %zu %zu %zu %zu %zu %zu %zu %zu %zu %zu %zu %zu %zu %zu\n", l.modules, l.comms, l.members, l.regions,
		       l.bins, l.threads, l.history, l.thread_size, l.thread_accounts, l.thread_ring, l.rank_area_size,
		       l.barriers, l.arrivals, l.arrivals_everywhere, l.arrivals_everywhere_size);
	}
	return 0;
}
`

func TestLayoutIsThatOfC(t *testing.T) {
	program := filepath.Join(t.TempDir(), "layout")
	require.NoError(t, os.WriteFile(program+".c", []byte(layoutInC), 0o644))
	output, err := exec.Command("cc", "-I../../c", "-o", program, program+".c").CombinedOutput()
	require.NoError(t, err, "%s", output)

	expected := fmt.Sprintln(unsafe.Sizeof(Header{}), unsafe.Sizeof(Rank{}), unsafe.Sizeof(Module{}), unsafe.Sizeof(Comm{}),
		unsafe.Sizeof(Region{}), unsafe.Sizeof(Bin{}), unsafe.Sizeof(Thread{}), unsafe.Sizeof(Account{}), unsafe.Sizeof(Event{}),
		unsafe.Sizeof(Barrier{}), unsafe.Sizeof(Arrivals{}))
	var arguments []string
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		h := Header{
			Members: random.Uint32N(maxMembers), ThreadSlots: 1 + random.Uint32N(maxThreads),
			Accounts: 1 << random.Uint32N(15), RingEvents: 1 << random.Uint32N(25), HistoryEvents: random.Uint32N(maxEvents),
			Nodes: 1 + random.Uint32N(2), WorldSize: random.Uint32N(maxWorld),
		}
		for _, length := range []uint32{h.Members, h.ThreadSlots, h.Accounts, h.RingEvents, h.HistoryEvents, h.Nodes, h.WorldSize} {
			arguments = append(arguments, fmt.Sprint(length))
		}
		l := layoutOf(&h)
		expected += fmt.Sprintln(l.modules, l.comms, l.members, l.regions, l.bins, l.threads, l.history,
			l.threadSize, l.threadAccounts, l.threadRing, l.area,
			l.barriers, l.arrivals, l.arrivalsEverywhere, l.arrivalsEverywhereSize)
	}
	said, err := exec.Command(program, arguments...).Output()
	require.NoError(t, err)
	assert.Equal(t, strings.Split(expected, "\n"), strings.Split(string(said), "\n"))
}

func TestGeneratedTypesAreThoseOfTheHeader(t *testing.T) {
	made, err := exec.Command("./generate.sh").Output()
	require.NoError(t, err)
	kept, err := os.ReadFile("layout_gen.go")
	require.NoError(t, err)
	assert.Equal(t, string(made), string(kept), "c/segment.h has changed: run `make generate`")
}
