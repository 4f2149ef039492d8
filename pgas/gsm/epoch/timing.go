package epoch

import "time"

// timing says how long a round trip takes, and how long to wait for one (RFC 6298).
type timing struct {
	smoothed  time.Duration // 0: none has been measured
	variation time.Duration
	backoff   uint // the timeout is doubled so often
}

// measure takes a round trip of a packet that was sent once (Karn: of one that was sent again nobody knows which was
// answered).
func (t *timing) measure(trip time.Duration) {
	trip = max(trip, 1)
	if t.smoothed == 0 {
		t.smoothed, t.variation = trip, trip/2
		return
	}
	t.variation += (max(t.smoothed-trip, trip-t.smoothed) - t.variation) / 4
	t.smoothed += (trip - t.smoothed) / 8
}

// timeout is how long to wait now: never so long that a target that comes back in time would not be asked again.
func (t *timing) timeout(c *Config) time.Duration {
	timeout := c.FirstTimeout
	if t.smoothed != 0 {
		timeout = max(c.LeastTimeout, t.smoothed+4*t.variation)
	}
	return min(timeout<<min(t.backoff, 16), c.MostTimeout, c.Silence/8)
}
