package pool

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/ops/pool/internal/oncuda"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Columns returns the n columns [pointer, pointer+n) mod N of x (B, N), for an int32
// scalar pointer: (B, n). Of scores against a pool these are the batch's, of which
// negatives are drawn. There is no gradient.
func Columns(x, pointer *gorgonia.Node, n int) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "pool columns", Args: fmt.Sprintf("n=%d", n), Diff: []bool{false, false}, On: oncuda.Columns(n),
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			if err := op.All(
				op.Need(len(in[0]) == 2, "want x (B, N)"),
				op.Need(len(in[1]) == 0, "pointer must be a scalar (got %v)", in[1]),
			); err != nil {
				return nil, err
			}
			return tensor.Shape{in[0][0], n},
				op.Need(n > 0 && n <= in[0][1], "want between 1 and %d columns (got %d)", in[0][1], n)
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			total := c.In[0].Dim(1)
			return func() error {
				from := int(c.In[1].I32[0])
				if from < 0 || from >= total {
					return fmt.Errorf("ops: pool columns: pointer is %d: want [0, %d)", from, total)
				}
				for r := range c.Out.Dim(0) {
					out, row := c.Out.F32[r*n:(r+1)*n], c.In[0].F32[r*total:(r+1)*total]
					copy(out[copy(out, row[from:]):], row)
				}
				return nil
			}, nil
		},
	}, x, pointer)
}
