package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

var scaleSource = cuda.NewSource(files, "scale", "rows.cuh", "scale.cu")

// ScaleRows multiplies the rows of operand 0 by operand 1, from element from on, and adds operand 2 if shift says so.
func ScaleRows(from int, shift bool) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		rows, cols := sizeOf(c.Out)
		p := pieceOf(cols, from)
		k := cuda.Load(c, scaleSource, "scale_rows", cuda.Value("PIECE", p), cuda.Is("SHIFT", shift))
		return func() {
			added := c.In[1]
			if shift {
				added = c.In[2]
			}
			k.Enqueue(pieceGrid(rows, cols, p), c.Out, c.In[0], c.In[1], added, rows, cols, from)
		}
	})
}

// Multiply is the product of the elements of two matrices.
func Multiply() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		rows, cols := sizeOf(c.Out)
		p := pieceOf(cols)
		k := cuda.Load(c, scaleSource, "multiply", cuda.Value("PIECE", p), cuda.Is("SHIFT", false))
		return func() { k.Enqueue(pieceGrid(rows, cols, p), c.Out, c.In[0], c.In[1], rows, cols) }
	})
}
