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

// LayerNorm returns (x-mean)/sqrt(var+eps) * gamma + beta with the mean and the
// biased variance of each row of x (R, D); gamma and beta are (D) (Ba et al. 2016,
// equation 4).
func LayerNorm(x, gamma, beta *gorgonia.Node, eps float32) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "layer norm", Args: fmt.Sprintf("eps=%g", eps), Diff: []bool{true, true, true}, InPlace: []int{0},
		WritesHalf: []int{op.Output}, Scratch: layerNormRows,
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			if err := op.Need(len(in[0]) == 2, "want x (R, D)"); err != nil {
				return nil, err
			}
			return in[0].Clone(), op.All(
				op.WantVector(in[1], "gamma", in[0][1]),
				op.WantVector(in[2], "beta", in[0][1]),
				op.Need(eps >= 0, "eps must not be negative (got %g)", eps),
			)
		},
		Aux: func(in []tensor.Shape) []exec.AuxSpec { // mean and 1/sqrt(var+eps)
			return []exec.AuxSpec{{Shape: tensor.Shape{in[0][0]}}, {Shape: tensor.Shape{in[0][0]}}}
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			rows, cols := c.In[0].Dim(0), c.In[0].Dim(1)
			return c.For(rows, op.RowGrain(cols), func(worker, lo, hi int) {
				x, gamma, beta := c.In[0].F32, c.In[1].F32, c.In[2].F32
				mean, rstd := c.Aux[0].F32, c.Aux[1].F32
				for r := lo; r < hi; r++ {
					mean[r], rstd[r] = layerNormRow(c, worker, c.Out, r, x[r*cols:(r+1)*cols], gamma, beta, eps)
				}
			})
		},
		On: oncuda.LayerNorm(eps),
		Grad: func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
			dx := op.Apply(layerNormGrad(), out, in[0], in[1], dy)
			d := in[1].Shape()
			return gorgonia.Nodes{dx, op.Take(dx, 0, d), op.Take(dx, 1, d)}
		},
	}, x, gamma, beta)
}

// layerNormRows is the scratch of ops that normalise rows of operand 0: a row for each
// thread, where it is made before it is rounded.
func layerNormRows(in []tensor.Shape, threads int) int { return threads * in[0][1] }

// layerNormRow writes the normalised x into row r of out, as float32 or bfloat16, and
// returns the row's statistics.
func layerNormRow(
	c *exec.Call, worker int, out exec.Array, r int, x, gamma, beta []float32, eps float32,
) (mean, rstd float32) {
	n := len(x)
	if out.BF16 == nil {
		return vector.LayerNorm(out.F32[r*n:(r+1)*n], x, gamma, beta, eps)
	}
	row := c.Scratch[worker*n : (worker+1)*n]
	mean, rstd = vector.LayerNorm(row, x, gamma, beta, eps)
	vector.ToBF16(out.BF16[r*n:(r+1)*n], row)
	return mean, rstd
}

// layerNormBlocks is the number of row blocks with sums of their own for dgamma
// and dbeta: fixed, so that the result does not depend on the number of threads.
const layerNormBlocks = 32

// layerNormGrad returns dx for the output (whose statistics it reads), x, gamma and
// dy; dgamma and dbeta are its auxiliary results.
func layerNormGrad() *op.Op {
	return &op.Op{
		Kind: "layer norm dx", Diff: make([]bool, 4), InPlace: []int{3}, Accumulates: true,
		ReadsHalf: []int{0}, // the statistics next to it are what is read
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return in[1].Clone(), op.Need(in[1].Eq(in[3]), "x and dy must have one shape")
		},
		Aux: func(in []tensor.Shape) []exec.AuxSpec {
			return []exec.AuxSpec{{Shape: in[2]}, {Shape: in[2]}}
		},
		Scratch: func(in []tensor.Shape, _ int) int { return layerNormScratch(in[1][1]) },
		Host: func(c *exec.Call) (exec.Step, error) {
			cols := c.In[1].Dim(1)
			return layerNormGradStep(c, c.In[1].Dim(0), cols, func(r int, dgamma, dbeta, _ []float32) {
				at, to := r*cols, (r+1)*cols
				mean, rstd := c.InAux[0][0].F32[r], c.InAux[0][1].F32[r]
				x, gamma, dy, dx := c.In[1].F32[at:to], c.In[2].F32, c.In[3].F32[at:to], c.Out.F32[at:to]
				if c.Accumulate {
					vector.LayerNormGradAdd(dx, dgamma, dbeta, x, gamma, dy, dx, mean, rstd)
				} else {
					vector.LayerNormGrad(dx, dgamma, dbeta, x, gamma, dy, mean, rstd)
				}
			}), nil
		},
		On: oncuda.LayerNormGrad{X: 1, Gamma: 2, DY: 3, More: -1, Of: 0, Mean: 0, Rstd: 1}.Step(),
	}
}

// layerNormScratch returns the elements of scratch that layerNormGradStep works in.
func layerNormScratch(cols int) int { return layerNormBlocks * 3 * cols }

// layerNormGradStep returns the step that calls row for every row, with sums of
// gradients for gamma and beta that row adds to and room for a row to work in, and leaves their totals in auxiliary
// results 0 and 1. Rows of one block are visited in order.
func layerNormGradStep(c *exec.Call, rows, cols int, row func(r int, dgamma, dbeta, room []float32)) exec.Step {
	size := (rows + layerNormBlocks - 1) / layerNormBlocks
	blocks := (rows + size - 1) / size
	body := func(_, lo, hi int) {
		for b := lo; b < hi; b++ {
			dgamma := c.Scratch[2*b*cols : (2*b+1)*cols]
			dbeta := c.Scratch[(2*b+1)*cols : (2*b+2)*cols]
			room := c.Scratch[(2*layerNormBlocks+b)*cols:][:cols]
			clear(dgamma)
			clear(dbeta)
			for r := b * size; r < min((b+1)*size, rows); r++ {
				row(r, dgamma, dbeta, room)
			}
		}
	}
	sum := func(_, lo, hi int) {
		for k := range 2 {
			out := c.Aux[k].F32[lo:hi]
			copy(out, c.Scratch[k*cols+lo:k*cols+hi])
			for b := 1; b < blocks; b++ {
				at := (2*b + k) * cols
				vector.Add(out, out, c.Scratch[at+lo:at+hi])
			}
		}
	}
	grain := max(1, op.RowGrain(cols)/size)
	return func() error {
		c.Engine.For(blocks, grain, body)
		c.Engine.For(cols, 256, sum)
		return nil
	}
}
