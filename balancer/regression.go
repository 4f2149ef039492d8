package balancer

import "math"

// regression is the straight line through the origin that is nearest, by least squares, to
// what came, given what was foreseen: differences from the mean, of all ranks, where what is
// k cycles old counts fading^k. Its slope is 1 where differences stay, small ones too, and 0
// where they are noise, which is not there again. Of many ranks it is known well, though of
// each of them little is.
type regression struct {
	squares, products, came, count float64
}

func (l *regression) fade() {
	l.squares = float64(l.squares * fading)
	l.products = float64(l.products * fading)
	l.came = float64(l.came * fading)
	l.count = float64(l.count * fading)
}

func (l *regression) add(foreseen, came float64) {
	l.squares += float64(foreseen * foreseen)
	l.products += float64(foreseen * came)
	l.came += float64(came * came)
	l.count++
}

// telling is how many differences it takes to tell the slope.
const telling = 32

// surely is what the slope hardly is below: by three standard errors.
func (l *regression) surely() float64 {
	if l.count < telling || l.squares < nothing {
		return 0
	}
	slope := l.products / l.squares
	rest := max(0, l.came-float64(slope*l.products))
	return max(0, min(1, slope-float64(3*math.Sqrt(rest/l.count/l.squares))))
}
