package transport

import (
	"fmt"
	"math"
)

// KL is the term of SOTAlign between two spaces (arXiv 2602.23353): the divergence
//
//	KL(P* || P) = sum P*_ij log(P*_ij / P_ij)
//
// of the plan P of similarities S from a target plan P* (n, m) with the same masses. Its
// gradient in S, which grad (n, m) receives, needs no pass back through Sinkhorn's iteration,
//
//	d KL / dS = (P - P*) / eps
//
// with the eps of P, whatever that of the target was: with equal masses
// KL = <P*, log P*> - (<P*, S> + <1/n, f> + <1/m, g>)/eps, and d/dS of the potentials' sum
// is -P, since they solve the dual problem. It holds at convergence: Off says how far P is
// from it. grad may be the memory of the target.
func (p *Plan) KL(target, grad []float64) (float64, error) {
	if len(target) != p.N*p.M || len(grad) != p.N*p.M {
		return 0, fmt.Errorf("transport: the target plan has %d values and its gradient %d: want %d x %d", len(target),
			len(grad), p.N, p.M)
	}
	p.target, p.grad = target, grad
	p.e.For(p.N, grain(8*p.M), p.divide)
	var kl float64
	for _, v := range p.sums {
		kl += v
	}
	return kl, nil
}

// divergence is KL of rows [lo, hi).
func (p *Plan) divergence(_, lo, hi int) {
	m := p.M
	for i := lo; i < hi; i++ {
		p.sums[i] = 0
		for j, t := range p.target[i*m:][:m] {
			at := i*m + j
			if t != 0 { // NaN too
				p.sums[i] += t * (math.Log(t) - (p.S[at]+p.F[i]+p.G[j])/p.Epsilon)
			}
			p.grad[at] = (p.p[at] - t) / p.Epsilon
		}
	}
}
