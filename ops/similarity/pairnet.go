package similarity

import (
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/ops/similarity/internal/oncuda"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// PairNetArgs are the operands of PairNet.
type PairNetArgs struct {
	X, Y *gorgonia.Node // (N, C) images, (M, C) texts
	A    *gorgonia.Node // (H, C) weights of the products of channels
	U, T *gorgonia.Node // (N, H), (M, H) what an image and a text give a hidden unit by themselves
	V    *gorgonia.Node // (H) weights of the hidden units
}

// PairNet returns the scores (N, M) of all pairs by a hidden layer over the products of their channels,
//
//	s_ij = sum_h v_h relu( sum_c a_hc x_ic y_jc + u_ih + t_jh )
//
// An image at a time: the layer with its weights times x_i is a product with all texts, 2NMHC operations, and
// memory is taken for the hidden units of one image with all texts. The backward pass makes
// them again. A CUDA device takes some images at a time. Products are in float32 whatever the engine's precision.
func PairNet(a PairNetArgs) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "pair net", Diff: []bool{true, true, true, true, true, true}, Shape: pairNetShape, FLOPs: pairNetFLOPs,
		Scratch: func(in []tensor.Shape, _ int) int { return in[2].TotalSize() + in[4].TotalSize() },
		Host:    pairNetHost, On: oncuda.PairNetForward(),
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			dx := op.Apply(pairNetGrad(), append(append(gorgonia.Nodes{}, in...), dy)...)
			grads := gorgonia.Nodes{dx}
			for i, n := range in[1:] {
				grads = append(grads, op.Take(dx, i, n.Shape().Clone()))
			}
			return grads
		},
	}, a.X, a.Y, a.A, a.U, a.T, a.V)
}

func pairNetShape(in []tensor.Shape) (tensor.Shape, error) {
	x, y, a := in[0], in[1], in[2]
	if err := op.Need(len(x) == 2 && len(y) == 2 && len(a) == 2 && x[1] == y[1] && a[1] == x[1],
		"want x (N, C), y (M, C) and a (H, C)"); err != nil {
		return nil, err
	}
	return tensor.Shape{x[0], y[0]}, op.All(
		op.WantShape(in, 3, "u", x[0], a[0]),
		op.WantShape(in, 4, "t", y[0], a[0]),
		op.WantVector(in[5], "v", a[0]),
	)
}

func pairNetFLOPs(in []tensor.Shape) int64 {
	return 2 * int64(in[0][0]) * int64(in[1][0]) * int64(in[2].TotalSize())
}

// pairNet is a run of either op, which works on one image after the other.
type pairNet struct {
	c            *exec.Call
	n, m, h, dim int
	image        int
	scaled       []float32 // (H, C): a_hc x_ic
	hidden       []float32 // (M, H)
	product      gemm.Product
	scale        func(worker, lo, hi int)
}

func newPairNet(c *exec.Call) *pairNet {
	r := &pairNet{c: c, n: c.In[0].Dim(0), m: c.In[1].Dim(0), h: c.In[2].Dim(0), dim: c.In[0].Dim(1)}
	r.scaled, r.hidden = c.Scratch[:r.h*r.dim], c.Scratch[r.h*r.dim:][:r.m*r.h]
	r.scale = func(_, lo, hi int) {
		x, d := c.In[0].F32[r.image*r.dim:][:r.dim], r.dim
		for k := lo; k < hi; k++ {
			vector.Mul(r.scaled[k*d:(k+1)*d], c.In[2].F32[k*d:(k+1)*d], x)
		}
	}
	return r
}

// products sets hidden to what the products of channels of an image with all texts give the hidden units.
func (r *pairNet) products(image int) {
	r.image = image
	r.c.Engine.For(r.h, op.RowGrain(r.dim), r.scale)
	r.product = gemm.Product{TransB: true, Alpha: 1, M: r.m, N: r.h, K: r.dim, LDC: r.h,
		A: gemm.Matrix{F32: r.c.In[1].F32, LD: r.dim}, B: gemm.Matrix{F32: r.scaled, LD: r.dim}, C: r.hidden}
	r.c.Engine.Multiply(&r.product)
}

func pairNetHost(c *exec.Call) (exec.Step, error) {
	r := newPairNet(c)
	body := func(_, lo, hi int) {
		u, v := c.In[3].F32[r.image*r.h:][:r.h], c.In[5].F32
		for j := lo; j < hi; j++ {
			t, sum := c.In[4].F32[j*r.h:][:r.h], float32(0)
			for k, p := range r.hidden[j*r.h:][:r.h] {
				sum += v[k] * max(p+u[k]+t[k], 0)
			}
			c.Out.F32[r.image*r.m+j] = sum
		}
	}
	return func() error {
		for i := range r.n {
			r.products(i)
			c.Engine.For(r.m, op.RowGrain(r.h), body)
		}
		return nil
	}, nil
}

// pairNetGrad returns the gradient of x for the operands of the forward op and dy (N, M). Those of the others are its
// auxiliary results, in their order.
func pairNetGrad() *op.Op {
	return &op.Op{
		Kind: "pair net dx", Diff: make([]bool, 7),
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return in[0].Clone(), op.WantShape(in, 6, "dy", in[0][0], in[1][0])
		},
		FLOPs: func(in []tensor.Shape) int64 { return 3 * pairNetFLOPs(in) },
		Aux: func(in []tensor.Shape) (list []exec.AuxSpec) {
			for _, s := range in[1:6] {
				list = append(list, exec.AuxSpec{Shape: s.Clone()})
			}
			return list
		},
		Scratch: func(in []tensor.Shape, _ int) int { return 2*in[2].TotalSize() + in[4].TotalSize() },
		Host:    pairNetGradHost, On: oncuda.PairNetGrad(),
	}
}

func pairNetGradHost(c *exec.Call) (exec.Step, error) {
	r := newPairNet(c)
	outer := c.Scratch[r.h*r.dim+r.m*r.h:][:r.h*r.dim] // (H, C): sum_j g_jh y_jc
	dText, da, du, dt, dv := c.Aux[0], c.Aux[1], c.Aux[2], c.Aux[3], c.Aux[4]
	// Threads share hidden units and then channels: each sum is made by one thread, in one order.
	units := func(_, lo, hi int) {
		u, v := c.In[3].F32[r.image*r.h:][:r.h], c.In[5].F32
		own := du.F32[r.image*r.h:][:r.h]
		clear(own[lo:hi])
		for j := range r.m {
			dy, t := c.In[6].F32[r.image*r.m+j], c.In[4].F32[j*r.h:][:r.h]
			hidden, dt := r.hidden[j*r.h:][:r.h], dt.F32[j*r.h:][:r.h]
			for k := lo; k < hi; k++ {
				p, g := hidden[k]+u[k]+t[k], float32(0)
				if p > 0 {
					g = dy * v[k]
					dv.F32[k] += dy * p
				}
				hidden[k] = g
				own[k] += g
				dt[k] += g
			}
		}
	}
	channels := func(_, lo, hi int) {
		x, dx := c.In[0].F32[r.image*r.dim:][lo:hi], c.Out.F32[r.image*r.dim:][lo:hi]
		clear(dx)
		for k := range r.h {
			a, da, o := c.In[2].F32[k*r.dim:][lo:hi], da.F32[k*r.dim:][lo:hi], outer[k*r.dim:][lo:hi]
			for i, v := range o {
				da[i] += v * x[i]
				dx[i] += v * a[i]
			}
		}
	}
	return func() error {
		for _, x := range c.Aux {
			clear(x.F32)
		}
		for i := range r.n {
			r.products(i)
			c.Engine.For(r.h, max(1, op.ElementGrain/max(1, r.m)), units)
			r.product = gemm.Product{TransA: true, Alpha: 1, M: r.h, N: r.dim, K: r.m, LDC: r.dim,
				A: gemm.Matrix{F32: r.hidden, LD: r.h}, B: gemm.Matrix{F32: c.In[1].F32, LD: r.dim}, C: outer}
			c.Engine.Multiply(&r.product)
			c.Engine.For(r.dim, max(1, op.ElementGrain/max(1, r.h)), channels)
			r.product = gemm.Product{Alpha: 1, Beta: 1, M: r.m, N: r.dim, K: r.h, LDC: r.dim,
				A: gemm.Matrix{F32: r.hidden, LD: r.h}, B: gemm.Matrix{F32: r.scaled, LD: r.dim}, C: dText.F32}
			c.Engine.Multiply(&r.product)
		}
		return nil
	}, nil
}
