package conv

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// responseEps keeps the mean of norms from 0.
const responseEps = 1e-6

// Responses returns x (B*p, C), rows of p places of an image, with channel c times its share of the responses of the
// image (Woo et al. 2023, equations 1 and 2):
//
//	y[b, i, c] = x[b, i, c] * |x[b, :, c]| / (mean over k of |x[b, :, k]| + 1e-6)
func Responses(x *gorgonia.Node, p int) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "responses", Args: fmt.Sprintf("p=%d", p), Diff: []bool{true},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return in[0].Clone(), op.Need(len(in[0]) == 2 && p > 0 && in[0][0]%p == 0,
				"want x (B*%d, C) (got %v)", p, in[0])
		},
		Scratch: responseScratch(p),
		Host: func(c *exec.Call) (exec.Step, error) {
			d := c.Out.Dim(1)
			return c.For(c.Out.Dim(0)/p, 1, func(_, lo, hi int) {
				for b := lo; b < hi; b++ {
					x, y, share := c.In[0].F32[b*p*d:][:p*d], c.Out.F32[b*p*d:][:p*d], c.Scratch[2*b*d:][:d]
					responses(share, x)
					for i, v := range x {
						y[i] = v * share[i%d]
					}
				}
			})
		},
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{op.Apply(responsesGrad(p), in[0], dy)}
		},
	}, x)
}

// responseScratch is two numbers of each channel of an image.
func responseScratch(p int) func([]tensor.Shape, int) int {
	return func(in []tensor.Shape, _ int) int { return 2 * in[0].TotalSize() / p }
}

// responses sets the share of each channel of an image x (p*C), and returns the mean of norms.
func responses(share, x []float32) float64 {
	d := len(share)
	clear(share)
	for i, v := range x {
		share[i%d] += v * v
	}
	var mean float64
	for _, s := range share {
		mean += math.Sqrt(float64(s))
	}
	mean = mean/float64(d) + responseEps
	for i, s := range share {
		share[i] = float32(math.Sqrt(float64(s)) / mean)
	}
	return mean
}

// responsesGrad returns dx for x and dy. With s the norms of the channels, m their mean and a = sum over places of x dy,
// that of s[c] is a[c]/m - sum over k of a[k] s[k] / (C m^2).
func responsesGrad(p int) *op.Op {
	return &op.Op{
		Kind: "responses dx", Args: fmt.Sprintf("p=%d", p), Diff: []bool{false, false},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return in[0].Clone(), op.Need(in[0].Eq(in[1]), "x and dy must have one shape")
		},
		Scratch: responseScratch(p),
		Host: func(c *exec.Call) (exec.Step, error) {
			d := c.Out.Dim(1)
			return c.For(c.Out.Dim(0)/p, 1, func(_, lo, hi int) {
				for b := lo; b < hi; b++ {
					x, dy, dx := c.In[0].F32[b*p*d:][:p*d], c.In[1].F32[b*p*d:][:p*d], c.Out.F32[b*p*d:][:p*d]
					share, ds := c.Scratch[2*b*d:][:d], c.Scratch[(2*b+1)*d:][:d]
					mean := responses(share, x)
					clear(ds)
					for i, v := range x {
						ds[i%d] += v * dy[i]
					}
					var all float64
					for k, a := range ds {
						all += float64(a) * float64(share[k]) // a s / m
					}
					for k, a := range ds {
						s := float64(share[k]) * mean
						if ds[k] = 0; s > 0 {
							ds[k] = float32((float64(a) - all/float64(d)) / mean / s)
						}
					}
					for i, v := range x {
						dx[i] = dy[i]*share[i%d] + v*ds[i%d]
					}
				}
			})
		},
	}
}
