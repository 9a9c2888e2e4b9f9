package transport

import (
	"fmt"
	"math"
)

// Engine shares work among threads, as *compute.Engine does.
type Engine interface {
	For(n, grain int, body func(worker, lo, hi int))
}

// Options are the settings of a transport plan.
type Options struct {
	Epsilon    float64 // weight of the entropy, > 0, in units of the similarities
	Iterations int     // of rows and columns at most; 0: 1000
	Tolerance  float64 // ends where row sums are off by less than this share; 0: Tolerance
}

// Tolerance is the share by which row sums may be off where Options name none.
const Tolerance = 1e-6

// defaults returns the options with the defaults filled in.
func (o Options) defaults() (Options, error) {
	if !(o.Epsilon > 0) || math.IsInf(o.Epsilon, 0) || o.Iterations < 0 || !(o.Tolerance >= 0) {
		return o, fmt.Errorf("transport: a plan needs eps > 0, iterations and a tolerance >= 0 (got %v, %d and %v)",
			o.Epsilon, o.Iterations, o.Tolerance)
	}
	if o.Iterations == 0 {
		o.Iterations = 1000
	}
	if o.Tolerance == 0 {
		o.Tolerance = Tolerance
	}
	return o, nil
}

// Plan is an entropic transport plan between n and m items of equal mass (Cuturi 2013):
//
//	P = argmax <S, P> + eps H(P),  rows sum to 1/n, columns to 1/m
//	log P_ij = (S_ij + f_i + g_j) / eps
//
// by Sinkhorn's iteration. The first round is on the potentials f and g, in the log domain,
// so that a small eps does not underflow. Further rounds scale rows and columns of what it
// leaves, and scales that grow or shrink far go into the potentials (Schmitzer 2019, "Stabilized
// sparse scaling algorithms", section 3): the same numbers as in the log domain, with
// products instead of exponentials.
type Plan struct {
	N, M    int
	Epsilon float64
	S       []float64 // (n, m) similarities: write them before Solve
	F, G    []float64 // (n) and (m), of the last Solve
	Off     float64   // largest relative error of a row sum at its end

	e      Engine
	p, t   []float64 // the plan without the scales (n, m), and transposed (m, n)
	u, v   []float64 // the scales (n) and (m)
	before []float64 // (n)
	sums   []float64 // (n) partial sums of KL
	target []float64 // of KL
	grad   []float64

	// Made once: a closure escapes.
	rows, columns, weigh, scaleRows, scaleColumns, flip, divide func(worker, lo, hi int)
}

// New makes the memory of a plan of n x m items, 24 bytes for each pair. Solve allocates
// nothing.
func New(e Engine, n, m int) (*Plan, error) {
	if n < 1 || m < 1 {
		return nil, fmt.Errorf("transport: a plan needs items on both sides (got %d and %d)", n, m)
	}
	p := &Plan{
		N: n, M: m, e: e, S: make([]float64, n*m), F: make([]float64, n), G: make([]float64, m),
		p: make([]float64, n*m), t: make([]float64, n*m),
		u: make([]float64, n), v: make([]float64, m), before: make([]float64, n), sums: make([]float64, n),
	}
	p.rows = func(_, lo, hi int) { p.potentials(p.F, p.G, p.S, lo, hi) }
	p.columns = func(_, lo, hi int) { p.potentials(p.G, p.F, p.t, lo, hi) }
	p.weigh = func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			for j, v := range p.S[i*m:][:m] {
				p.p[i*m+j] = math.Exp((v + p.F[i] + p.G[j]) / p.Epsilon)
			}
		}
	}
	p.scaleRows = func(_, lo, hi int) { scale(p.u, p.v, p.p, lo, hi) }
	p.scaleColumns = func(_, lo, hi int) { scale(p.v, p.u, p.t, lo, hi) }
	p.flip = func(_, lo, hi int) {
		for j := lo; j < hi; j++ {
			for i := range n {
				p.t[j*n+i] = p.p[i*m+j]
			}
		}
	}
	p.divide = p.divergence
	return p, nil
}

// grain is the number of rows of so many values that are worth a thread.
func grain(values int) int { return max(1, 8192/values) }

// Solve computes the plan of the similarities S. With NaN or +Inf among them it is not finite; a
// pair of -Inf has no mass.
func (p *Plan) Solve(o Options) error {
	o, err := o.defaults()
	if err != nil {
		return err
	}
	p.Epsilon = o.Epsilon
	p.begin()
	for range o.Iterations - 1 {
		if p.Off < o.Tolerance {
			break
		}
		copy(p.before, p.u)
		p.e.For(p.N, grain(p.M), p.scaleRows)
		p.Off = 0
		for i, u := range p.u { // before this update row i summed to before/u/n
			p.Off = max(p.Off, math.Abs(p.before[i]/u-1))
		}
		p.e.For(p.M, grain(p.N), p.scaleColumns)
		if extreme(p.u) || extreme(p.v) {
			p.absorb()
		}
	}
	p.absorb()
	return nil
}

// begin is the first round, in the log domain from potentials of 0.
func (p *Plan) begin() {
	clear(p.F)
	clear(p.G)
	copy(p.p, p.S)
	p.e.For(p.M, grain(p.N), p.flip) // for a round the transposed similarities
	p.e.For(p.N, grain(8*p.M), p.rows)
	p.Off = 0
	for _, f := range p.F {
		p.Off = max(p.Off, math.Abs(math.Expm1(-f/p.Epsilon)))
	}
	p.e.For(p.M, grain(8*p.N), p.columns)
	p.restart()
}

// absorb moves the scales into the potentials.
func (p *Plan) absorb() {
	for i, u := range p.u {
		p.F[i] += p.Epsilon * math.Log(u)
	}
	for j, v := range p.v {
		p.G[j] += p.Epsilon * math.Log(v)
	}
	p.restart()
}

// restart computes the plan of the potentials and sets the scales to 1.
func (p *Plan) restart() {
	p.e.For(p.N, grain(8*p.M), p.weigh)
	p.e.For(p.M, grain(p.N), p.flip)
	for i := range p.u {
		p.u[i] = 1
	}
	for j := range p.v {
		p.v[j] = 1
	}
}

// potentials sets f in [lo, hi) so that each row of s (n, m) with the potentials g (m) has
// mass 1/n.
func (p *Plan) potentials(f, g, s []float64, lo, hi int) {
	n, m := len(f), len(g)
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
}

// scale sets u in [lo, hi) so that each row of k (n, m) times the scales u (n) and v (m) has
// mass 1/n.
func scale(u, v, k []float64, lo, hi int) {
	n, m := len(u), len(v)
	for i := lo; i < hi; i++ {
		u[i] = 1 / (float64(n) * dot(k[i*m:][:m], v))
	}
}

// dot is the product of two vectors of one length.
func dot(x, y []float64) float64 {
	var a, b, c, d float64
	for len(x) >= 4 && len(y) >= 4 {
		a += x[0] * y[0]
		b += x[1] * y[1]
		c += x[2] * y[2]
		d += x[3] * y[3]
		x, y = x[4:], y[4:]
	}
	for i, v := range x {
		a += v * y[i]
	}
	return a + b + (c + d)
}

// extreme says whether scales are on their way out of the range of numbers. A round changes
// one by a factor of n*m at most.
func extreme(scales []float64) bool {
	for _, v := range scales {
		if v < 1e-50 || v > 1e50 {
			return true
		}
	}
	return false
}

// Matrix copies P to dst (n, m).
func (p *Plan) Matrix(dst []float64) { copy(dst, p.p) }
