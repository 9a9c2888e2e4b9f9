package layout

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

func transposeOnCUDA(c *exec.DeviceCall) (exec.Step, error) {
	transpose := cuda.Transpose(c, c.Out)
	return func() error { return transpose(c.Out, c.In[0], c.In[0].Shape[0], c.In[0].Shape[1]) }, nil
}
