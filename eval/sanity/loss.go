package sanity

import (
	"fmt"
	"math"
)

const (
	// divergedBy is how far above its start a loss ends that has diverged. A loss starts near what guessing gives; a
	// part that joins later, such as the contrast with a queue, at most doubles the sum.
	divergedBy = 3
	// leastRows of a log tell whether a loss has fallen.
	leastRows = 10
	// flatErrors: the means of the first and of the last third differ by fewer standard errors than this, and the first
	// value lies within as many deviations of the last third. The deviation is that of one value after another behind the
	// first third, which is noise alone: that of the first third is large in a run that falls quickly.
	flatErrors = 3
)

// Loss says of the losses of a log, in the order of their steps, that they diverged or never fell.
func Loss(losses []float64) string {
	n := len(losses)
	if n < 2 {
		return ""
	}
	first := losses[0]
	last := mean(losses[n-max(1, n/10):])
	if last > divergedBy*math.Abs(first) && first != 0 || math.IsNaN(last) || math.IsInf(last, 0) {
		return fmt.Sprintf("the loss diverged: it began at %.4g and ended at %.4g; lower optimizer.lr", first, last)
	}
	if n < leastRows {
		return ""
	}
	third := n / 3
	a, b, deviation := mean(losses[:third]), mean(losses[n-third:]), noise(losses[third:])
	deviation = max(deviation, 1e-9*math.Abs(b)) // of a constant, whose means differ by rounding
	if math.Abs(a-b) > flatErrors*deviation*math.Sqrt(2/float64(third)) || math.Abs(first-b) > flatErrors*deviation {
		return ""
	}
	return fmt.Sprintf("the loss has not moved beyond its noise: %.4g in the first third of the log, %.4g in the last, deviation %.2g; nothing seems to have been learned (look at optimizer.lr, optimizer.clip_norm and what is frozen)", a, b, deviation)
}

func mean(x []float64) (m float64) {
	for _, v := range x {
		m += v / float64(len(x))
	}
	return m
}

// noise returns the standard deviation of x around its trend, from the differences of neighbours (von Neumann 1941).
func noise(x []float64) float64 {
	var sum float64
	for i, v := range x[1:] {
		sum += (v - x[i]) * (v - x[i])
	}
	return math.Sqrt(sum / float64(2*(len(x)-1)))
}
