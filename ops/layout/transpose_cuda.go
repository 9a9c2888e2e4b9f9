package layout

import (
	_ "embed"

	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

//go:embed transpose.cu
var transposeText string

var transposeSource = cuda.Source{Name: "transpose", Text: transposeText}

func transposeOnCUDA(c *exec.DeviceCall) (exec.Step, error) {
	k := cuda.Load(c, &transposeSource, "transpose", cuda.Type("Y", c.Out))
	rows, cols := c.In[0].Shape[0], c.In[0].Shape[1]
	across := cuda.Blocks(cols, 32)
	grid := cuda.Grid{X: cuda.Blocks(rows, 32) * across, Threads: 32, ThreadsY: 8}
	return func() error { return k.Launch(grid, c.Out, c.In[0], rows, cols, across) }, nil
}
