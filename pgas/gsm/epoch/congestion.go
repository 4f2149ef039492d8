package epoch

import "time"

// congestion is how many packets may be under way. It grows by the packets that arrive until the first loss, afterwards
// by growth in a round trip, and backs off by an eighth at a loss, once for all that was under way then: a lost packet in
// a hundred leaves a window of some sqrt(8*growth/0.01) = 56 packets, where TCP's would be 12. A timeout, at which nothing
// at all came back, halves it.
type congestion struct {
	window  int
	slow    bool          // a loss has been seen: it no longer grows by all that arrives
	part    int           // packets that have arrived since the window last grew
	settled time.Duration // losses of what was sent until then are paid for
}

const growth = 4

func (c *congestion) arrived(most int) {
	c.part++
	if c.slow && c.part*growth < c.window {
		return
	}
	c.part = 0
	c.window = min(c.window+1, most)
}

// lost: what was sent then is taken for lost.
func (c *congestion) lost(sentAt, now time.Duration, least int) {
	if !c.slow || sentAt > c.settled {
		c.back(c.window/8, now, least)
	}
}

func (c *congestion) timedOut(now time.Duration, least int) { c.back(c.window/2, now, least) }

func (c *congestion) back(by int, now time.Duration, least int) {
	c.window = max(c.window-max(by, 1), least)
	c.slow, c.part, c.settled = true, 0, now
}
