package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
	"gorgonia.org/tensor"
)

var patchifySource = cuda.NewSource(files, "patchify", "rows.cuh", "patchify.cu")

// PatchCopy is the step between images and rows of patches, back or not. s is the shape of the images, nil: that of
// operand 0.
func PatchCopy(s tensor.Shape, patch int, back bool) cuda.Steps {
	var half exec.Half
	if !back {
		half.Writes = []int{output}
	}
	return cuda.OnWith(half, func(c *exec.DeviceCall) cuda.Step {
		images := s
		if images == nil {
			images = c.In[0].Shape
		}
		channels, height, width := images[1], images[2], images[3]
		k := cuda.Load(c, patchifySource, "patchify", cuda.Value("PIECE", pieceOf(patch)), cuda.Value("PATCH", patch),
			cuda.Is("BACK", back), cuda.Type("TO", c.Out))
		return func() {
			k.Enqueue(cuda.Grid{X: images[0] * (height / patch) * (width / patch), Threads: 192}, c.Out, c.In[0],
				channels,
				height, width)
		}
	})
}
