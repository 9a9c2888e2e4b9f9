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
	// value lies within as many standard deviations of the last third.
	flatErrors = 3
)

// Loss says of the losses of a log, in the order of their steps, that they diverged or never fell.
func Loss(losses []float64) string {
	n := len(losses)
	if n < 2 {
		return ""
	}
	first := losses[0]
	last, _ := meanDeviation(losses[n-max(1, n/10):])
	if last > divergedBy*math.Abs(first) && first != 0 || math.IsNaN(last) || math.IsInf(last, 0) {
		return fmt.Sprintf("the loss diverged: it began at %.4g and ended at %.4g; lower optimizer.lr", first, last)
	}
	if n < leastRows {
		return ""
	}
	third := n / 3
	a, sdA := meanDeviation(losses[:third])
	b, sdB := meanDeviation(losses[n-third:])
	deviation := max(sdA, sdB)
	if math.Abs(a-b) > flatErrors*math.Sqrt((sdA*sdA+sdB*sdB)/float64(third)) ||
		math.Abs(first-b) > flatErrors*deviation {
		return ""
	}
	return fmt.Sprintf("the loss has not moved beyond its noise: %.4g in the first third of the log, %.4g in the last, deviation %.2g; nothing seems to have been learned (look at optimizer.lr, optimizer.clip_norm and what is frozen)", a, b, deviation)
}

// meanDeviation returns the mean and the standard deviation.
func meanDeviation(x []float64) (mean, deviation float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		deviation += (v - mean) * (v - mean)
	}
	if len(x) > 1 {
		deviation = math.Sqrt(deviation / float64(len(x)-1))
	} else {
		deviation = 0
	}
	return mean, deviation
}
