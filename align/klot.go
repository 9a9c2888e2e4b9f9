package align

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/compute"
)

// PlanKL is the term of SOTAlign between two spaces (arXiv 2602.23353): the divergence
// sum P* log(P*/P) of the plan P of similarities s from a target plan P* with the same
// masses. Its gradient in s needs no pass back through Sinkhorn's iteration,
//
//	d/ds = (P - P*) / eps
//
// with the eps of P, whatever that of the target was: with equal masses
// KL = <P*, log P*> - (<P*, S> + <1/n, f> + <1/m, g>)/eps, and d/dS of the potentials' sum
// is -P, since they solve the dual problem. It holds at convergence: p.Off says how far p is
// from it. The gradient is (n, m).
func PlanKL(e *compute.Engine, p *Plan, target []float64) (kl float64, grad []float64, err error) {
	if len(target) != p.N*p.M {
		return 0, nil, fmt.Errorf("align: the target plan has %d values: want %d x %d", len(target), p.N, p.M)
	}
	grad = p.Matrix(e)
	for i, t := range target {
		if !(t >= 0) || math.IsInf(t, 0) {
			return 0, nil, fmt.Errorf("align: the target plan holds %v at %d, %d: want masses >= 0", t, i/p.M, i%p.M)
		}
		if t > 0 {
			kl += t * (math.Log(t) - (p.s[i]+p.F[i/p.M]+p.G[i%p.M])/p.Epsilon)
		}
		grad[i] = (grad[i] - t) / p.Epsilon
	}
	return kl, grad, nil
}
