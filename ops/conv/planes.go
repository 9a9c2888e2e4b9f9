package conv

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/conv/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// FromPlanes returns images (B, C, H, W), a plane for each channel, as rows of places: (B*H*W, C).
func FromPlanes(images *gorgonia.Node) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "from planes", Diff: []bool{true},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			s := in[0]
			if err := op.Need(len(s) == 4, "want images (B, C, H, W)"); err != nil {
				return nil, err
			}
			return tensor.Shape{s[0] * s[2] * s[3], s[1]}, nil
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			s := c.In[0].Shape
			channels, places := s[1], s[2]*s[3]
			return c.For(s[0], op.RowGrain(channels*places), func(_, lo, hi int) {
				for b := lo; b < hi; b++ {
					rows, planes := c.Out.F32[b*channels*places:][:channels*places], c.In[0].F32[b*channels*places:]
					for j := range channels {
						for i, v := range planes[j*places:][:places] {
							rows[i*channels+j] = v
						}
					}
				}
			})
		},
		On: oncuda.FromPlanes(),
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{op.Apply(toPlanes(in[0].Shape()), dy)}
		},
	}, images)
}

// toPlanes is the way back, for images of shape s.
func toPlanes(s tensor.Shape) *op.Op {
	return &op.Op{
		Kind: "to planes", Args: fmt.Sprintf("images=%v", s), Diff: []bool{false},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return s.Clone(), op.Need(in[0].TotalSize() == s.TotalSize(), "rows do not fit images %v", s)
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			channels, places := s[1], s[2]*s[3]
			return c.For(s[0], op.RowGrain(channels*places), func(_, lo, hi int) {
				for b := lo; b < hi; b++ {
					planes, rows := c.Out.F32[b*channels*places:][:channels*places], c.In[0].F32[b*channels*places:]
					for j := range channels {
						for i := range places {
							planes[j*places+i] = rows[i*channels+j]
						}
					}
				}
			})
		},
		On: oncuda.ToPlanes(s),
	}
}
