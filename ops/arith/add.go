package arith

import (
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/arith/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Add returns x + y for two arrays of one shape.
func Add(x, y *gorgonia.Node) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "add", Diff: []bool{true, true}, InPlace: []int{0, 1}, On: oncuda.Elements("add"),
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return in[0].Clone(), op.Need(in[0].Eq(in[1]), "want two arrays of one shape")
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			return c.For(c.Out.Len(), op.ElementGrain, func(_, lo, hi int) {
				vector.Add(c.Out.F32[lo:hi], c.In[0].F32[lo:hi], c.In[1].F32[lo:hi])
			})
		},
		// The gradient of a sum is that of both terms: no op at all.
		Grad: func(_ gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes { return gorgonia.Nodes{dy, dy} },
	}, x, y)
}
