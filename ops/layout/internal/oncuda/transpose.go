package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

// Transpose is the step of a transposed matrix.
func Transpose() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		transpose := cuda.Transpose(c, c.Out)
		return func() { transpose(c.Out, c.In[0], c.In[0].Shape[0], c.In[0].Shape[1]) }
	})
}
