package nn

import (
	"fmt"

	"github.com/geoalign/geoalign/ops/expr"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// ScaleShift returns x (R, n) with column c times scale[from+c], plus shift[from+c], for scale and
// shift (D) with D at least from+n: scaling and shifting of features (SSF, Lian et al. 2022, equation
// 3), of all columns of a layer or of a part that LinearPart gives. With scales of 1 and shifts of 0
// the values are those of x.
func ScaleShift(x, scale, shift *gorgonia.Node, from int) *gorgonia.Node {
	return expr.Apply(expr.Op{
		Kind: "scale shift", Args: fmt.Sprintf("from=%d", from), Value: expr.X(0).Times(expr.X(1)).Plus(expr.X(2)),
		Layout: func(in []tensor.Shape) (expr.Layout, error) {
			if err := op.Need(len(in[0]) == 2 && len(in[1]) == 1,
				"want x (R, n), and scale and shift (D)"); err != nil {
				return expr.Layout{}, err
			}
			return everyRow(in[0], from, 3), op.All(
				op.WantVector(in[2], "shift", in[1][0]),
				op.Need(from >= 0 && from+in[0][1] <= in[1][0], "%d columns from %d on are not in %d", in[0][1], from,
					in[1][0]),
			)
		},
		Sum: map[int]func(*gorgonia.Node) *gorgonia.Node{1: sumsOfColumns(from, scale), 2: sumsOfColumns(from, shift)},
	}, x, scale, shift)
}
