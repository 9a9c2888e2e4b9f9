package recurrent

import (
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/ops/recurrent/internal/oncuda"
	"gorgonia.org/tensor"
)

// The gradients of what the gates were made of, (R*L, 4H), are operand 0 of the ops of this
// file: packed rows [new | reset | update | gate].

// gradX returns dx (R*L, I) for them, WeightIH and the packing.
func (u *unit) gradX() *op.Op {
	return &op.Op{
		Kind: "gru input dx", Args: u.args(), Diff: make([]bool, 3), Accumulates: true,
		Shape:   func(in []tensor.Shape) (tensor.Shape, error) { return tensor.Shape{in[0][0], in[1][1]}, nil },
		Scratch: func(in []tensor.Shape, _ int) int { return in[0][0] * in[1][1] },
		FLOPs:   func(in []tensor.Shape) int64 { return 2 * int64(in[0][0]) * int64(in[1].TotalSize()) },
		On:      u.onCUDA().GradX(),
		Host: func(c *exec.Call) (exec.Step, error) {
			n, h, r := c.Out.Dim(1), c.In[0].Dim(1)/4, c.Out.Dim(0)/u.l
			var p packing
			unpack := func(_, lo, hi int) {
				for i := lo; i < hi; i++ {
					for t := range int(p.length[i]) {
						from, to := c.Scratch[p.packed(i, t)*n:][:n], c.Out.F32[p.place(i, t, u.reverse)*n:][:n]
						if c.Accumulate {
							vector.Add(to, to, from)
						} else {
							copy(to, from)
						}
					}
					if !c.Accumulate {
						u.clearBeyond(&p, i, c.Out.F32, n)
					}
				}
			}
			product := op.Product(c, false, false)
			product.N, product.LDC = n, n
			return func() error {
				p = packingOf(c.In[2].I32, u.l)
				product.M, product.C = p.tokens(), c.Scratch
				product.K, product.Beta, product.A.F32, product.A.LD = 2*h, 0, c.In[0].F32[h:], 4*h
				product.B = op.Matrix(c, 1, 0, n)
				c.Engine.Multiply(product)
				product.K, product.Beta, product.A.F32 = h, 1, c.In[0].F32
				product.B = op.Matrix(c, 1, 2*h*n, n)
				c.Engine.Multiply(product)
				c.Engine.For(r, op.RowGrain(u.l*n), unpack)
				return nil
			}, nil
		},
	}
}

// gradWeightIH returns dW (3H, I) for them, x and the packing.
func (u *unit) gradWeightIH() *op.Op {
	return &op.Op{
		Kind: "gru input dw", Args: u.args(), Diff: make([]bool, 3), Accumulates: true,
		Shape:   func(in []tensor.Shape) (tensor.Shape, error) { return tensor.Shape{in[0][1] / 4 * 3, in[1][1]}, nil },
		Scratch: func(in []tensor.Shape, _ int) int { return in[1].TotalSize() },
		FLOPs:   func(in []tensor.Shape) int64 { return 2 * int64(in[1].TotalSize()) * int64(in[0][1]/4*3) },
		On:      u.onCUDA().GradWeightIH(),
		Host: func(c *exec.Call) (exec.Step, error) {
			n, h, r := c.Out.Dim(1), c.In[0].Dim(1)/4, c.In[0].Dim(0)/u.l
			var p packing
			gather := func(_, lo, hi int) {
				for i := lo; i < hi; i++ {
					u.packRows(&p, i, c.Scratch, c.In[1].F32, n)
				}
			}
			product := op.Product(c, true, false)
			product.N, product.LDC, product.Beta = n, n, op.Beta(c)
			return func() error {
				p = packingOf(c.In[2].I32, u.l)
				c.Engine.For(r, op.RowGrain(u.l*n), gather)
				product.K, product.B.F32, product.B.LD = p.tokens(), c.Scratch, n
				product.M, product.A.F32, product.A.LD, product.C = 2*h, c.In[0].F32[h:], 4*h, c.Out.F32
				c.Engine.Multiply(product)
				product.M, product.A.F32, product.C = h, c.In[0].F32, c.Out.F32[2*h*n:]
				c.Engine.Multiply(product)
				return nil
			}, nil
		},
	}
}

// gradWeightHH returns dW (3H, H) for them, the states, the packing and perhaps Start.
func (u *unit) gradWeightHH() *op.Op {
	o := &op.Op{Kind: "gru dw", Args: u.args(), Diff: make([]bool, 3), Accumulates: true}
	if u.start {
		o.Diff = append(o.Diff, false)
	}
	o.Shape = func(in []tensor.Shape) (tensor.Shape, error) { return tensor.Shape{3 * in[1][1], in[1][1]}, nil }
	o.Scratch = func(in []tensor.Shape, _ int) int { return in[1].TotalSize() }
	o.FLOPs = func(in []tensor.Shape) int64 { return 6 * int64(in[1].TotalSize()) * int64(in[1][1]) }
	o.On = u.onCUDA().GradWeightHH()
	o.Host = func(c *exec.Call) (exec.Step, error) {
		h, r := c.Out.Dim(1), c.In[1].Dim(0)/u.l
		var p packing
		gather := func(_, lo, hi int) { // the states before each token
			for i := lo; i < hi; i++ {
				for t := range int(p.length[i]) {
					switch to := c.Scratch[p.packed(i, t)*h:][:h]; {
					case t > 0:
						copy(to, c.In[1].F32[p.place(i, t-1, u.reverse)*h:])
					case u.start:
						copy(to, c.In[3].F32[int(p.order[i])*h:])
					default:
						clear(to)
					}
				}
			}
		}
		product := op.Product(c, true, false)
		product.M, product.N, product.LDC, product.Beta = 3*h, h, h, op.Beta(c)
		return func() error {
			p = packingOf(c.In[2].I32, u.l)
			c.Engine.For(r, op.RowGrain(u.l*h), gather)
			first := 0
			if !u.start && p.tokens() > int(p.from[1]) { // the states before the first tokens are 0
				first = int(p.from[1])
			}
			product.K, product.C = p.tokens()-first, c.Out.F32
			product.A.F32, product.A.LD = c.In[0].F32[first*4*h+h:], 4*h
			product.B.F32, product.B.LD = c.Scratch[first*h:], h
			c.Engine.Multiply(product)
			return nil
		}, nil
	}
	return o
}

// biasBlock is the number of rows whose sum is made in one go. It is fixed, so that the order of
// additions does not depend on the threads.
const biasBlock = 128

// gradBias returns the gradient of BiasIH (3H) for them and the packing; that of BiasHH is its
// auxiliary result.
func (u *unit) gradBias() *op.Op {
	blocks := func(rows int) int { return (rows + biasBlock - 1) / biasBlock }
	return &op.Op{
		Kind: "gru bias", Args: u.args(), Diff: make([]bool, 2),
		Shape: func(in []tensor.Shape) (tensor.Shape, error) { return tensor.Shape{in[0][1] / 4 * 3}, nil },
		Aux: func(in []tensor.Shape) []exec.AuxSpec {
			return []exec.AuxSpec{{Shape: tensor.Shape{in[0][1] / 4 * 3}}}
		},
		Scratch: func(in []tensor.Shape, _ int) int { return (blocks(in[0][0]) + 1) * in[0][1] },
		On:      oncuda.GradBias(biasBlock),
		Host: func(c *exec.Call) (exec.Step, error) {
			width := c.In[0].Dim(1)
			h, rows := width/4, 0
			body := func(_, lo, hi int) {
				for b := lo; b < hi; b++ {
					sum := c.Scratch[(b+1)*width:][:width]
					clear(sum)
					vector.SumRows(sum, c.In[0].F32[b*biasBlock*width:min(rows, (b+1)*biasBlock)*width])
				}
			}
			return func() error {
				p := packingOf(c.In[1].I32, u.l)
				rows = p.tokens()
				c.Engine.For(blocks(rows), 1, body)
				sum := c.Scratch[:width]
				clear(sum)
				vector.SumRows(sum, c.Scratch[width:(blocks(rows)+1)*width])
				copy(c.Out.F32, sum[h:3*h])
				copy(c.Out.F32[2*h:], sum[:h])
				copy(c.Aux[0].F32, sum[h:])
				return nil
			}, nil
		},
	}
}
