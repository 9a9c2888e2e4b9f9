package relation

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/ops/relation/internal/oncuda"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// HopArgs are the operands and settings of HopDivergence.
type HopArgs struct {
	Scores *gorgonia.Node // (N, N) similarities of the trained space
	Target *gorgonia.Node // (N, N) those of the fixed one
	// Temperature and TargetTemperature, both > 0, divide them.
	Temperature, TargetTemperature float32
	Hops                           int // L >= 1
}

// HopDivergence returns the scalar
//
//	1/L sum_l 1/N sum_i JS(P*^l_i, P^l_i),  P = softmax of the rows of Scores/Temperature
//
// where P^l_i is row i of the l-th power of P: where a random walk of l steps from row i ends.
// P* is that of Target, and JS(p, q) = KL(p || (p+q)/2)/2 + KL(q || (p+q)/2)/2, in nats, at most
// log 2 (the regulariser of STRUCTURE, NeurIPS 2025; a row is its own neighbour as well). The
// gradient goes to Scores: with G_l = log(q/m)/2 that of a power and S' the scores,
//
//	D_L = G_L,  D_(l-1) = G_(l-1) + D_l P^T,  dP = D_1 + sum_l>1 (P^(l-1))^T D_l
//	dS'_ij = P_ij (dP_ij - sum_k dP_ik P_ik) / Temperature
//
// Products are float32 whatever the engine's precision.
func HopDivergence(a HopArgs) *gorgonia.Node {
	if !(a.Temperature > 0) || !(a.TargetTemperature > 0) || a.Hops < 1 {
		panic(&op.BuildError{Op: "hop divergence",
			Err: fmt.Errorf("want both temperatures > 0 and at least one hop (got %v, %v and %d)", a.Temperature,
				a.TargetTemperature, a.Hops)})
	}
	return op.Apply(hops{a.Temperature, a.TargetTemperature, a.Hops}.forward(), a.Scores, a.Target)
}

// hops describes the op.
type hops struct {
	temperature, target float32
	count               int
}

func (x hops) forward() *op.Op {
	return &op.Op{
		Kind: "hop divergence", Args: fmt.Sprintf("temperature=%v target=%v hops=%d", x.temperature, x.target, x.count),
		Diff: []bool{true, false},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			s, err := similarities(in)
			if err == nil {
				err = op.Need(in[0][0] == in[0][1], "want similarities of rows with themselves (N, N)")
			}
			return s, err
		},
		Aux:     func(in []tensor.Shape) []exec.AuxSpec { return []exec.AuxSpec{{Shape: in[0].Clone()}} },
		Scratch: func(in []tensor.Shape, _ int) int { return x.matrices() * in[0].TotalSize() },
		FLOPs: func(in []tensor.Shape) int64 {
			n := int64(in[0][0])
			return int64(4*(x.count-1)) * 2 * n * n * n
		},
		Host: x.prepare,
		On:   oncuda.Hops(x.temperature, x.target, x.count),
		Grad: func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{arith.MulScalar(op.Take(out, 0, in[0].Shape()), dy), nil}
		},
	}
}

// matrices is the number of matrices (N, N) that a run holds: the powers of P and their
// gradients, two powers of P*, P* itself and two of the way back.
func (x hops) matrices() int { return 2*x.count + 5 }

// hopRun is a run of the op. Matrices are (N, N).
type hopRun struct {
	hops
	c *exec.Call
	n int

	powers, grads []float32 // (L, N, N) P^l and G_l
	first         []float32 // P*
	target, next  []float32 // the power of P* of the hop, and of the one after it
	back, further []float32 // D_l and D_(l-1)
	dp            []float32 // dP, in the memory of the op's gradient
	losses        []float64 // (N) of a hop
	hop           int
	product       gemm.Product

	softmax, compare, finish func(worker, lo, hi int)
}

func (x hops) prepare(c *exec.Call) (exec.Step, error) {
	n := c.In[0].Dim(0)
	r := &hopRun{hops: x, c: c, n: n, losses: make([]float64, n)}
	rest := c.Scratch
	take := func(matrices int) []float32 {
		m := rest[:matrices*n*n]
		rest = rest[len(m):]
		return m
	}
	r.powers, r.grads = take(x.count), take(x.count)
	r.first, r.target, r.next, r.back, r.further = take(1), take(1), take(1), take(1), take(1)
	r.softmax = func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			distribution(r.powers[i*n:][:n], c.In[0].F32[i*n:][:n], x.temperature)
			distribution(r.first[i*n:][:n], c.In[1].F32[i*n:][:n], x.target)
		}
	}
	r.compare, r.finish = r.compareRows, r.finishRows
	return r.run, nil
}

// distribution sets p to the softmax of s/temperature.
func distribution(p, s []float32, temperature float32) {
	vector.Scale(p, 1/temperature, s)
	sum := vector.ExpSum(p, p, vector.Max(p))
	vector.Scale(p, 1/sum, p)
}

// power is P^l.
func (r *hopRun) power(l int) []float32 { return r.matrix(r.powers, l) }

// matrix is that of hop l among those of all.
func (r *hopRun) matrix(all []float32, l int) []float32 { return all[(l-1)*r.n*r.n:][:r.n*r.n] }

// multiply sets out to a*b, or adds it. Either may be transposed.
func (r *hopRun) multiply(out, a, b []float32, transA, transB bool, add float32) {
	n := r.n
	r.product = gemm.Product{
		TransA: transA, TransB: transB, M: n, N: n, K: n, Alpha: 1, Beta: add,
		A: gemm.Matrix{F32: a, LD: n}, B: gemm.Matrix{F32: b, LD: n}, C: out, LDC: n,
	}
	r.c.Engine.Multiply(&r.product)
}

func (r *hopRun) run() error {
	e, grain := r.c.Engine, op.RowGrain(16*r.n)
	e.For(r.n, grain, r.softmax)
	copy(r.target, r.first)
	var sum float64
	for l := 1; l <= r.count; l++ {
		if l > 1 {
			r.multiply(r.power(l), r.power(l-1), r.power(1), false, false, 0)
			r.multiply(r.next, r.target, r.first, false, false, 0)
			r.target, r.next = r.next, r.target
		}
		r.hop = l
		e.For(r.n, grain, r.compare)
		for _, v := range r.losses {
			sum += v
		}
	}
	r.c.Out.F32[0] = float32(sum / float64(r.n*r.count))
	r.dp = r.c.Aux[0].F32
	clear(r.dp)
	copy(r.back, r.matrix(r.grads, r.count))
	for l := r.count; l > 1; l-- {
		r.multiply(r.dp, r.power(l-1), r.back, true, false, 1)
		copy(r.further, r.matrix(r.grads, l-1))
		r.multiply(r.further, r.back, r.power(1), false, true, 1)
		r.back, r.further = r.further, r.back
	}
	e.For(r.n, grain, r.finish)
	return nil
}

// leastMass is the floor of a mass in a logarithm: one that has underflowed stays finite, and
// counts nothing in products.
const leastMass = 1e-30

// ratio returns log(q/m) for the mean m of q and p. It is log(1+d) with d = (q-p)/(q+p), which
// keeps its digits where q is near p.
func ratio(q, p float64) float64 {
	if d := (q - p) / (q + p); math.Abs(d) < .5 {
		return math.Log1p(d)
	}
	return math.Log(2 * q / (q + p))
}

// compareRows compares rows of a hop.
func (r *hopRun) compareRows(_, lo, hi int) {
	share := 1 / float64(r.n*r.count)
	target, power, grad := r.target, r.power(r.hop), r.matrix(r.grads, r.hop)
	for i := lo; i < hi; i++ {
		var sum float64
		for at := i * r.n; at < (i+1)*r.n; at++ {
			p, q := max(float64(target[at]), leastMass), max(float64(power[at]), leastMass)
			up := ratio(q, p)
			sum += q*up + p*ratio(p, q)
			grad[at] = float32(share * up / 2)
		}
		r.losses[i] = sum / 2
	}
}

// finishRows passes the gradient of P through the softmax.
func (r *hopRun) finishRows(_, lo, hi int) {
	for i := lo; i < hi; i++ {
		p, dp := r.powers[i*r.n:][:r.n], r.dp[i*r.n:][:r.n]
		vector.Add(dp, dp, r.back[i*r.n:][:r.n])
		mean := vector.Dot(p, dp)
		for j, v := range p {
			dp[j] = v * (dp[j] - mean) / r.temperature
		}
	}
}
