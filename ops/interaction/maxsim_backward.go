package interaction

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/tensor"
)

// gradient is what the gradient ops share: operands are the forward's, its output, whose
// auxiliary results say where the maxima are, and the gradient g (N, M) of that. body works on
// sequences of side k, each by one thread; on is its step on the CUDA device.
func (x *maxSim) gradient(kind string, k int, shape func(in []tensor.Shape) tensor.Shape,
	body func(c *exec.Call, i int), on map[string]exec.DeviceStep) *op.Op {
	return &op.Op{
		Kind: kind, Args: fmt.Sprintf("%s of=%d", x.args(), k), Diff: make([]bool, x.operands+2),
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			out, err := x.shape(in[:x.operands])
			if err != nil {
				return nil, err
			}
			return shape(in), op.Need(in[x.operands].Eq(out) && in[x.operands+1].Eq(out),
				"output and dy must have shape %v", out)
		},
		On: on,
		Host: func(c *exec.Call) (exec.Step, error) {
			n := c.In[k].Dim(0) / x.sides[k].len
			return c.For(n, 1, func(_, lo, hi int) {
				for i := lo; i < hi; i++ {
					body(c, i)
				}
			})
		},
	}
}

// ofSequence is a sequence of one side among the pairs with all sequences of the other.
type ofSequence struct {
	x          *maxSim
	c          *exec.Call
	own, other side
	i          int // the sequence
	n          int // sequences of the other side
}

func (x *maxSim) pairsOf(c *exec.Call, k, i int) ofSequence {
	return ofSequence{x: x, c: c, own: x.sides[k], other: x.sides[1-k], i: i, n: c.In[1-k].Dim(0) / x.sides[1-k].len}
}

// with returns the gradient of the score with sequence j of the other side, and the places of
// the maxima of both sides' tokens, nil of a side without weights.
func (p ofSequence) with(j int) (g float32, own, other []int32) {
	image, text := p.i, j
	if p.own.rows == 1 {
		image, text = j, p.i
	}
	m := p.c.In[p.x.operands].Dim(1)
	places := func(s side) []int32 {
		if s.places < 0 {
			return nil
		}
		return p.c.InAux[p.x.operands][s.places].I32[s.at(image, text, m):][:s.len]
	}
	return p.c.In[p.x.operands+1].F32[image*m+text], places(p.own), places(p.other)
}

// token returns token k of sequence i of a side.
func (p ofSequence) token(s side, i, k int) []float32 {
	d := p.c.In[0].Dim(1)
	return p.c.In[s.rows].F32[(i*s.len+k)*d:][:d]
}

// rowsGradient is that of the tokens of side k:
//
//	dx_it = sum_j g_ij (v_it y_j,l(t) + sum_{l: t(l) = t} w_jl y_jl)
//
// where l(t) and t(l) are the places of the maxima.
func (x *maxSim) rowsGradient(k int) *op.Op {
	shape := func(in []tensor.Shape) tensor.Shape { return in[k].Clone() }
	return x.gradient("maxsim drows", k, shape, func(c *exec.Call, i int) {
		p, d := x.pairsOf(c, k, i), c.In[0].Dim(1)
		out := c.Out.F32[i*p.own.len*d:][:p.own.len*d]
		clear(out)
		for j := range p.n {
			g, own, other := p.with(j)
			if g == 0 {
				continue
			}
			for t, l := range own {
				if l >= 0 {
					vector.Axpy(out[t*d:][:d], g*c.In[p.own.weights].F32[i*p.own.len+t], p.token(p.other, j, int(l)))
				}
			}
			for l, t := range other {
				if t >= 0 {
					vector.Axpy(out[int(t)*d:][:d], g*c.In[p.other.weights].F32[j*p.other.len+l],
						p.token(p.other, j, l))
				}
			}
		}
	}, x.onCUDA().GradRows(k))
}

// weightsGradient is that of the weights of side k, sum_j g_ij max_l x_it.y_jl. The maxima are
// made again from their places.
func (x *maxSim) weightsGradient(k int) *op.Op {
	shape := func(in []tensor.Shape) tensor.Shape { return tensor.Shape{in[k][0]} }
	return x.gradient("maxsim dweights", k, shape, func(c *exec.Call, i int) {
		p := x.pairsOf(c, k, i)
		out := c.Out.F32[i*p.own.len:][:p.own.len]
		clear(out)
		for j := range p.n {
			g, own, _ := p.with(j)
			for t, l := range own {
				if l >= 0 {
					out[t] += g * vector.Dot(p.token(p.own, i, t), p.token(p.other, j, int(l)))
				}
			}
		}
	}, x.onCUDA().GradWeights(k))
}
