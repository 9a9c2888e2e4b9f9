package exchange

import (
	"fmt"

	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Gather returns the rows of x (n, ...) of all R ranks of g, those of rank 0 first: (R*n, ...), of float32 or int32.
//
// Where each rank has a loss L_r of its own, the gradient of sum_r L_r in the rows of this rank is the sum over the
// ranks of the gradients of its rows: the backward pass is an exchange too. Of integers and of what op.Detach gives
// there is none.
func Gather(g parallel.Group, x *gorgonia.Node) *gorgonia.Node {
	o := &op.Op{
		Kind: "gather of ranks", Args: fmt.Sprintf("ranks=%d", g.Size()), Diff: []bool{true},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			if err := op.Need(len(in[0]) > 0, "want rows (n, ...) (got a scalar)"); err != nil {
				return nil, err
			}
			shape := in[0].Clone()
			shape[0] *= g.Size()
			return shape, nil
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			if c.Out.I32 != nil {
				return func() error { return gather(c.Out.I32, c.In[0].I32, g.GatherInts) }, nil
			}
			return func() error { return gather(c.Out.F32, c.In[0].F32, g.Gather) }, nil
		},
		Grad: func(_ gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{op.Apply(share(g), dy)}
		},
	}
	if x != nil && x.Dtype() == tensor.Int32 {
		o.Ints, o.Diff, o.Grad = true, []bool{false}, nil
	}
	return op.Apply(o, x)
}

// gather fills dst with what all ranks have by all, which appends it.
func gather[T any](dst, own []T, all func(dst, x []T) ([]T, error)) error {
	x, err := all(dst[:0:len(dst)], own)
	if err != nil {
		return err
	}
	if len(x) != len(dst) {
		return fmt.Errorf("ops: gather of ranks: got %d values: want %d, as many of each rank", len(x), len(dst))
	}
	if &x[0] != &dst[0] {
		copy(dst, x)
	}
	return nil
}

// share is the backward pass of Gather: the sum over the ranks of this rank's rows of dy (R*n, ...), (n, ...).
func share(g parallel.Group) *op.Op {
	return &op.Op{
		Kind: "gather of ranks dx", Args: fmt.Sprintf("ranks=%d", g.Size()), Diff: []bool{false},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			if err := op.Need(len(in[0]) > 0 && in[0][0]%g.Size() == 0, "want rows of %d ranks (got %v)", g.Size(),
				in[0]); err != nil {
				return nil, err
			}
			shape := in[0].Clone()
			shape[0] /= g.Size()
			return shape, nil
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			return func() error { return g.SumShare(c.Out.F32, c.In[0].F32) }, nil
		},
	}
}
