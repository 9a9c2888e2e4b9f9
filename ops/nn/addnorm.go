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

// AddNormArgs are the operands of AddNorm.
type AddNormArgs struct {
	H, X        *gorgonia.Node // (R, D)
	Gamma, Beta *gorgonia.Node // (D)
	Bits        *gorgonia.Node // DropoutBits for R rows of D elements; nil: none, and Keep is not looked at
	Keep        float32        // share of H that dropout keeps, in (0, 1]
	Eps         float32        // of the layer norm
}

// AddNorm is the seam between two blocks of a transformer:
//
//	sum  = X + Dropout(H, Bits, Keep)
//	norm = LayerNorm(sum, Gamma, Beta, Eps)
//
// Either result may be left unused: post-norm blocks (BERT) read norm alone, pre-norm ones
// (ViT) carry sum on.
//
// The backward pass is one op too, but for Dropout's (two results written a row at a
// time are slower than two passes). Gorgonia adds up the gradients that reach sum, one
// of which is the layer norm's; the op looks through these additions and makes the
// total itself.
func AddNorm(args AddNormArgs) (sum, norm *gorgonia.Node) {
	a := addNorm{eps: args.Eps}
	in := []*gorgonia.Node{args.H, args.X, args.Gamma, args.Beta}
	if args.Bits != nil {
		a.keep = args.Keep
		in = append(in, args.Bits)
	}
	sum = op.Apply(a.forward(args.Bits != nil), in...)
	return sum, op.Apply(a.output(), sum, args.Gamma)
}

// addNorm describes the op; keep is 0 without dropout.
type addNorm struct{ keep, eps float32 }

// Auxiliary results of the forward op.
const (
	addNormOut  = iota // (R, D) the normalised sum
	addNormMean        // (R)
	addNormRstd        // (R) 1/sqrt(var+eps)
)

func (a addNorm) args() string { return fmt.Sprintf("keep=%g eps=%g", a.keep, a.eps) }

// forward is the op of the sum, whose auxiliary results are the rest. Operands: h, x,
// gamma, beta and perhaps bits.
func (a addNorm) forward(dropout bool) *op.Op {
	o := &op.Op{Kind: "add norm", Args: a.args(), Diff: []bool{true, true, true, true}, InPlace: []int{0, 1},
		ReadsHalf: []int{0}, WritesHalf: []int{addNormOut}}
	if dropout {
		o.Diff = append(o.Diff, false)
	}
	o.Shape = func(in []tensor.Shape) (tensor.Shape, error) {
		h, x := in[0], in[1]
		if err := op.Need(len(h) == 2 && h.Eq(x), "want h and x (R, D) of one shape"); err != nil {
			return nil, err
		}
		err := op.All(
			op.WantVector(in[2], "gamma", h[1]),
			op.WantVector(in[3], "beta", h[1]),
			op.Need(a.eps >= 0, "eps must not be negative (got %g)", a.eps),
		)
		if dropout && err == nil {
			err = op.All(op.WantVector(in[4], "bits", h[0]*MaskWords(h[1])), CheckKeep(a.keep))
		}
		return h.Clone(), err
	}
	o.Aux = func(in []tensor.Shape) []exec.AuxSpec {
		row := tensor.Shape{in[0][0]}
		return []exec.AuxSpec{{Shape: in[0].Clone()}, {Shape: row}, {Shape: row}}
	}
	o.Scratch = layerNormRows
	o.Host = func(c *exec.Call) (exec.Step, error) {
		rows, cols := c.In[0].Dim(0), c.In[0].Dim(1)
		return c.For(rows, op.RowGrain(cols), func(worker, lo, hi int) {
			h, x, gamma, beta := c.In[0], c.In[1].F32, c.In[2].F32, c.In[3].F32
			sum, norm := c.Out.F32, c.Aux[addNormOut]
			mean, rstd := c.Aux[addNormMean].F32, c.Aux[addNormRstd].F32
			// Two sweeps: memory delivers more to loops over long runs than to rows
			// that are summed and normalised in turns, and the sums are still in a
			// cache in the second.
			at, to := lo*cols, hi*cols
			switch {
			case dropout:
				dropoutAddRows(sum, x, h, c.In[4].I32, lo, hi, cols, 1/a.keep)
			case h.BF16 != nil:
				vector.AddHalf(sum[at:to], x[at:to], h.BF16[at:to])
			default:
				vector.Add(sum[at:to], x[at:to], h.F32[at:to])
			}
			for r := lo; r < hi; r++ {
				mean[r], rstd[r] = layerNormRow(c, worker, norm, r, sum[r*cols:(r+1)*cols], gamma, beta, a.eps)
			}
		})
	}
	o.On = oncuda.AddNorm(a.eps, a.keep, dropout)
	o.Grad = func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
		var bits *gorgonia.Node
		if dropout {
			bits = in[4]
		}
		return append(a.gradients(out, dy, in[2], in[3], bits), make(gorgonia.Nodes, len(in)-4)...)
	}
	return o
}

// output names the normalised sum. Operands: the sum's node and gamma, whose gradient
// flows through the sum's op.
func (a addNorm) output() *op.Op {
	return &op.Op{
		Kind: addNormOutputKind, Diff: []bool{true, false}, Alias: &[2]int{0, addNormOut},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) { return in[0].Clone(), nil },
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{op.Apply(addNormGrad(false), in[0], in[1], dy), nil}
		},
	}
}

// gradients returns dh, dx, dgamma and dbeta for the gradient dy of the sum, which
// holds that of the normalised sum as a term if anybody reads the latter.
func (a addNorm) gradients(sum, dy, gamma, beta, bits *gorgonia.Node) gorgonia.Nodes {
	var normed *gorgonia.Node
	var others gorgonia.Nodes
	for _, term := range op.Terms(dy) {
		if normed == nil && isAddNormGrad(term, sum) {
			normed = term
			continue
		}
		others = append(others, term)
	}
	total, dgamma, dbeta := dy, (*gorgonia.Node)(nil), (*gorgonia.Node)(nil)
	if normed == nil {
		dgamma, dbeta = op.Apply(zeros(), gamma), op.Apply(zeros(), beta)
	} else {
		total = normed
		if len(others) > 0 {
			rest, err := gorgonia.ReduceAdd(others)
			if err != nil {
				panic(&op.BuildError{Op: addNormGradKind, Err: err})
			}
			total = op.Apply(addNormGrad(true), sum, gamma, op.Operand(normed, 2), rest)
		}
		d := gamma.Shape()
		dgamma, dbeta = op.Take(total, 0, d), op.Take(total, 1, d)
	}
	dh := total
	if bits != nil {
		dh = Dropout(total, bits, a.keep)
	}
	return gorgonia.Nodes{dh, total, dgamma, dbeta}
}

// addNormGrad returns the total gradient of the sum; dgamma and dbeta are its auxiliary
// results. Operands: the sum (whose statistics it reads), gamma, the gradient of the
// normalised sum and, if more says so, that of the sum itself.
func addNormGrad(more bool) *op.Op {
	o := &op.Op{Kind: addNormGradKind, Diff: make([]bool, 3), InPlace: []int{2}, Accumulates: !more,
		ReadsHalf: []int{2}}
	if more {
		o.Diff, o.InPlace = append(o.Diff, false), append(o.InPlace, 3)
	}
	o.Shape = func(in []tensor.Shape) (tensor.Shape, error) {
		return in[0].Clone(), op.Need(in[0].Eq(in[2]) && (!more || in[0].Eq(in[3])),
			"the sum and its gradients must have one shape")
	}
	o.Aux = func(in []tensor.Shape) []exec.AuxSpec { return []exec.AuxSpec{{Shape: in[1]}, {Shape: in[1]}} }
	o.Scratch = func(in []tensor.Shape, _ int) int { return layerNormScratch(in[0][1]) }
	o.Host = func(c *exec.Call) (exec.Step, error) {
		cols := c.In[0].Dim(1)
		return layerNormGradStep(c, c.In[0].Dim(0), cols, func(r int, dgamma, dbeta, room []float32) {
			at, to := r*cols, (r+1)*cols
			mean, rstd := c.InAux[0][addNormMean].F32[r], c.InAux[0][addNormRstd].F32[r]
			sum, gamma, dnorm, dx := c.In[0].F32[at:to], c.In[1].F32, room, c.Out.F32[at:to]
			if c.In[2].BF16 != nil {
				vector.FromBF16(dnorm, c.In[2].BF16[at:to])
			} else {
				dnorm = c.In[2].F32[at:to]
			}
			switch {
			case more:
				vector.LayerNormGradAdd(dx, dgamma, dbeta, sum, gamma, dnorm, c.In[3].F32[at:to], mean, rstd)
			case c.Accumulate:
				vector.LayerNormGradAdd(dx, dgamma, dbeta, sum, gamma, dnorm, dx, mean, rstd)
			default:
				vector.LayerNormGrad(dx, dgamma, dbeta, sum, gamma, dnorm, mean, rstd)
			}
		}), nil
	}
	on := oncuda.LayerNormGrad{X: 0, Gamma: 1, DY: 2, More: -1, Of: 0, Mean: addNormMean, Rstd: addNormRstd}
	if more {
		on.More = 3
	}
	o.On = on.Step()
	return o
}

const (
	addNormGradKind   = "add norm dx"
	addNormOutputKind = "add norm output"
)

// isAddNormGrad reports whether n is the gradient op of the normalised sum.
func isAddNormGrad(n, sum *gorgonia.Node) bool {
	o := op.Of(n)
	return o != nil && o.Kind == addNormGradKind && len(o.Diff) == 3 && op.Operand(n, 0) == sum
}

// dropoutAddRows sets rows [lo, hi) of dst to x + Dropout(y).
func dropoutAddRows(dst, x []float32, y exec.Array, bits []int32, lo, hi, cols int, scale float32) {
	words := MaskWords(cols)
	part := func(lo, hi int) {
		at, to, bits := lo*cols, hi*cols, bits[lo*words:hi*words]
		if y.BF16 != nil {
			vector.DropoutAddHalf(dst[at:to], x[at:to], y.BF16[at:to], bits, scale)
		} else {
			vector.DropoutAdd(dst[at:to], x[at:to], y.F32[at:to], bits, scale)
		}
	}
	if cols%32 == 0 { // no gaps between the rows: one long row
		part(lo, hi)
		return
	}
	for r := lo; r < hi; r++ {
		part(r, r+1)
	}
}

// zeros returns zeros of its operand's shape.
func zeros() *op.Op {
	return &op.Op{
		Kind: "zeros", Diff: []bool{false},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) { return in[0].Clone(), nil },
		Host: func(c *exec.Call) (exec.Step, error) {
			return func() error { clear(c.Out.F32); return nil }, nil
		},
		On: oncuda.Zeros(),
	}
}
