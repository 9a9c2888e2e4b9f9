package objectives

import "math"

// Ramp is a value that grows linearly from 0 over some updates, or over some epochs if
// those are more.
type Ramp struct {
	To     float64
	Steps  int
	Epochs float64
}

// At returns the value after so many updates, where an epoch has perEpoch of them.
func (r Ramp) At(update int, perEpoch float64) float64 {
	n := max(r.Steps, int(math.Round(r.Epochs*perEpoch)))
	if n <= 0 || update >= n {
		return r.To
	}
	return r.To * float64(update) / float64(n)
}
