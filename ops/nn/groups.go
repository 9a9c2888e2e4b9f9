package nn

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// GroupNormArgs are rows whose groups of E columns, such as heads of attention, are normalised each by itself.
type GroupNormArgs struct {
	X     *gorgonia.Node // (R, D)
	Gamma *gorgonia.Node // (E)
	Beta  *gorgonia.Node // (E); nil: none
	// From and Len say which columns are normalised, a multiple of E; the others stay as they are. Len 0: all from
	// From on.
	From, Len int
	Eps       float32
	Root      bool // by the root of the mean square alone, the mean is not subtracted
}

// GroupNorm returns (x-mean)/sqrt(var+eps) * gamma + beta of each group of a row (Ba et al. 2016, equation 4), or with
// Root x/sqrt(mean(x^2)+eps) * gamma + beta (Zhang and Sennrich 2019, equation 4): (R, D). With E = D that is a norm of
// rows.
func GroupNorm(a GroupNormArgs) *gorgonia.Node {
	in := op.Operands{a.X, a.Gamma}
	g := groupNorm{from: a.From, n: a.Len, eps: a.Eps, root: a.Root, beta: a.Beta != nil}
	if g.n == 0 && len(a.X.Shape()) == 2 {
		g.n = a.X.Shape()[1] - g.from
	}
	in.Add(a.Beta)
	return op.Apply(g.forward(), in...)
}

type groupNorm struct {
	from, n    int
	eps        float32
	root, beta bool
}

func (g groupNorm) args() string {
	return fmt.Sprintf("from=%d n=%d eps=%g root=%t beta=%t", g.from, g.n, g.eps, g.root, g.beta)
}

func (g groupNorm) shape(in []tensor.Shape) (tensor.Shape, error) {
	x, gamma := in[0], in[1]
	if err := op.Need(len(x) == 2 && len(gamma) == 1 && gamma[0] > 0, "want x (R, D) and gamma (E) (got %v and %v)", x,
		gamma); err != nil {
		return nil, err
	}
	err := op.All(
		op.Need(g.from >= 0 && g.n > 0 && g.from+g.n <= x[1] && g.n%gamma[0] == 0,
			"want columns in x that are a multiple of the %d of a group (got %d from %d on, of %d)", gamma[0], g.n,
			g.from, x[1]),
		op.Need(g.eps >= 0, "eps must not be negative (got %g)", g.eps),
	)
	if g.beta && err == nil {
		err = op.WantVector(in[2], "beta", gamma[0])
	}
	return x.Clone(), err
}

// moments returns the mean, 0 with root, and 1/sqrt(var+eps) of a group.
func (g groupNorm) moments(x []float32) (mean, rstd float32) {
	var sum, squares float64
	if !g.root {
		for _, v := range x {
			sum += float64(v)
		}
	}
	m := sum / float64(len(x))
	for _, v := range x {
		d := float64(v) - m
		squares += d * d
	}
	return float32(m), float32(1 / math.Sqrt(squares/float64(len(x))+float64(g.eps)))
}

func (g groupNorm) forward() *op.Op {
	o := &op.Op{
		Kind: "group norm", Args: g.args(), Diff: []bool{true, true}, InPlace: []int{0}, Shape: g.shape,
		Host: func(c *exec.Call) (exec.Step, error) {
			cols, e := c.In[0].Dim(1), c.In[1].Dim(0)
			return c.For(c.In[0].Dim(0), op.RowGrain(2*cols), func(_, lo, hi int) {
				gamma := c.In[1].F32
				for r := lo; r < hi; r++ {
					x, y := c.In[0].F32[r*cols:][:cols], c.Out.F32[r*cols:][:cols]
					copy(y[:g.from], x)
					copy(y[g.from+g.n:], x[g.from+g.n:])
					for at := g.from; at < g.from+g.n; at += e {
						x, y := x[at:][:e], y[at:][:e]
						mean, rstd := g.moments(x)
						for i, v := range x {
							y[i] = (v - mean) * rstd * gamma[i]
						}
						if g.beta {
							for i, b := range c.In[2].F32 {
								y[i] += b
							}
						}
					}
				}
			})
		},
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			dx := op.Apply(g.gradient(), in[0], in[1], dy)
			e := in[1].Shape()
			grads := gorgonia.Nodes{dx, op.Take(dx, 0, e)}
			if g.beta {
				grads = append(grads, op.Take(dx, 1, e))
			}
			return grads
		},
	}
	if g.beta {
		o.Diff = append(o.Diff, true)
	}
	return o
}

// gradient returns dx for x, gamma and dy; dgamma and dbeta are its auxiliary results. With n = (x-mean) rstd and
// g = dy gamma, dx = rstd (g - mean(g) - n mean(g n)), with root without mean(g).
func (g groupNorm) gradient() *op.Op {
	return &op.Op{
		Kind: "group norm dx", Args: g.args(), Diff: make([]bool, 3),
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return in[0].Clone(), op.Need(in[0].Eq(in[2]), "x and dy must have one shape")
		},
		Aux: func(in []tensor.Shape) []exec.AuxSpec {
			return []exec.AuxSpec{{Shape: in[1]}, {Shape: in[1]}}
		},
		Scratch: func(in []tensor.Shape, _ int) int { return layerNormScratch(in[1][0]) },
		Host: func(c *exec.Call) (exec.Step, error) {
			cols, e := c.In[0].Dim(1), c.In[1].Dim(0)
			return layerNormGradStep(c, c.In[0].Dim(0), e, func(r int, dgamma, dbeta, _ []float32) {
				gamma := c.In[1].F32
				x, dy, dx := c.In[0].F32[r*cols:][:cols], c.In[2].F32[r*cols:][:cols], c.Out.F32[r*cols:][:cols]
				copy(dx[:g.from], dy)
				copy(dx[g.from+g.n:], dy[g.from+g.n:])
				for at := g.from; at < g.from+g.n; at += e {
					x, dy, dx := x[at:][:e], dy[at:][:e], dx[at:][:e]
					mean, rstd := g.moments(x)
					var sum, dot float64
					for i, v := range x {
						n := (v - mean) * rstd
						dgamma[i] += dy[i] * n
						dbeta[i] += dy[i]
						sum += float64(dy[i] * gamma[i])
						dot += float64(dy[i] * gamma[i] * n)
					}
					if g.root {
						sum = 0
					}
					a, b := float32(sum/float64(e)), float32(dot/float64(e))
					for i, v := range x {
						dx[i] = rstd * (dy[i]*gamma[i] - a - (v-mean)*rstd*b)
					}
				}
			}), nil
		},
	}
}
