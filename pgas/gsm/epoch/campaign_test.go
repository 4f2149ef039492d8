package epoch

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"evenkeel/pgas/gsm/wire"
	"evenkeel/runtime/fabric/chaos"
)

// A campaign by hand:
//
//	go test ./pgas/gsm/epoch -run Campaign -operations 10000000 -seed 1 -timeout 0 -v
var (
	operations = flag.Int("operations", 60_000, "operations of the campaign, in all")
	seed       = flag.Uint64("seed", 1, "of the campaign's first world")
)

// Worlds of 20,000 operations among 2 to 8 tasks, each with a network of its own: good, lossy up to one half, repeating,
// reordering, corrupting, truncating, late, and all at once.
func TestCampaign(t *testing.T) {
	const each = 20_000
	var sum Counters
	var done int
	var took time.Duration
	for s := *seed; done < *operations; s++ {
		r := rand.New(rand.NewPCG(s, 2))
		some := func(most float64) float64 {
			if r.IntN(3) == 0 {
				return 0
			}
			return most * r.Float64()
		}
		p := plan{
			Seed: s, Tasks: 2 + r.IntN(7), Operations: min(each, *operations-done), UnderWay: 1 + r.IntN(30),
			Longest: 8 * (1 + r.IntN(400)), MTU: 180 + r.IntN(1300),
			Faults: chaos.Faults{
				Loss: some(0.5), Repeat: some(0.5), Corrupt: some(0.1), Truncate: some(0.1),
				Delay: time.Duration(r.IntN(50_000)), Jitter: time.Duration(r.IntN(100_000)), Late: some(0.1), LateBy: time.Duration(r.IntN(50_000_000)),
			},
		}
		repairs := 6
		if s%2 == 0 { // epochs that end soon
			repairs = r.IntN(3)
			p.Longest = 8 * (1 + r.IntN(40))
			p.Faults.Loss /= 4
		}
		p.Config = func(c *Config) { c.Operations, c.Packets, c.Repairs = 1<<(s%7+2), 64<<(s%4), repairs }
		w := newWorld(t, p)
		w.run()
		require.Empty(t, w.failed, "%v", p)
		done += w.ended
		took += w.took
		c := w.total()
		sum.Sent += c.Sent
		sum.Resent += c.Resent
		sum.Raised += c.Raised
		sum.Executed += c.Executed
		for i, n := range c.Dropped {
			sum.Dropped[i] += n
		}
	}
	t.Logf("%d operations in %v of virtual time, seeds from %d: %d packets sent, %d of them again, %d epochs raised, %d parts executed",
		done, took.Round(time.Second), *seed, sum.Sent, sum.Resent, sum.Raised, sum.Executed)
	for i, n := range sum.Dropped {
		if n > 0 {
			t.Logf("dropped %d: %v", n, wire.Reason(i))
		}
	}
}
