package conv

import (
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/convolve"
	"github.com/geoalign/geoalign/ops/conv/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Conv returns the convolution of x (B*H*W, Cin) with w (Cout, Cin, k, k), PyTorch's nn.Conv2d without bias:
// (B*Ho*Wo, Cout),
//
//	y[b, i, j, o] = sum over u, v, c of w[o, c, u, v] x[b, i*stride + u - pad, j*stride + v - pad, c]
//
// with 0 for places outside the image.
func Conv(x, w *gorgonia.Node, g Geometry) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "conv", Args: g.String(), Diff: []bool{true, true},
		Shape:   func(in []tensor.Shape) (tensor.Shape, error) { return g.result(in[0], in[1]) },
		Scratch: func(in []tensor.Shape, threads int) int { return g.scratch(in[0], in[1], threads) },
		FLOPs:   func(in []tensor.Shape) int64 { return g.flops(in[0], in[1]) },
		Host: func(c *exec.Call) (exec.Step, error) {
			k, err := g.convolution(c, c.In[0].Shape, c.In[1].Shape)
			return func() error {
				k.Forward(c.Out.F32, c.In[0].F32, c.In[1].F32, convolve.After{}, c.Scratch)
				return nil
			}, err
		},
		On: oncuda.Forward(g.of),
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{
				op.Apply(g.gradX(in[0].Shape()), dy, in[1]),
				op.Apply(g.gradW(in[1].Shape()), dy, in[0]),
			}
		},
	}, x, w)
}

// gradX returns dx of shape x for dy (B*Ho*Wo, Cout) and w.
func (g Geometry) gradX(x tensor.Shape) *op.Op {
	return &op.Op{
		Kind: "conv dx", Args: g.String(), Diff: []bool{false, false}, Accumulates: true,
		Shape:   func(in []tensor.Shape) (tensor.Shape, error) { return x.Clone(), g.fits(x, in[1], in[0]) },
		Scratch: func(in []tensor.Shape, threads int) int { return g.scratch(x, in[1], threads) },
		FLOPs:   func(in []tensor.Shape) int64 { return g.flops(x, in[1]) },
		Host: func(c *exec.Call) (exec.Step, error) {
			k, err := g.convolution(c, x, c.In[1].Shape)
			return func() error {
				k.Data(c.Out.F32, c.In[0].F32, c.In[1].F32, c.Accumulate, c.Scratch)
				return nil
			}, err
		},
		On: oncuda.Data(g.of, x),
	}
}

// gradW returns dw of shape w for dy (B*Ho*Wo, Cout) and x.
func (g Geometry) gradW(w tensor.Shape) *op.Op {
	return &op.Op{
		Kind: "conv dw", Args: g.String(), Diff: []bool{false, false}, Accumulates: true,
		Shape:   func(in []tensor.Shape) (tensor.Shape, error) { return w.Clone(), g.fits(in[1], w, in[0]) },
		Scratch: func(in []tensor.Shape, threads int) int { return g.scratch(in[1], w, threads) },
		FLOPs:   func(in []tensor.Shape) int64 { return g.flops(in[1], w) },
		Host: func(c *exec.Call) (exec.Step, error) {
			k, err := g.convolution(c, c.In[1].Shape, w)
			return func() error {
				k.Weights(c.Out.F32, c.In[0].F32, c.In[1].F32, c.Accumulate, c.Scratch)
				return nil
			}, err
		},
		On: oncuda.Gradient(g.of, w),
	}
}

// result is the shape of the convolution of x with w.
func (g Geometry) result(x, w tensor.Shape) (tensor.Shape, error) {
	s, err := g.of(x, w)
	if err != nil {
		return nil, err
	}
	return tensor.Shape{s.Batch * g.out(), s.Out}, nil
}

// fits checks the gradient of a result.
func (g Geometry) fits(x, w, dy tensor.Shape) error {
	y, err := g.result(x, w)
	return op.All(err, op.Need(y.Eq(dy), "dy must have shape %v (got %v)", y, dy))
}

func (g Geometry) scratch(x, w tensor.Shape, threads int) int {
	s, err := g.of(x, w)
	if err != nil {
		return 0
	}
	return s.Scratch(threads)
}

func (g Geometry) flops(x, w tensor.Shape) int64 {
	s, err := g.of(x, w)
	if err != nil {
		return 0
	}
	return s.FLOPs()
}

// convolution makes the kernel for x and w.
func (g Geometry) convolution(c *exec.Call, x, w tensor.Shape) (*convolve.Convolution, error) {
	s, err := g.of(x, w)
	if err != nil {
		return nil, err
	}
	return c.Engine.NewConvolution(s), nil
}
