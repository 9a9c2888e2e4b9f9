package align

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/compute"
)

// PlanOptions are the settings of a transport plan.
type PlanOptions struct {
	Epsilon    float64 // weight of the entropy, > 0, in units of the similarities
	Iterations int     // of rows and columns at most; 0: 1000
	Tolerance  float64 // ends where row sums are off by less than this share; 0: 1e-6
}

// Plan is an entropic transport plan between n and m items of equal mass (Cuturi 2013):
//
//	P = argmax <S, P> + eps H(P),  rows sum to 1/n, columns to 1/m
//	log P_ij = (S_ij + f_i + g_j) / eps
//
// by Sinkhorn's iteration on the potentials f and g in the log domain, so that a small eps does
// not underflow.
type Plan struct {
	N, M    int
	Epsilon float64
	F, G    []float64 // (n) and (m)
	s, t    []float64 // similarities (n, m) and transposed (m, n)
	Off     float64   // largest relative error of a row sum at the end
}

// NewPlan computes the plan of similarities s (n, m), which it keeps. It fails on numbers
// that are not finite.
func NewPlan(e *compute.Engine, s []float64, n, m int, o PlanOptions) (*Plan, error) {
	if n < 1 || m < 1 || len(s) != n*m {
		return nil, fmt.Errorf("align: a plan of %d x %d items needs as many similarities (got %d)", n, m, len(s))
	}
	for i, v := range s {
		if v-v != 0 {
			return nil, fmt.Errorf("align: similarity of items %d and %d is %v: look for the first number that is not finite in the features", i/m, i%m, v)
		}
	}
	p := &Plan{N: n, M: m, F: make([]float64, n), G: make([]float64, m), s: s, t: make([]float64, n*m)}
	for i := range n {
		for j := range m {
			p.t[j*n+i] = s[i*m+j]
		}
	}
	return p, p.Run(e, o)
}

// Run goes on from the present potentials, with another eps perhaps.
func (p *Plan) Run(e *compute.Engine, o PlanOptions) error {
	if !(o.Epsilon > 0) || math.IsInf(o.Epsilon, 0) || o.Iterations < 0 || !(o.Tolerance >= 0) {
		return fmt.Errorf("align: a plan needs eps > 0, iterations and a tolerance >= 0 (got %v, %d and %v)", o.Epsilon, o.Iterations, o.Tolerance)
	}
	if o.Iterations == 0 {
		o.Iterations = 1000
	}
	if o.Tolerance == 0 {
		o.Tolerance = 1e-6
	}
	p.Epsilon = o.Epsilon
	before := make([]float64, p.N)
	for range o.Iterations {
		copy(before, p.F)
		p.potentials(e, p.F, p.G, p.s)
		p.Off = 0
		for i, f := range p.F { // before this update row i summed to exp((before-f)/eps)/n
			p.Off = max(p.Off, math.Abs(math.Expm1((before[i]-f)/p.Epsilon)))
		}
		p.potentials(e, p.G, p.F, p.t)
		if p.Off < o.Tolerance {
			break
		}
	}
	return nil
}

// potentials sets f (n) so that each row of s (n, m) with the potentials g (m) has mass 1/n.
func (p *Plan) potentials(e *compute.Engine, f, g, s []float64) {
	n, m := len(f), len(g)
	e.For(n, 8, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			row := s[i*m:][:m]
			top := math.Inf(-1)
			for j, v := range row {
				top = max(top, v+g[j])
			}
			var sum float64
			for j, v := range row {
				sum += math.Exp((v + g[j] - top) / p.Epsilon)
			}
			f[i] = -top - p.Epsilon*math.Log(sum*float64(n))
		}
	})
}

// Matrix returns P (n, m).
func (p *Plan) Matrix(e *compute.Engine) []float64 {
	out := make([]float64, len(p.s))
	e.For(p.N, 8, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			for j, v := range p.s[i*p.M:][:p.M] {
				out[i*p.M+j] = math.Exp((v + p.F[i] + p.G[j]) / p.Epsilon)
			}
		}
	})
	return out
}
