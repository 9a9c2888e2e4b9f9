package layout

import (
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// transposeTile is the side of the squares in which a matrix is transposed: two of
// them fit into the first-level cache.
const transposeTile = 32

// Transpose returns x^T (C, R) of a matrix x (R, C). It is a copy: cheap beside the
// matrix product that would compute the transposed result anew, such as the logits of
// the other direction of a contrast.
func Transpose(x *gorgonia.Node) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "transpose", Diff: []bool{true}, WritesHalf: []int{op.Output}, On: device(transposeOnCUDA),
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			if len(in[0]) != 2 {
				return nil, op.Need(false, "want a matrix")
			}
			return tensor.Shape{in[0][1], in[0][0]}, nil
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			rows, cols := c.In[0].Dim(0), c.In[0].Dim(1)
			body := func(_, lo, hi int) { transpose(c.Out, c.In[0].F32, rows, cols, lo, hi) }
			grain := max(1, op.ElementGrain/max(1, rows))
			return func() error {
				c.Engine.For(cols, grain, body)
				return nil
			}, nil
		},
		Grad: func(_ gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{Transpose(dy)}
		},
	}, x)
}

// transpose writes rows lo to hi of the transpose y of x (rows, cols). A tile is loaded by its
// rows and stored by its columns: elements of one column lie a power of two apart in many
// matrices, and would compete for the same lines of the cache.
func transpose(y exec.Array, x []float32, rows, cols, lo, hi int) {
	var tile, turned [transposeTile * transposeTile]float32
	for j0 := lo; j0 < hi; j0 += transposeTile {
		n := min(j0+transposeTile, hi) - j0
		for i0 := 0; i0 < rows; i0 += transposeTile {
			m := min(i0+transposeTile, rows) - i0
			for i := range m {
				copy(tile[i*transposeTile:][:n], x[(i0+i)*cols+j0:])
			}
			turn(&turned, &tile, m, n)
			for j := range n {
				at, column := (j0+j)*rows+i0, turned[j*transposeTile:][:m]
				if y.BF16 != nil {
					vector.ToBF16(y.BF16[at:][:m], column)
				} else {
					copy(y.F32[at:], column)
				}
			}
		}
	}
}

// turn sets the first n rows of dst to the first n columns of the first m rows of src, four at a time.
func turn(dst, src *[transposeTile * transposeTile]float32, m, n int) {
	const d = transposeTile
	for i := 0; i < m; i += 4 {
		r0, r1, r2, r3 := src[i*d:(i+1)*d], src[(i+1)*d:(i+2)*d], src[(i+2)*d:(i+3)*d], src[(i+3)*d:(i+4)*d]
		for j := range n {
			to := dst[j*d+i : j*d+i+4 : j*d+i+4]
			to[0], to[1], to[2], to[3] = r0[j], r1[j], r2[j], r3[j]
		}
	}
}
