package attention

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/attention/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Affinity is attention without a softmax, the reasoning over a graph of regions of VSRN (Li et al. 2019, equations 2
// and 3): of sequences of l rows q, k (R*l, D) and v (R*l, E), of which the first n = lengths (R) int32 count,
//
//	y_i = 1/n sum_j (q_i . k_j) v_j
//
// for i < n and 0 behind: (R*l, E).
func Affinity(q, k, v, lengths *gorgonia.Node, l int) *gorgonia.Node {
	return op.Apply(affinity(l), q, k, v, lengths)
}

// affinity is the op. Its gradients are the op again, with its operands in other places.
func affinity(l int) *op.Op {
	return &op.Op{
		Kind: "affinity", Args: fmt.Sprintf("l=%d", l), Diff: []bool{true, true, true, false},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			q, v := in[0], in[2]
			if err := op.All(
				op.Need(l > 0, "want sequences of at least one row (got %d)", l),
				op.Need(len(q) == 2 && q.Eq(in[1]), "q and k must have one shape (R*l, D)"),
				op.Need(len(v) == 2, "want v (R*l, E)"),
			); err != nil {
				return nil, err
			}
			return v.Clone(), op.All(
				op.Need(q[0]%l == 0 && v[0] == q[0], "rows must be those of v and a multiple of %d (got %d and %d)", l,
					q[0], v[0]),
				op.Need(len(in[3]) == 1 && in[3][0] == q[0]/l, "lengths must have shape (%d) (got %v)", q[0]/l, in[3]),
			)
		},
		FLOPs: func(in []tensor.Shape) int64 { return 2 * int64(in[0][0]) * int64(l) * int64(in[0][1]+in[2][1]) },
		Host: func(c *exec.Call) (exec.Step, error) {
			d, e := c.In[0].Dim(1), c.Out.Dim(1)
			body := func(_, lo, hi int) {
				for r := lo; r < hi; r++ {
					n := int(c.In[3].I32[r])
					q, k, v, out := c.In[0].F32[r*l*d:], c.In[1].F32[r*l*d:], c.In[2].F32[r*l*e:],
						c.Out.F32[r*l*e:][:l*e]
					clear(out)
					for i := range n {
						for j := range n {
							vector.Axpy(out[i*e:][:e], vector.Dot(q[i*d:][:d], k[j*d:][:d])/float32(n), v[j*e:][:e])
						}
					}
				}
			}
			return func() error {
				for r, n := range c.In[3].I32 {
					if n < 0 || int(n) > l {
						return fmt.Errorf("ops: affinity: lengths[%d] is %d: want [0, %d]", r, n, l)
					}
				}
				c.Engine.For(c.In[3].Len(), op.RowGrain(l*l*(d+e)), body)
				return nil
			}, nil
		},
		On: oncuda.Affinity(l),
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			q, k, v, lengths := in[0], in[1], in[2], in[3]
			return gorgonia.Nodes{Affinity(dy, v, k, lengths, l), Affinity(v, dy, q, lengths, l),
				Affinity(k, q, dy, lengths, l), nil}
		},
	}
}
