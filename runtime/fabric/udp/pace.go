package udp

import "time"

// pacer spaces packets out so that they leave at a rate at most, but for a burst
// that the network can hold: a token bucket. The zero pacer lets everything
// through.
type pacer struct {
	rate  float64 // bytes per second; 0: no limit
	burst float64 // bytes
	have  float64 // bytes that may leave now
	at    time.Duration
}

func newPacer(rate, burst float64) pacer { return pacer{rate: rate, burst: burst, have: burst} }

// take says whether so many bytes may leave now. A packet larger than what there
// is may leave from a full bucket, which is then in debt.
func (p *pacer) take(now time.Duration, bytes int) bool {
	if p.rate == 0 {
		return true
	}
	p.fill(now)
	if p.have < float64(bytes) && p.have < p.burst {
		return false
	}
	p.have -= float64(bytes)
	return true
}

// wait is how long until so many bytes may leave.
func (p *pacer) wait(now time.Duration, bytes int) time.Duration {
	if p.rate == 0 {
		return 0
	}
	p.fill(now)
	missing := min(float64(bytes), p.burst) - p.have
	return time.Duration(max(0, missing) / p.rate * float64(time.Second))
}

func (p *pacer) fill(now time.Duration) {
	p.have = min(p.burst, p.have+p.rate*(now-p.at).Seconds())
	p.at = now
}
