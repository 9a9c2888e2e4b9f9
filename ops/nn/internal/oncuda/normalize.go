package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

var normalizeSource = cuda.NewSource(files, "normalize", "rows.cuh", "normalize.cu")

// L2Normalize is the step of rows divided by their lengths.
func L2Normalize(eps float32) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		rows, cols := sizeOf(c.Out)
		k := cuda.Load(c, normalizeSource, "l2_normalize", cuda.Value("PIECE", pieceOf(cols)))
		return func() {
			k.Enqueue(cuda.Grid{X: cuda.Blocks(rows, 8), Threads: 256}, c.Out, c.Aux[0], c.In[0], rows, cols, eps)
		}
	})
}

// L2NormalizeGrad is the step of its gradient.
func L2NormalizeGrad(eps float32) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		rows, cols := sizeOf(c.Out)
		k := cuda.Load(c, normalizeSource, "l2_normalize_dx", cuda.Value("PIECE", pieceOf(cols)))
		return func() {
			k.Enqueue(cuda.Grid{X: cuda.Blocks(rows, 8), Threads: 256}, c.Out, c.In[0], c.InAux[0][0], c.In[1], rows,
				cols,
				eps)
		}
	})
}
