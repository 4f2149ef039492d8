// Package measure finds the parameters of the LogGP model on a network: what
// collectives chooses schedules from.
package measure

import (
	"math"
	"time"

	"github.com/pkg/errors"

	"evenkeel/collectives"
)

// Probe sends messages to another task that answers.
type Probe interface {
	// Volley sends count messages of so many bytes to the other task, which answers
	// the last of them with an empty message. It returns how long the sender was
	// busy with sending, and how long it took until the answer was there.
	Volley(count, bytes int) (sending, whole time.Duration, err error)
}

// How much is measured: so many rounds of volleys of so many messages, or as many as
// fit the time, but some. What disturbs a volley makes it longer, so the least times count.
const (
	rounds  = 25
	fewest  = 5
	longest = 10 * time.Millisecond
	volley  = 16
)

// Fit measures a link, with messages of few and of many bytes.
func Fit(p Probe, few, many int) (collectives.Link, error) {
	if few >= many {
		return collectives.Link{}, errors.Errorf("a gap per byte can't be found from messages of %d and %d bytes", few, many)
	}
	if _, _, err := p.Volley(volley, many); err != nil { // for the caches
		return collectives.Link{}, err
	}
	least := times{sending: math.Inf(1), one: math.Inf(1), all: math.Inf(1), oneLarge: math.Inf(1), allLarge: math.Inf(1)}
	begin := time.Now()
	for round := range rounds {
		if round >= fewest && time.Since(begin) > longest {
			break
		}
		for _, v := range []struct {
			count, bytes int
			whole        *float64
		}{{1, few, &least.one}, {volley, few, &least.all}, {1, many, &least.oneLarge}, {volley, many, &least.allLarge}} {
			sending, whole, err := p.Volley(v.count, v.bytes)
			if err != nil {
				return collectives.Link{}, err
			}
			*v.whole = min(*v.whole, float64(whole))
			if v.count == volley && v.bytes == few {
				least.sending = min(least.sending, float64(sending))
			}
		}
	}
	return least.link(few, many), nil
}

// times are those of volleys, in ns: how long the sender of one of few bytes was busy, and how long volleys of one message
// and of all took, of few bytes and of many.
type times struct{ sending, one, all, oneLarge, allLarge float64 }

// What a part that does not show is taken to be, for none is nothing: a byte no less than where a terabyte takes a second, the
// work to send a volley no less than the clock tells.
const (
	leastPerByte = 0.001
	leastSending = 1
	// distinct is the least part of a sum that is told from the rest of it.
	distinct = 1. / 128
)

// link finds the parameters. The method is that of Kielmann, Bal and Verstoep (Fast
// Measurement of LogP Parameters, 2000), with the gap per byte from the difference of two
// sizes: a volley takes the time of one message and its answer, and the interval between
// messages for each of the others. The parts add up to what was measured: both overheads and
// the latency to the time of a message on its way, gap and bytes to the interval.
func (t times) link(few, many int) collectives.Link {
	var l collectives.Link
	l.Overhead = max(t.sending, leastSending) / volley
	// Who sends is busy for so long with each.
	small := max((t.all-t.one)/(volley-1), l.Overhead)
	large := (t.allLarge - t.oneLarge) / (volley - 1)
	more := large - small
	if more <= 0 { // the work to send hides the bytes
		more = t.oneLarge - t.one
	}
	l.PerByte = max(more/float64(many-few), leastPerByte)
	l.PerByte = min(l.PerByte, (1-distinct)*min(small, t.one)/float64(few))
	l.Gap = small - float64(few)*l.PerByte
	// There and back: the message, and the answer, which has no bytes.
	way := (t.one - float64(few)*l.PerByte) / 2
	l.Latency = way - 2*l.Overhead
	if l.Latency < distinct*way { // measured under load: which part is which does not show
		l.Latency, l.Overhead = way/3, way/3
	}
	return l
}
