package interaction

import (
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/interaction/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// MismatchSamples returns what a batch of pairs says of matched and of mismatched words, (6), from
// scores (N, N) and moments (N, N, 3) of NegativeAttention: the sums of the moments of text j with
// image j, and with the image of the lowest score, over the texts whose own image has the highest
// score (NAAF, Zhang et al. 2022, discriminative mismatch mining). Of equal scores the first
// counts. There is no gradient.
func MismatchSamples(scores, moments *gorgonia.Node) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "mismatch samples", Diff: make([]bool, 2),
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			s := in[0]
			if err := op.Need(len(s) == 2 && s[0] == s[1], "want scores (N, N) (got %v)", s); err != nil {
				return nil, err
			}
			return tensor.Shape{6}, op.WantShape(in, 1, "moments", s[0], s[0], 3)
		},
		On: oncuda.Mismatch(),
		Host: func(c *exec.Call) (exec.Step, error) {
			n := c.In[0].Dim(0)
			return func() error {
				scores, moments := c.In[0].F32, c.In[1].F32
				var sums [6]float64
				for j := range n {
					best, worst := 0, 0
					for i := range n {
						switch v := scores[i*n+j]; {
						case v > scores[best*n+j]:
							best = i
						case v < scores[worst*n+j]:
							worst = i
						}
					}
					if best != j {
						continue
					}
					for k := range 3 {
						sums[k] += float64(moments[(j*n+j)*3+k])
						sums[3+k] += float64(moments[(worst*n+j)*3+k])
					}
				}
				for k, v := range sums {
					c.Out.F32[k] = float32(v)
				}
				return nil
			}, nil
		},
	}, scores, moments)
}
