package similarity

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/ops/similarity/internal/oncuda"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Diagonal returns the rows of x (R, C) with channel c multiplied by w_c, w (C): the
// learned metric of GSSF with a weight for each channel. With weights of 1 it returns the
// bits of x.
func Diagonal(x, w *gorgonia.Node) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "diagonal", Diff: []bool{true, true}, InPlace: []int{0}, Shape: diagonalShape, Host: multiplyColumns,
		On: oncuda.MultiplyColumns(),
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			dx := op.Apply(&op.Op{
				Kind: "diagonal dx", Diff: []bool{false, false}, InPlace: []int{0}, Shape: diagonalShape,
				Host: multiplyColumns,
				On:   oncuda.MultiplyColumns(),
			}, dy, in[1])
			return gorgonia.Nodes{dx, op.Apply(diagonalWeights(), in[0], dy)}
		},
	}, x, w)
}

func diagonalShape(in []tensor.Shape) (tensor.Shape, error) {
	if err := op.Need(len(in[0]) == 2, "want x (R, C)"); err != nil {
		return nil, err
	}
	return in[0].Clone(), op.WantVector(in[1], "w", in[0][1])
}

func multiplyColumns(c *exec.Call) (exec.Step, error) {
	rows, cols := c.In[0].Dim(0), c.In[0].Dim(1)
	return c.For(rows, op.RowGrain(cols), func(_, lo, hi int) {
		for r := lo; r < hi; r++ {
			vector.Mul(c.Out.F32[r*cols:(r+1)*cols], c.In[0].F32[r*cols:(r+1)*cols], c.In[1].F32)
		}
	})
}

// diagonalWeights returns dw_c = sum_r x_rc dy_rc.
func diagonalWeights() *op.Op {
	return &op.Op{
		Kind: "diagonal dw", Diff: []bool{false, false},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return tensor.Shape{in[0][1]}, op.Need(in[0].Eq(in[1]), "x and dy must have one shape")
		},
		Scratch: func(in []tensor.Shape, _ int) int { return in[0][1] },
		On:      oncuda.DiagonalWeights(),
		Host: func(c *exec.Call) (exec.Step, error) {
			rows, cols := c.In[0].Dim(0), c.In[0].Dim(1)
			return c.For(cols, max(16, op.RowGrain(rows)), func(_, lo, hi int) {
				// Products and sums are rounded one by one: the cut leaves no trace.
				dw, part := c.Out.F32[lo:hi], c.Scratch[lo:hi]
				clear(dw)
				for r := range rows {
					vector.Mul(part, c.In[0].F32[r*cols+lo:r*cols+hi], c.In[1].F32[r*cols+lo:r*cols+hi])
					vector.Add(dw, dw, part)
				}
			})
		},
	}
}

// BlockDiagonal multiplies the rows of x (R, N*d) by a matrix that has blocks w (N, d, d)
// on its diagonal and zeros elsewhere, or by one dense matrix w (C, C):
//
//	y_r = W x_r, or with transposed W^T x_r
//
// It is the learned metric x^T (W o U) y of GSSF before the product: images are folded with
// W^T, texts with W. With the identity it returns the bits of x. Products
// are in float32 whatever the engine's precision, as those of small blocks cost nothing.
func BlockDiagonal(x, w *gorgonia.Node, transposed bool) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "block diagonal", Args: fmt.Sprintf("transposed=%t", transposed), Diff: []bool{true, true},
		Shape: blockShape, FLOPs: blockFLOPs,
		Host: multiplyBlocks(transposed),
		On:   oncuda.MultiplyBlocks(transposed),
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			dx := op.Apply(&op.Op{
				Kind: "block diagonal dx", Args: fmt.Sprintf("transposed=%t", transposed), Diff: []bool{false, false},
				Shape: blockShape, FLOPs: blockFLOPs,
				Host: multiplyBlocks(!transposed),
				On:   oncuda.MultiplyBlocks(!transposed),
			}, dy, in[1])
			left, right := dy, in[0] // dW_ij = sum_r dy_ri x_rj
			if transposed {
				left, right = in[0], dy
			}
			return gorgonia.Nodes{dx, op.Apply(blockWeights(in[1].Shape()), left, right)}
		},
	}, x, w)
}

// metricBlocks returns the number and the size of the blocks of w (N, d, d) or (C, C).
func metricBlocks(w tensor.Shape) (n, d int) {
	if len(w) == 2 {
		return 1, w[0]
	}
	return w[0], w[1]
}

func blockShape(in []tensor.Shape) (tensor.Shape, error) {
	x, w := in[0], in[1]
	if err := op.All(
		op.Need(len(x) == 2, "want x (R, C)"),
		op.Need(len(w) == 2 && w[0] == w[1] || len(w) == 3 && w[1] == w[2],
			"want square blocks (N, d, d) or one matrix (C, C) (got %v)", w),
	); err != nil {
		return nil, err
	}
	n, d := metricBlocks(w)
	return x.Clone(), op.Need(n*d == x[1], "%d blocks of %d do not make up %d channels", n, d, x[1])
}

func blockFLOPs(in []tensor.Shape) int64 {
	_, d := metricBlocks(in[1])
	return 2 * int64(in[0].TotalSize()) * int64(d)
}

// multiplyBlocks is the step of y = W x, or with transposed W^T x.
func multiplyBlocks(transposed bool) func(c *exec.Call) (exec.Step, error) {
	return func(c *exec.Call) (exec.Step, error) {
		rows, cols := c.In[0].Dim(0), c.In[0].Dim(1)
		n, d := metricBlocks(c.In[1].Shape)
		if n == 1 {
			p := &gemm.Product{TransB: !transposed, Alpha: 1, M: rows, N: d, K: d, LDC: cols}
			return func() error {
				p.A, p.B, p.C = gemm.Matrix{F32: c.In[0].F32, LD: cols}, gemm.Matrix{F32: c.In[1].F32, LD: d}, c.Out.F32
				c.Engine.Multiply(p)
				return nil
			}, nil
		}
		return c.For(n, blockGrain(rows, d), func(_, lo, hi int) {
			for b := lo; b < hi; b++ {
				c.Engine.GemmSerial(false, !transposed, rows, d, d, 1, c.In[0].F32[b*d:], cols, c.In[1].F32[b*d*d:], d,
					0, c.Out.F32[b*d:], cols)
			}
		})
	}
}

// blockGrain is the least number of blocks worth a thread.
func blockGrain(rows, d int) int { return max(1, op.ElementGrain/max(1, rows*d)) }

// blockWeights returns the blocks of left^T right for rows left and right (R, C), in the
// shape of w.
func blockWeights(w tensor.Shape) *op.Op {
	n, d := metricBlocks(w)
	return &op.Op{
		Kind: "block diagonal dw", Args: fmt.Sprintf("w=%v", w), Diff: []bool{false, false},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return w.Clone(), op.Need(in[0].Eq(in[1]) && in[0][1] == n*d, "want two arrays (R, %d)", n*d)
		},
		FLOPs: func(in []tensor.Shape) int64 { return 2 * int64(in[0].TotalSize()) * int64(d) },
		On:    oncuda.BlockWeights(),
		Host: func(c *exec.Call) (exec.Step, error) {
			rows, cols := c.In[0].Dim(0), c.In[0].Dim(1)
			return c.For(n, blockGrain(rows, d), func(_, lo, hi int) {
				for b := lo; b < hi; b++ {
					c.Engine.GemmSerial(true, false, d, d, rows, 1, c.In[0].F32[b*d:], cols, c.In[1].F32[b*d:], cols,
						0, c.Out.F32[b*d*d:], d)
				}
			})
		},
	}
}
