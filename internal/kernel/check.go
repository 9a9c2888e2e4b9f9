package kernel

import (
	"fmt"
	"math"
	"sync"

	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// checker compares results of a product with that of the default.
//
// A sum of K terms has, in whatever order it is made, an error of at most K u sum |a||b| with u = 2^-24 (Higham,
// Accuracy and Stability of Numerical Algorithms, section 3.1), and sum_k |a_ik||b_kj| <= |a_i| |b_j| by the norms of
// row i of op(A) and column j of op(B). Two right results differ by no more than twice that, and by the roundings of
// what follows the product.
type checker struct {
	e         *Engine
	p         *gemm.Product
	own       output
	rows      []float64 // |a_i| (M)
	columns   []float64 // |b_j| (N)
	inverse   []float32 // 1/|b_j|
	tolerance float64   // of a sum with norms of 1
	usable    bool      // a difference between results would be seen
}

// newChecker takes the result own of p by the default.
func newChecker(e *Engine, p *gemm.Product, own output) *checker {
	c := &checker{e: e, p: p, own: own, tolerance: float64(p.K+8) * 0x1p-23 * math.Abs(float64(p.Alpha))}
	ra, ca := p.StoredA()
	rb, cb := p.StoredB()
	c.rows = norms(e, p.A, ra, ca, !p.TransA)
	c.columns = norms(e, p.B, rb, cb, p.TransB)
	c.inverse = make([]float32, p.N)
	a, b := 0., 0.
	for _, x := range c.rows {
		a += x
	}
	for j, x := range c.columns {
		b += x
		c.inverse[j] = float32(min(1/x, math.MaxFloat32))
	}
	c.usable = a*b > 0 && !math.IsInf(a*b, 0) && c.finite()
	return c
}

// finite says whether what is added to the product is.
func (c *checker) finite() bool {
	p, sum := c.p, vector.SumSq(c.p.Bias)
	if p.Beta != 0 {
		for i := range p.M {
			sum += vector.SumSq(p.C[i*p.LDC:][:p.N])
		}
	}
	return !math.IsInf(sum, 0) && !math.IsNaN(sum)
}

// norms returns the norms of the rows of x, or of its columns.
func norms(e *Engine, x gemm.Matrix, rows, columns int, ofRows bool) []float64 {
	if ofRows {
		out := make([]float64, rows)
		e.For(rows, 16, func(_, lo, hi int) {
			room := make([]float32, columns)
			for i := lo; i < hi; i++ {
				out[i] = math.Sqrt(vector.SumSq(values(room, x, i, 0, columns)))
			}
		})
		return out
	}
	out := make([]float64, columns)
	e.For(columns, 64, func(_, lo, hi int) {
		room, sum := make([]float32, hi-lo), make([]float32, hi-lo)
		for i := range rows {
			row := values(room, x, i, lo, hi)
			vector.Mul(room, row, row)
			vector.Add(sum, sum, room)
		}
		for j, s := range sum {
			out[lo+j] = math.Sqrt(float64(s))
		}
	})
	return out
}

// values returns columns lo to hi of row i of x as float32, in room if they are not.
func values(room []float32, x gemm.Matrix, i, lo, hi int) []float32 {
	if x.BF16 == nil {
		return x.F32[i*x.LD+lo : i*x.LD+hi]
	}
	vector.FromBF16(room, x.BF16[i*x.LD+lo:i*x.LD+hi])
	return room
}

// verdict is the outcome of a comparison.
type verdict int

const (
	agrees       verdict = iota
	isWrong              // the result that was compared
	defaultWrong         // that of the default
)

// difference is the place where two results differ most.
type difference struct {
	i, j int
	size float64 // over what rounding explains; 1 and less is none
}

// compare returns what is to be said of a result, and in words by what it differs.
func (c *checker) compare(x output) (verdict, string) {
	var mu sync.Mutex
	worst, activation := difference{size: 1}, true
	c.e.For(c.p.M, 8, func(_, lo, hi int) {
		room := make([]float32, c.p.N)
		own, fits := difference{size: 1}, true
		for i := lo; i < hi; i++ {
			if d := c.row(x, i, room); d.size > own.size {
				own = d
			}
			fits = fits && c.activated(x, i, room)
		}
		mu.Lock()
		defer mu.Unlock()
		activation = activation && fits
		if own.size > worst.size {
			worst = own
		}
	})
	switch {
	case worst.size > 1:
		return c.judge(x, worst)
	case !activation:
		return isWrong, "its " + c.p.Activation.String() + " is wrong"
	}
	return agrees, ""
}

// row compares row i.
func (c *checker) row(x output, i int, room []float32) difference {
	at := i * c.p.LDC
	got, want := x[at:][:c.p.N], c.own[at:][:c.p.N]
	// If the sum of all squares is small, each of them is.
	vector.Sub(room, got, want)
	vector.Mul(room, room, c.inverse)
	if bound := c.tolerance * c.rows[i]; vector.SumSq(room) <= bound*bound {
		return difference{}
	}
	worst := difference{}
	for j := range got {
		g, w := float64(got[j]), float64(want[j])
		size := math.Abs(g-w) / c.bound(i, j, g, w)
		if size > worst.size || size != size {
			worst = difference{i, j, size}
		}
		if size != size {
			worst.size = math.Inf(1)
			break
		}
	}
	return worst
}

// bound is the largest difference of two right results at (i, j), of which one is v.
func (c *checker) bound(i, j int, v, w float64) float64 {
	return c.tolerance*c.rows[i]*c.columns[j] + 0x1p-21*(math.Abs(v)+math.Abs(w)) + 1e-30
}

// activated says whether row i of the activation, which x came with last, is that of x.
func (c *checker) activated(x output, i int, room []float32) bool {
	if c.p.Activated == nil {
		return true
	}
	at := i * c.p.LDC
	in := x[at:][:c.p.N]
	c.p.Activation.Apply(room, in)
	vector.Sub(room, room, c.p.Activated[at:][:c.p.N])
	return vector.SumSq(room) <= 1e-11*(float64(c.p.N)+vector.SumSq(in))
}

// judge decides by the exact value which of two results is wrong.
func (c *checker) judge(x output, d difference) (verdict, string) {
	exact := c.exact(d.i, d.j)
	at := d.i*c.p.LDC + d.j
	got, want := float64(x[at]), float64(c.own[at])
	right := func(v float64) bool { return math.Abs(v-exact) <= c.bound(d.i, d.j, v, exact) }
	if right(got) && !right(want) {
		return defaultWrong, fmt.Sprintf("row %d column %d is %g and must be %g", d.i, d.j, want, exact)
	}
	return isWrong, fmt.Sprintf("row %d column %d is %g and must be %g", d.i, d.j, got, exact)
}

// exact computes element (i, j) of the result in float64.
func (c *checker) exact(i, j int) float64 {
	p, sum := c.p, 0.
	for k := range p.K {
		ra, ca, rb, cb := i, k, k, j
		if p.TransA {
			ra, ca = ca, ra
		}
		if p.TransB {
			rb, cb = cb, rb
		}
		sum += operand(p, p.A, ra, ca) * operand(p, p.B, rb, cb)
	}
	sum *= float64(p.Alpha)
	if p.Beta != 0 {
		sum += float64(p.Beta) * float64(p.C[i*p.LDC+j])
	}
	if p.Bias != nil {
		sum += float64(p.Bias[j])
	}
	return sum
}

// operand returns an element of x as p multiplies it.
func operand(p *gemm.Product, x gemm.Matrix, i, j int) float64 {
	var one [1]float32
	v := values(one[:], x, i, j, j+1)
	if p.BF16 {
		vector.RoundBF16(one[:], v)
		v = one[:]
	}
	return float64(v[0])
}
