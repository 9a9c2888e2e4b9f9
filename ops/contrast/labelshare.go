package contrast

import (
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/contrast/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// LabelShare returns by what the mean over a rank's rows is multiplied, so that the mean of the ranks is that over the
// rows of all: R k/K, where k of its labels own (n) int32 and K of those of all R ranks, all (R*n), are not negative; a
// scalar, 0 without any.
func LabelShare(own, all *gorgonia.Node) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "label share", Diff: []bool{false, false}, On: oncuda.LabelShare,
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return tensor.ScalarShape(),
				op.Need(len(in[0]) == 1 && len(in[1]) == 1 && in[1][0]%in[0][0] == 0,
					"want labels of one rank and of all (got %v and %v)", in[0], in[1])
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			ranks := c.In[1].Len() / c.In[0].Len()
			return func() error {
				c.Out.F32[0] = 0
				if n := counted(c.In[1].I32); n > 0 {
					c.Out.F32[0] = float32(float64(ranks*counted(c.In[0].I32)) / float64(n))
				}
				return nil
			}, nil
		},
	}, own, all)
}

// counted is the number of labels that are not negative.
func counted(labels []int32) (n int) {
	for _, l := range labels {
		if l >= 0 {
			n++
		}
	}
	return n
}
