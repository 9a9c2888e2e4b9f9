package run

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/model"
)

// sampledElements of each parameter say whether training moves it.
const sampledElements = 64

// unmoved is the change of the parameters, relative to their length, below which a run has learned nothing: that of ten
// steps at a rate of 1e-8.
const unmoved = 1e-5

// startValues are some elements of each trained parameter before the first step of a session.
type startValues map[string][]float32

// sampleParams copies elements of the trained parameters, evenly spaced.
func sampleParams(p *model.Params) startValues {
	s := startValues{}
	for _, q := range p.List() {
		if x := p.Value(q); !q.Locked && len(x) > 0 {
			s[q.Name] = sampleOf(x)
		}
	}
	return s
}

func sampleOf(x []float32) []float32 {
	n := min(sampledElements, len(x))
	out := make([]float32, n)
	for i := range out {
		out[i] = x[i*len(x)/n]
	}
	return out
}

// caution says that the parameters have not moved, but by weight decay: what is along the parameter itself does not
// count. steps were made since.
func (s startValues) caution(p *model.Params, steps int) string {
	if steps < 1 || len(s) == 0 {
		return ""
	}
	var moved, length float64
	for _, q := range p.List() {
		from := s[q.Name]
		if from == nil {
			continue
		}
		var dd, dx, xx float64
		for i, now := range sampleOf(p.Value(q)) {
			x := float64(from[i])
			d := float64(now) - x
			dd, dx, xx = dd+d*d, dx+d*x, xx+x*x
		}
		if xx > 0 {
			dd = max(0, dd-dx*dx/xx)
		}
		moved, length = moved+dd, length+xx
	}
	if change := math.Sqrt(moved / length); change < unmoved {
		return fmt.Sprintf("nothing was learned: %d steps moved the parameters by %.1g of their length, beside weight decay; look at optimizer.lr and optimizer.clip_norm", steps, change)
	}
	return ""
}
