package nn

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/nn/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Patchify cuts images (B, C, H, W) into squares of patch pixels: (B*P, C*patch*patch),
// patches of an image row by row, elements of a patch by channel, row, column. A
// linear layer on it is the convolution with the weight (D, C, patch, patch) and
// stride patch, the weight seen as (D, C*patch*patch).
func Patchify(images *gorgonia.Node, patch int) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "patchify", Args: fmt.Sprintf("patch=%d", patch), Diff: []bool{true},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			s := in[0]
			if err := op.All(
				op.Need(patch > 0, "a patch has at least one pixel (got %d)", patch),
				op.Need(len(s) == 4, "want images (B, C, H, W)"),
			); err != nil {
				return nil, err
			}
			return tensor.Shape{s[0] * (s[2] / patch) * (s[3] / patch), s[1] * patch * patch},
				op.Need(s[2]%patch == 0 && s[3]%patch == 0, "height and width must be multiples of %d (got %d, %d)",
					patch, s[2], s[3])
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			return patchCopy(c, c.In[0].Shape, patch, false), nil
		},
		On: oncuda.PatchCopy(nil, patch, false),
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{op.Apply(unpatchify(in[0].Shape(), patch), dy)}
		},
	}, images)
}

// unpatchify puts patches back into images of the given shape.
func unpatchify(images tensor.Shape, patch int) *op.Op {
	return &op.Op{
		Kind: "patchify dx", Args: fmt.Sprintf("images=%v patch=%d", images, patch), Diff: []bool{false},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return images.Clone(), op.Need(in[0].TotalSize() == images.TotalSize(), "patches do not fit images %v",
				images)
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			return patchCopy(c, images, patch, true), nil
		},
		On: oncuda.PatchCopy(images, patch, true),
	}
}

// patchCopy copies every row of every patch from its place in the images, of shape s,
// to its place in the patches, or back if the images are the output.
func patchCopy(c *exec.Call, s tensor.Shape, patch int, back bool) exec.Step {
	channels, height, width := s[1], s[2], s[3]
	across := width / patch
	perImage := (height / patch) * across
	size := channels * patch * patch
	body := func(_, lo, hi int) {
		images, patches := c.In[0].F32, c.Out.F32
		if back {
			images, patches = patches, images
		}
		for p := lo; p < hi; p++ {
			b, y, x := p/perImage, p%perImage/across*patch, p%across*patch
			to := p * size
			for ch := range channels {
				from := ((b*channels+ch)*height+y)*width + x
				for range patch {
					if back {
						copy(images[from:from+patch], patches[to:to+patch])
					} else {
						copy(patches[to:to+patch], images[from:from+patch])
					}
					from += width
					to += patch
				}
			}
		}
	}
	return func() error {
		c.Engine.For(s[0]*perImage, op.RowGrain(size), body)
		return nil
	}
}
