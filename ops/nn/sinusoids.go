package nn

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/nn/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Sinusoids returns for each of B sequences, of which like (B, ...) has one row, the table of positions of the first l
// places (Vaswani et al. 2017, section 3.5), (B*l, d) for an even d:
//
//	(p, 2i) = sin(p / 10000^(2i/d)), (p, 2i+1) = cos of the same
func Sinusoids(like *gorgonia.Node, l, d int) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "sinusoids", Args: fmt.Sprintf("l=%d d=%d", l, d), Diff: []bool{false},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			if err := op.All(
				op.Need(len(in[0]) > 0, "want rows (B, ...)"),
				op.Need(l > 0 && d > 0 && d%2 == 0,
					"want at least one place and an even number of channels (got %d and %d)", l, d),
			); err != nil {
				return nil, err
			}
			return tensor.Shape{in[0][0] * l, d}, nil
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			table := make([]float32, l*d)
			for p := range l {
				for i := 0; i < d; i += 2 {
					s, cos := math.Sincos(float64(p) * math.Exp(-float64(i)*math.Log(10000)/float64(d)))
					table[p*d+i], table[p*d+i+1] = float32(s), float32(cos)
				}
			}
			return func() error {
				for out := c.Out.F32; len(out) > 0; out = out[len(table):] {
					copy(out, table)
				}
				return nil
			}, nil
		},
		On: oncuda.Sinusoids(l, d),
	}, like)
}
