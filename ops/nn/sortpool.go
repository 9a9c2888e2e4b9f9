package nn

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/nn/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// SortPool is the generalised pooling operator (Chen et al. 2021, equations 3 and 4) of B sequences of
// l tokens x (B*l, D), of which the first lengths (B) int32 count: each channel is sorted, the largest value first,
// and the values are added up under one weight for each rank,
//
//	w = softmax(scores / temperature) over the ranks below the length
//
// for scores (B*l, 1): (B, D). Equal values keep their order. A sequence without tokens gives 0. The order of all
// values is kept for the backward pass: B l D integers.
func SortPool(x, scores, lengths *gorgonia.Node, l int, temperature float32) *gorgonia.Node {
	return op.Apply(sortPool{l, temperature}.forward(), x, scores, lengths)
}

// sortPool describes the op.
type sortPool struct {
	l           int
	temperature float32
}

func (p sortPool) args() string { return fmt.Sprintf("l=%d temperature=%g", p.l, p.temperature) }

// Auxiliary results.
const (
	sortPoolOrder   = iota // (B*l, D) int32: the place of the value of a rank
	sortPoolWeights        // (B, l), 0 behind the length
)

func (p sortPool) forward() *op.Op {
	return &op.Op{
		Kind: "sort pool", Args: p.args(), Diff: []bool{true, true, false},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			shape, err := pooledShape(in[0], in[2], p.l)
			if err != nil {
				return nil, err
			}
			return shape, op.All(
				op.Need(len(in[1]) == 2 && in[1][0] == in[0][0] && in[1][1] == 1,
					"scores must have shape (%d, 1) (got %v)", in[0][0], in[1]),
				op.Need(p.temperature > 0, "temperature must be positive (got %g)", p.temperature),
			)
		},
		Aux: func(in []tensor.Shape) []exec.AuxSpec {
			return []exec.AuxSpec{{Shape: in[0].Clone(), Int: true}, {Shape: tensor.Shape{in[0][0] / p.l, p.l}}}
		},
		Scratch: func(in []tensor.Shape, threads int) int { return threads * p.l * in[0][1] },
		Host: func(c *exec.Call) (exec.Step, error) {
			d := c.Out.Dim(1)
			body := func(thread, lo, hi int) {
				values := c.Scratch[thread*p.l*d:][:p.l*d]
				for b := lo; b < hi; b++ {
					n := int(c.In[2].I32[b])
					w, out := c.Aux[sortPoolWeights].F32[b*p.l:][:p.l], c.Out.F32[b*d:][:d]
					order := c.Aux[sortPoolOrder].I32[b*p.l*d:][:p.l*d]
					clear(w)
					clear(out)
					clear(order[n*d:])
					if n == 0 {
						continue
					}
					vector.Scale(w[:n], 1/p.temperature, c.In[1].F32[b*p.l:][:n])
					vector.Softmax(w[:n], w[:n])
					copy(values, c.In[0].F32[b*p.l*d:][:n*d])
					sortColumns(values[:n*d], order, n, d)
					for k := range n {
						vector.Axpy(out, w[k], values[k*d:][:d])
					}
				}
			}
			return func() error {
				if err := checkLengths("sort pool", c.In[2].I32, p.l); err != nil {
					return err
				}
				c.Engine.For(c.Out.Dim(0), op.RowGrain(p.l*d), body)
				return nil
			}, nil
		},
		On: oncuda.SortPool(p.l, p.temperature),
		Grad: func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{op.Apply(p.gradX(), out, dy), op.Apply(p.gradScores(), out, in[0], dy), nil}
		},
	}
}

// sortColumns sorts each of the d columns of x (n, d), the largest value first and equal ones in their order, and
// writes their places to order (n, d). It is Batcher's network of comparators (Knuth, The Art of Computer Programming,
// volume 3, algorithm 5.2.2M), of about n (log2 n)^2 / 4 passes over two rows each.
func sortColumns(x []float32, order []int32, n, d int) {
	for i := range n {
		for j := range d {
			order[i*d+j] = int32(i)
		}
	}
	row := func(i int) ([]float32, []int32) { return x[i*d:][:d], order[i*d:][:d] }
	top := 1
	for 2*top < n {
		top *= 2
	}
	for p := top; p > 0; p /= 2 {
		for q, r, gap := top, 0, p; ; q, r, gap = q/2, p, q-p {
			for i := range max(n-gap, 0) {
				if i&p == r {
					a, ia := row(i)
					b, ib := row(i + gap)
					vector.CompareExchange(a, b, ia, ib)
				}
			}
			if q == p {
				break
			}
		}
	}
}

// gradX returns dx (B*l, D) for the output and dy.
func (p sortPool) gradX() *op.Op {
	return &op.Op{
		Kind: "sort pool dx", Args: p.args(), Diff: []bool{false, false},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return tensor.Shape{in[0][0] * p.l, in[0][1]}, op.Need(in[0].Eq(in[1]), "y and dy must have one shape")
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			d := c.Out.Dim(1)
			return c.For(c.In[1].Dim(0), op.RowGrain(p.l*d), func(_, lo, hi int) {
				for b := lo; b < hi; b++ {
					dx, dy := c.Out.F32[b*p.l*d:][:p.l*d], c.In[1].F32[b*d:][:d]
					clear(dx)
					for k, w := range c.InAux[0][sortPoolWeights].F32[b*p.l:][:p.l] {
						if w == 0 {
							continue
						}
						for j, at := range c.InAux[0][sortPoolOrder].I32[(b*p.l+k)*d:][:d] {
							dx[int(at)*d+j] = w * dy[j]
						}
					}
				}
			})
		},
		On: oncuda.SortPoolGradX(p.l),
	}
}

// gradScores returns the gradient of the scores (B*l, 1) for the output, x and dy.
func (p sortPool) gradScores() *op.Op {
	return &op.Op{
		Kind: "sort pool dscores", Args: p.args(), Diff: []bool{false, false, false},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return tensor.Shape{in[1][0], 1}, op.Need(in[0].Eq(in[2]), "y and dy must have one shape")
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			d := c.In[2].Dim(1)
			return c.For(c.In[2].Dim(0), op.RowGrain(p.l*d), func(_, lo, hi int) {
				for b := lo; b < hi; b++ {
					w, ds := c.InAux[0][sortPoolWeights].F32[b*p.l:][:p.l], c.Out.F32[b*p.l:][:p.l]
					x, dy := c.In[1].F32[b*p.l*d:][:p.l*d], c.In[2].F32[b*d:][:d]
					mean := vector.Dot(c.In[0].F32[b*d:][:d], dy) // of the gradients of the weights, under the weights
					for k := range ds {
						if w[k] == 0 {
							ds[k] = 0
							continue
						}
						var dw float32
						for j, at := range c.InAux[0][sortPoolOrder].I32[(b*p.l+k)*d:][:d] {
							dw += x[int(at)*d+j] * dy[j]
						}
						ds[k] = w[k] * (dw - mean) / p.temperature
					}
				}
			})
		},
		On: oncuda.SortPoolGradScores(p.l, p.temperature),
	}
}
