// Package measure finds the parameters of the LogGP model on a network: what
// collectives chooses schedules from.
package measure

import (
	"time"

	"github.com/montanaflynn/stats"
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

// How much is measured: medians over so many rounds of volleys of so many messages, or
// over as many as fit the time, but some.
const (
	rounds  = 25
	fewest  = 5
	longest = 10 * time.Millisecond
	volley  = 16
)

// Fit measures a link, with messages of few and of many bytes. The method is that of
// Kielmann, Bal and Verstoep (Fast Measurement of LogP Parameters, 2000), with the
// gap per byte from the difference of two sizes: a volley takes the time of one
// message and its answer, and the interval between messages for each of the others.
func Fit(p Probe, few, many int) (collectives.Link, error) {
	if few >= many {
		return collectives.Link{}, errors.Errorf("a gap per byte can't be found from messages of %d and %d bytes", few, many)
	}
	if _, _, err := p.Volley(volley, many); err != nil { // for the caches
		return collectives.Link{}, err
	}
	var sending, alone, small, large []float64
	begin := time.Now()
	for round := range rounds {
		if round >= fewest && time.Since(begin) > longest {
			break
		}
		_, one, err := p.Volley(1, few)
		if err != nil {
			return collectives.Link{}, err
		}
		busy, all, err := p.Volley(volley, few)
		if err != nil {
			return collectives.Link{}, err
		}
		_, oneLarge, err := p.Volley(1, many)
		if err != nil {
			return collectives.Link{}, err
		}
		_, allLarge, err := p.Volley(volley, many)
		if err != nil {
			return collectives.Link{}, err
		}
		sending = append(sending, float64(busy)/volley)
		alone = append(alone, float64(one))
		small = append(small, float64(all-one)/(volley-1))
		large = append(large, float64(allLarge-oneLarge)/(volley-1))
	}
	var medians [4]float64
	for i, figures := range [][]float64{sending, alone, small, large} {
		median, err := stats.Median(figures)
		if err != nil {
			return collectives.Link{}, errors.Wrap(err, "the median of what was measured")
		}
		medians[i] = median
	}
	var l collectives.Link
	l.Overhead = medians[0]
	l.PerByte = max(0, (medians[3]-medians[2])/float64(many-few))
	l.Gap = max(0, medians[2]-float64(few)*l.PerByte)
	// There and back: the message, and the answer, which has no bytes.
	l.Latency = max(0, (medians[1]-float64(few)*l.PerByte)/2-2*l.Overhead)
	return l, nil
}
