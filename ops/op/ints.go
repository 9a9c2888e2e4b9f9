package op

import (
	"github.com/geoalign/geoalign/internal/exec"
	"gorgonia.org/tensor"
)

// IntsOp returns an op with an int32 result and no gradient.
func IntsOp(kind string, operands int, shape func([]tensor.Shape) (tensor.Shape, error),
	run func(c *exec.Call) error) *Op {
	return &Op{
		Kind: kind, Ints: true, Diff: make([]bool, operands), Shape: shape,
		Host: func(c *exec.Call) (exec.Step, error) {
			return func() error { return run(c) }, nil
		},
	}
}

// SameInts is the shape function of an op on one vector.
func SameInts(in []tensor.Shape) (tensor.Shape, error) {
	return in[0].Clone(), Need(len(in[0]) == 1, "want a vector (got %v)", in[0])
}
