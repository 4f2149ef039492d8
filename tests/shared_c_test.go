package tests

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/pgas/shared/affinity"
	"evenkeel/pgas/shared/heap"
	"evenkeel/tests/hosts"
)

// layout is what the program with C's arithmetic writes.
func layout(t *testing.T, stdin string, arguments ...any) []byte {
	t.Helper()
	var words []string
	for _, a := range arguments {
		words = append(words, fmt.Sprint(a))
	}
	c := exec.Command(Program("shared_layout"), words...)
	c.Stdin = strings.NewReader(stdin)
	out, err := c.Output()
	require.NoError(t, err, "%v", words)
	return out
}

// numbers collects int64s as C writes them.
type numbers struct{ bytes.Buffer }

func (n *numbers) say(all ...int) {
	for _, one := range all {
		n.Write(binary.NativeEndian.AppendUint64(nil, uint64(one)))
	}
}

func (n *numbers) pointer(p affinity.Pointer) { n.say(p.Thread, p.Phase, p.Address) }

// same compares without writing megabytes when it fails.
func same(t *testing.T, want, got []byte, what ...any) {
	t.Helper()
	require.Equal(t, len(want), len(got), what...)
	for i := 0; i < len(want); i += 8 {
		require.Equal(t, want[i:i+8], got[i:i+8], append([]any{fmt.Sprintf("number %d of", i/8)}, what...)...)
	}
}

// Every element of every layout, every pointer to it, and every sum and difference of two, as Go has
// them, which compares them with a walk over the elements.
func TestArithmeticOfSharedArraysInC(t *testing.T) {
	const mostThreads, mostBlock = 6, 7
	for _, c := range []struct{ elements, size int }{{0, 8}, {1, 8}, {37, 3}, {60, 1}, {60, 8}} {
		var want numbers
		for threads := 1; threads <= mostThreads; threads++ {
			for block := 0; block <= mostBlock; block++ {
				l, err := affinity.NewLayout(threads, block, c.elements, c.size)
				require.NoError(t, err)
				for i := range c.elements {
					thread, local := l.ThreadOf(i), l.LocalOf(i)
					want.say(thread, l.PhaseOf(i), local, l.ElementOf(thread, local), l.Run(i, c.elements))
					want.pointer(l.Pointer(i))
					for j := range c.elements {
						p := l.Type().Add(l.Pointer(i), j-i)
						difference, err := l.Type().Sub(p, l.Pointer(i))
						require.NoError(t, err)
						want.pointer(p)
						want.say(difference)
					}
				}
				for thread := -1; thread <= threads; thread++ {
					want.say(l.LocalElements(thread), affinity.AffinitySize(c.elements*c.size+1, block*c.size, threads, thread))
				}
			}
		}
		got := layout(t, "", "affinity", mostThreads, mostBlock, c.elements, c.size)
		same(t, want.Bytes(), got, fmt.Sprintf("%+v", c))
	}
}

// Numbers beyond 32 bits, where a division that is done by multiplying could be wrong by one.
func TestElementsFarAwayInC(t *testing.T) {
	for _, block := range []int{1, 3, 7, 1 << 20, 1<<33 + 5} {
		for _, threads := range []int{1, 3, 64, 1000003} {
			for _, i := range []int{1<<32 - 1, 1 << 32, 1<<45 + 12345, 1<<60 - 1, 1<<62 - 1} {
				l := affinity.Layout{Threads: threads, Block: block, Elements: 1 << 62, Size: 1}
				var want numbers
				want.say(l.ThreadOf(i), l.LocalOf(i))
				same(t, want.Bytes(), layout(t, "", "far", i, block, threads), i, block, threads)
			}
		}
	}
}

func TestTilesInC(t *testing.T) {
	for _, sizes := range [][]int{{7}, {5, 6}, {4, 3}, {3, 4, 5}, {6, 1, 2}, {0, 3}, {2, 3, 2, 3, 2}} {
		for _, tile := range [][]int{{1, 1, 1, 1, 1}, {2, 3, 2, 2, 1}, {3, 2, 4, 1, 3}, {8, 8, 8, 2, 2}} {
			tile = tile[:len(sizes)]
			tiling, err := affinity.NewTiling(3, sizes, tile, 8)
			require.NoError(t, err)
			var want numbers
			l := tiling.Layout()
			want.say(l.Block, l.Elements)
			for i := range l.Elements {
				indices, inside := tiling.Indices(i)
				if inside {
					want.say(1)
				} else {
					want.say(0)
				}
				want.say(indices...)
				want.say(tiling.Element(indices...))
			}
			arguments := []any{"tiling"}
			for _, n := range append(append([]int(nil), sizes...), tile...) {
				arguments = append(arguments, n)
			}
			same(t, want.Bytes(), layout(t, "", arguments...), sizes, tile)
		}
	}
}

type heapWords []uint64

func (w heapWords) Load(offset uint64) (uint64, error) { return w[offset/8], nil }
func (w heapWords) Store(offset, value uint64) error   { w[offset/8] = value; return nil }

// Random histories: C's books of a shared heap are Go's, word by word, so that either could go on with
// what the other has begun.
func TestBooksOfTheSharedHeapInC(t *testing.T) {
	const refused = "refused"
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 6))
		bytes := uint64(3*heap.Unit + r.IntN(200)*heap.Unit)
		m := make(heapWords, bytes/8)
		require.NoError(t, heap.Format(m, bytes))
		var operations, want strings.Builder
		want.WriteString("0\n")
		var used []uint64
		say := func(offset uint64, err error) {
			if err != nil {
				want.WriteString(refused + " 0\n")
			} else {
				fmt.Fprintf(&want, "0 %d\n", offset)
			}
		}
		for range 200 {
			switch n := r.IntN(10); {
			case n < 6:
				size := uint64(r.IntN(1 + r.IntN(1000)))
				fmt.Fprintf(&operations, "a %d\n", size)
				offset, err := heap.Allocate(m, size)
				if err == nil {
					used = append(used, offset)
				}
				say(offset, err)
			case n == 6: // nothing that was handed out
				offset := uint64(r.IntN(int(bytes)))
				if offset%heap.Unit == 0 {
					offset++
				}
				fmt.Fprintf(&operations, "f %d\n", offset)
				say(0, heap.Free(m, offset))
			case len(used) > 0:
				i := r.IntN(len(used))
				fmt.Fprintf(&operations, "f %d\n", used[i])
				say(0, heap.Free(m, used[i]))
				if r.IntN(4) > 0 { // else it is freed twice some time
					used = append(used[:i], used[i+1:]...)
				}
			}
		}
		for _, word := range m {
			fmt.Fprintf(&want, "%x\n", word)
		}
		got := string(layout(t, operations.String(), "heap", bytes))
		// EK_UPC_NO_MEMORY and EK_UPC_FREED.
		got = strings.NewReplacer("\n70 0\n", "\n"+refused+" 0\n", "\n69 0\n", "\n"+refused+" 0\n").Replace(got)
		got = strings.NewReplacer("\n70 0\n", "\n"+refused+" 0\n", "\n69 0\n", "\n"+refused+" 0\n").Replace(got)
		require.Equal(t, want.String(), got, "seed %d", seed)
	}
}

// The C program checks elements, bulk operations, locks, handles, collectives and refusals by itself.
func TestSharedObjectsFromC(t *testing.T) {
	for _, ranks := range []int{1, 2, 4} {
		for seed, env := range [][]string{nil, {"EVENKEEL_ENABLE=0"}} { // recorded or not
			r := Mpirun(t, Run{Ranks: ranks, Preload: "none", Env: env}, Program("shared"), fmt.Sprint(seed), "300")
			assert.Equal(t, 0, r.Status, "%d ranks, seed %d, %v: %v", ranks, seed, env, r)
			assert.Equal(t, "ok\n", r.Stdout)
			AssertNothingLeft(t, r.Dir)
		}
	}
}

// More threads than tell each other of a meeting in one round.
func TestMeetingsOfManyThreadsFromC(t *testing.T) {
	r := Mpirun(t, Run{Ranks: 19, Preload: "none"}, Program("shared"), "3", "10")
	assert.Equal(t, 0, r.Status, r)
	assert.Equal(t, "ok\n", r.Stdout)
}

func TestSharedObjectsFromCPlusPlus(t *testing.T) {
	r := Mpirun(t, Run{Ranks: 3, Preload: "none"}, Program("shared_cc"))
	assert.Equal(t, 0, r.Status, r)
	assert.Equal(t, "ok\n", r.Stdout)
}

func TestSieveInC(t *testing.T) {
	for _, ranks := range []int{1, 3} {
		r := Mpirun(t, Run{Ranks: ranks, Preload: "none"}, Example("sieve"), "100000", "777")
		assert.Equal(t, 0, r.Status, r)
		assert.Equal(t, "9592 primes below 100000\n", r.Stdout, "%d ranks", ranks)
	}
	r := Mpirun(t, Run{Preload: "none"}, Example("sieve"), "1000", "9223372036854775807")
	assert.NotEqual(t, 0, r.Status)
	assert.Contains(t, r.Stderr, "blocks of 9223372036854775807 elements of 1 bytes on each of 2 threads are beyond what memory has")
}

// Threads that are apart, each as if alone on its node: all accesses, locks, meetings and the directory go over the network.
func TestSharedObjectsFromCOverANetwork(t *testing.T) {
	r := Mpirun(t, Run{Ranks: 3, Preload: "none", Env: []string{"EVENKEEL_GSM_APART=1"}}, Program("shared"), "5", "10")
	assert.Equal(t, 0, r.Status, r)
	assert.Equal(t, "ok\n", r.Stdout)
}

// Two hosts with two threads each: half of the commands stay on the node.
func TestSharedObjectsFromCAcrossHosts(t *testing.T) {
	c := hosts.New(t, hosts.Spec{Count: 2, Slots: 2})
	r := onHosts(t, c, Program("shared"), "5", "10")
	assert.Equal(t, 0, r.Status, r)
	assert.Equal(t, "ok\n", r.Stdout)
	r = onHosts(t, c, Example("sieve"), "20000", "777")
	assert.Contains(t, r.Stdout, "2262 primes below 20000", r)
}
