package chaos

import (
	"math/rand/v2"
	"time"

	"github.com/pkg/errors"
)

// Faults is what happens to packets on their way. Probabilities are between 0 and 1, and independent.
type Faults struct {
	Loss     float64 // it never arrives
	Repeat   float64 // it arrives once more, with a delay of its own
	Corrupt  float64 // some of its bits are changed
	Truncate float64 // its end is cut off

	Delay  time.Duration // of every packet, one way
	Jitter time.Duration // the most that is added to it, evenly distributed: packets overtake each other

	Late   float64       // it is held up besides,
	LateBy time.Duration // by up to so long: the late packets of an epoch that is over
}

// Check says what is wrong with f.
func (f Faults) Check() error {
	for _, p := range []float64{f.Loss, f.Repeat, f.Corrupt, f.Truncate, f.Late} {
		if !(p >= 0 && p <= 1) {
			return errors.Errorf("a probability of a fault is between 0 and 1, not %v", p)
		}
	}
	if f.Delay < 0 || f.Jitter < 0 || f.LateBy < 0 {
		return errors.New("packets are not delayed by negative times")
	}
	return nil
}

// Dice decides what happens to each packet. With the same seed and the same packets it decides the same.
type Dice struct {
	Faults
	random *rand.Rand
}

// NewDice returns the dice of a seed.
func NewDice(seed uint64, f Faults) *Dice {
	return &Dice{Faults: f, random: rand.New(rand.NewPCG(seed, 0x6576656e6b65656c))}
}

// Copies is how many copies of a packet arrive: 0, 1 or 2.
func (d *Dice) Copies() int {
	copies := 1
	if d.happens(d.Repeat) {
		copies++
	}
	if d.happens(d.Loss) {
		copies--
	}
	return copies
}

// Delayed is how long one copy takes.
func (d *Dice) Delayed() time.Duration {
	delay := d.Delay + d.upTo(d.Jitter)
	if d.happens(d.Late) {
		delay += d.upTo(d.LateBy)
	}
	return delay
}

// Damage changes one copy as its faults want, and returns what is left of it.
func (d *Dice) Damage(data []byte) []byte {
	if len(data) > 0 && d.happens(d.Corrupt) {
		for range 1 + d.random.IntN(4) {
			data[d.random.IntN(len(data))] ^= 1 << d.random.IntN(8)
		}
	}
	if len(data) > 0 && d.happens(d.Truncate) {
		data = data[:d.random.IntN(len(data))]
	}
	return data
}

func (d *Dice) happens(probability float64) bool {
	return probability > 0 && d.random.Float64() < probability
}

func (d *Dice) upTo(most time.Duration) time.Duration {
	if most == 0 {
		return 0
	}
	return time.Duration(d.random.Int64N(int64(most) + 1))
}
