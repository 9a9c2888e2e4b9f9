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

// SoftPool returns the mean of each channel over the first lengths (B) int32 of the l rows of each sequence of x (B*l,
// D), under weights of that channel (Zhu et al. 2023, "ESA"): (B, D),
//
//	y_d = sum_k p_kd x_kd,  p_.d = softmax_k(s_kd)
//
// for scores s (B*l, D). Of no rows it is 0. Weights are made again in the backward pass.
func SoftPool(x, scores, lengths *gorgonia.Node, l int) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "soft pool", Args: fmt.Sprintf("l=%d", l), Diff: []bool{true, true, false},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			shape, err := pooledShape(in[0], in[2], l)
			if err != nil {
				return nil, err
			}
			return shape, op.Need(in[0].Eq(in[1]), "scores must have the shape %v of x (got %v)", in[0], in[1])
		},
		Aux: func(in []tensor.Shape) []exec.AuxSpec { // the largest score of a channel, and 1/sum exp(s - largest)
			shape := tensor.Shape{in[0][0] / l, in[0][1]}
			return []exec.AuxSpec{{Shape: shape}, {Shape: shape}}
		},
		Scratch: func(in []tensor.Shape, threads int) int { return threads * in[0][1] },
		Host: func(c *exec.Call) (exec.Step, error) {
			d := c.Out.Dim(1)
			body := func(worker, lo, hi int) {
				for b := lo; b < hi; b++ {
					softPoolRow(c, b, l, c.Scratch[worker*d:][:d])
				}
			}
			return func() error {
				if err := checkLengths("soft pool", c.In[2].I32, l); err != nil {
					return err
				}
				c.Engine.For(c.Out.Dim(0), op.RowGrain(l*d), body)
				return nil
			}, nil
		},
		On: oncuda.SoftPool(l),
		Grad: func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
			dx := op.Apply(softPoolGrad(l), out, in[0], in[1], in[2], dy)
			return gorgonia.Nodes{dx, op.Take(dx, 0, in[1].Shape()), nil}
		},
	}, x, scores, lengths)
}

// softPoolRow pools sequence b of l rows.
func softPoolRow(c *exec.Call, b, l int, weights []float32) {
	d := len(weights)
	x, scores := c.In[0].F32[b*l*d:], c.In[1].F32[b*l*d:]
	out, top, scale := c.Out.F32[b*d:][:d], c.Aux[0].F32[b*d:][:d], c.Aux[1].F32[b*d:][:d]
	n := int(c.In[2].I32[b])
	clear(out)
	clear(top)
	clear(scale)
	for k := range n {
		for j, v := range scores[k*d:][:d] {
			if k == 0 || v > top[j] {
				top[j] = v
			}
		}
	}
	for k := range n {
		vector.Sub(weights, scores[k*d:][:d], top)
		vector.Exp(weights, weights)
		for j, w := range weights {
			scale[j] += w
			out[j] += w * x[k*d+j]
		}
	}
	for j, sum := range scale {
		if sum > 0 {
			scale[j] = 1 / sum
			out[j] *= scale[j]
		}
	}
}

// softPoolGrad returns dx (B*l, D) for the output, x, scores, lengths and dy; dscores (B*l, D) is its auxiliary result:
// p dy and p (x - y) dy.
func softPoolGrad(l int) *op.Op {
	return &op.Op{
		Kind: "soft pool dx", Args: fmt.Sprintf("l=%d", l), Diff: make([]bool, 5),
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return in[1].Clone(), op.Need(in[0].Eq(in[4]), "y and dy must have one shape")
		},
		Aux: func(in []tensor.Shape) []exec.AuxSpec { return []exec.AuxSpec{{Shape: in[2]}} },
		Host: func(c *exec.Call) (exec.Step, error) {
			d := c.Out.Dim(1)
			return c.For(c.In[0].Dim(0), op.RowGrain(l*d), func(_, lo, hi int) {
				for b := lo; b < hi; b++ {
					y, dy, top, scale := c.In[0].F32[b*d:][:d], c.In[4].F32[b*d:][:d], c.InAux[0][0].F32[b*d:][:d],
						c.InAux[0][1].F32[b*d:][:d]
					n := int(c.In[3].I32[b])
					for k := range n {
						at := (b*l + k) * d
						x, dx, ds := c.In[1].F32[at:][:d], c.Out.F32[at:][:d], c.Aux[0].F32[at:][:d]
						vector.Sub(dx, c.In[2].F32[at:][:d], top)
						vector.Exp(dx, dx)
						for j, w := range dx {
							dx[j] = w * scale[j] * dy[j]
							ds[j] = dx[j] * (x[j] - y[j])
						}
					}
					clear(c.Out.F32[(b*l+n)*d : (b+1)*l*d])
					clear(c.Aux[0].F32[(b*l+n)*d : (b+1)*l*d])
				}
			})
		},
		On: oncuda.SoftPoolGrad(l),
	}
}
