package arith

import (
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/arith/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// AddScaled returns x + s*y for x and y of one shape and a scalar s. The gradient goes
// to x alone: y is a constant that shifts it.
func AddScaled(x, y, s *gorgonia.Node) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "add scaled", Diff: []bool{true, false, false}, InPlace: []int{0}, On: oncuda.Elements("add_scaled"),
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return in[0].Clone(), op.All(
				op.Need(in[0].Eq(in[1]), "want two arrays of one shape"),
				op.Need(len(in[2]) == 0, "want a scalar (got %v)", in[2]))
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			return c.For(c.Out.Len(), op.ElementGrain, func(_, lo, hi int) {
				vector.Axpby(c.Out.F32[lo:hi], 1, c.In[0].F32[lo:hi], c.In[2].F32[0], c.In[1].F32[lo:hi])
			})
		},
		Grad: func(_ gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes { return gorgonia.Nodes{dy, nil, nil} },
	}, x, y, s)
}
