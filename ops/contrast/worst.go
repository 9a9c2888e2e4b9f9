package contrast

import (
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/contrast/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Worst returns of two scores of each pair, such as those of two views of an image, a and b (B, B), the one that is
// worse for a triplet loss (Zhu et al. 2023, "ESA", the self-expanding loss): the smaller on the diagonal, of right
// pairs, and the larger elsewhere. Of equal ones that of a counts.
func Worst(a, b *gorgonia.Node) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "worst", Diff: []bool{true, true}, On: oncuda.Worst,
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			x := in[0]
			if err := op.Need(len(x) == 2 && x[0] == x[1], "want scores (B, B) (got %v)", x); err != nil {
				return nil, err
			}
			return x.Clone(), op.Need(x.Eq(in[1]), "both scores must have one shape (got %v and %v)", x, in[1])
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			n := c.Out.Dim(1)
			return c.For(c.Out.Len(), op.ElementGrain, func(_, lo, hi int) {
				a, b := c.In[0].F32, c.In[1].F32
				for i := lo; i < hi; i++ {
					c.Out.F32[i] = a[i]
					if second(a[i], b[i], i/n == i%n) {
						c.Out.F32[i] = b[i]
					}
				}
			})
		},
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			da := op.Apply(worstGrad(), in[0], in[1], dy)
			return gorgonia.Nodes{da, op.Take(da, 0, in[1].Shape())}
		},
	}, a, b)
}

// second says whether b is the worse score.
func second(a, b float32, right bool) bool {
	if right {
		return b < a
	}
	return b > a
}

// worstGrad returns da for a, b and dy; db is its auxiliary result.
func worstGrad() *op.Op {
	return &op.Op{
		Kind: "worst dx", Diff: make([]bool, 3), On: oncuda.WorstGrad,
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return in[0].Clone(), op.Need(in[0].Eq(in[2]), "scores and dy must have one shape")
		},
		Aux: func(in []tensor.Shape) []exec.AuxSpec { return []exec.AuxSpec{{Shape: in[1]}} },
		Host: func(c *exec.Call) (exec.Step, error) {
			n := c.Out.Dim(1)
			return c.For(c.Out.Len(), op.ElementGrain, func(_, lo, hi int) {
				a, b, dy := c.In[0].F32, c.In[1].F32, c.In[2].F32
				for i := lo; i < hi; i++ {
					c.Out.F32[i], c.Aux[0].F32[i] = dy[i], 0
					if second(a[i], b[i], i/n == i%n) {
						c.Out.F32[i], c.Aux[0].F32[i] = 0, dy[i]
					}
				}
			})
		},
	}
}
