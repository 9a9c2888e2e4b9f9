package align

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/internal/transport"
)

// Plan is an entropic transport plan between n and m items of equal mass (Cuturi 2013).
type Plan = transport.Plan

// PlanOptions are the settings of a transport plan.
type PlanOptions = transport.Options

// NewPlan computes the plan of similarities s (n, m). It fails on numbers that are not
// finite.
func NewPlan(e *compute.Engine, s []float64, n, m int, o PlanOptions) (*Plan, error) {
	if n < 1 || m < 1 || len(s) != n*m {
		return nil, fmt.Errorf("align: a plan of %d x %d items needs as many similarities (got %d)", n, m, len(s))
	}
	for i, v := range s {
		if v-v != 0 {
			return nil, fmt.Errorf("align: similarity of items %d and %d is %v: look for the first number that is not finite in the features", i/m, i%m, v)
		}
	}
	p, err := transport.New(e, n, m)
	if err != nil {
		return nil, err
	}
	copy(p.S, s)
	return p, p.Solve(o)
}

// PlanKL is the divergence of p from a target plan (n, m), and its gradient (n, m) in the
// similarities of p: see [Plan.KL].
func PlanKL(p *Plan, target []float64) (kl float64, grad []float64, err error) {
	for i, t := range target {
		if !(t >= 0) || math.IsInf(t, 0) {
			return 0, nil, fmt.Errorf("align: the target plan holds %v at %d, %d: want masses >= 0", t, i/p.M, i%p.M)
		}
	}
	grad = make([]float64, p.N*p.M)
	kl, err = p.KL(target, grad)
	return kl, grad, err
}

// masses returns the plan as a matrix (n, m).
func masses(p *Plan) []float64 {
	out := make([]float64, p.N*p.M)
	p.Matrix(out)
	return out
}
