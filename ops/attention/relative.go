package attention

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/attention/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// RelativeBias returns a bias of attention that depends on how far a key is from its query,
// for table (N, H): (H, Lq, Lk), with table[bucket(j-i), h] for query i and key j (Raffel et
// al. 2020, section 2.1, for both directions).
//
// Half of the N buckets are for keys at or before the query, the other half for those after
// it. Of each half, the first half is for one distance each, and the rest share the distances
// up to farthest evenly by their logarithm; beyond, all share the last one.
func RelativeBias(table *gorgonia.Node, lq, lk, farthest int) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "relative bias", Args: fmt.Sprintf("lq=%d lk=%d farthest=%d", lq, lk, farthest), Diff: []bool{true},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			if err := op.All(
				op.Need(len(in[0]) == 2 && in[0][0]%4 == 0,
					"want a table (N, H) with a multiple of 4 buckets (got %v)", in[0]),
				op.Need(lq > 0 && lk > 0, "want at least one query and key (got %d and %d)", lq, lk),
			); err != nil {
				return nil, err
			}
			return tensor.Shape{in[0][1], lq, lk},
				op.Need(farthest > in[0][0]/4,
					"the farthest distance must be above %d, those with buckets of their own (got %d)", in[0][0]/4,
					farthest)
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			heads := c.In[0].Dim(1)
			of := buckets(c.In[0].Dim(0), lq, lk, farthest)
			return c.For(heads, op.RowGrain(lq*lk), func(_, lo, hi int) {
				table, out := c.In[0].F32, c.Out.F32
				for h := lo; h < hi; h++ {
					for i, b := range of {
						out[h*len(of)+i] = table[int(b)*heads+h]
					}
				}
			})
		},
		On: oncuda.Relative(farthest),
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{op.Apply(relativeGrad(in[0].Shape()[0], farthest), dy)}
		},
	}, table)
}

// relativeGrad returns the gradient of a table of n buckets for dy (H, Lq, Lk). Threads share
// out the heads, so the order of sums does not depend on their number.
func relativeGrad(n, farthest int) *op.Op {
	return &op.Op{
		Kind: "relative bias dtable", Args: fmt.Sprintf("n=%d farthest=%d", n, farthest), Diff: []bool{false},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return tensor.Shape{n, in[0][0]}, op.Need(len(in[0]) == 3, "dy must have three axes")
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			heads := c.In[0].Dim(0)
			of := buckets(n, c.In[0].Dim(1), c.In[0].Dim(2), farthest)
			return c.For(heads, op.RowGrain(len(of)), func(_, lo, hi int) {
				dy, out := c.In[0].F32, c.Out.F32
				for h := lo; h < hi; h++ {
					for b := range n {
						out[b*heads+h] = 0
					}
					for i, b := range of {
						out[int(b)*heads+h] += dy[h*len(of)+i]
					}
				}
			})
		},
		On: oncuda.RelativeGrad(n, farthest),
	}
}

// buckets returns the bucket of every query and key, (lq*lk).
func buckets(n, lq, lk, farthest int) []int32 {
	of := make([]int32, 0, lq*lk)
	for i := range lq {
		for j := range lk {
			of = append(of, bucket(j-i, n, farthest))
		}
	}
	return of
}

// bucket returns the bucket of a key that lies so many tokens after its query.
func bucket(after, n, farthest int) int32 {
	half, first, away := n/2, 0, -after
	if after > 0 {
		first, away = half, after
	}
	single := half / 2
	if away < single {
		return int32(first + away)
	}
	share := math.Log(float64(away)/float64(single)) / math.Log(float64(farthest)/float64(single))
	// The sum keeps whole shares whole, such as log 2 / log 16.
	return int32(first + min(half-1, single+int(share*float64(half-single)+1e-9)))
}
