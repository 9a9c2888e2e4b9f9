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

// LogPlaces returns for each of B sequences, of which like (B, ...) has one row, the logarithms of the numbers 1 to l of
// its places, the same in d channels: (B*l, d). As scores of SoftPool they weigh a row by its number.
func LogPlaces(like *gorgonia.Node, l, d int) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "log places", Args: fmt.Sprintf("l=%d d=%d", l, d), Diff: []bool{false},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			if err := op.Need(len(in[0]) > 0 && l > 0 && d > 0, "want rows (B, ...), places and channels (got %v, %d and %d)",
				in[0], l, d); err != nil {
				return nil, err
			}
			return tensor.Shape{in[0][0] * l, d}, nil
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			logs := make([]float32, l)
			for p := range logs {
				logs[p] = float32(math.Log(float64(p + 1)))
			}
			return func() error {
				for i := range c.Out.F32 {
					c.Out.F32[i] = logs[i/d%l]
				}
				return nil
			}, nil
		},
		On: oncuda.LogPlaces(l, d),
	}, like)
}
