package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

var negativesSource = cuda.NewSource(files, "negatives", "sums.cuh", "negatives.cu")

// rowsOfWarps is the grid of a kernel that gives each row of operand 0 a warp.
func rowsOfWarps(c *exec.DeviceCall) cuda.Grid {
	return cuda.Grid{X: cuda.Blocks(c.In[0].Shape[0], 4), Threads: 32, ThreadsY: 4}
}

// SampleNegatives is the step of negatives drawn by scores, of which operands ids and own may be -1.
func SampleNegatives(ids, own int, byColumn bool, floor float64) cuda.Steps {
	return cuda.OnKernel(negativesSource, "sample_negatives", rowsOfWarps, func(c *exec.DeviceCall) []any {
		rows, m, b := c.In[0].Shape[0], c.In[0].Shape[1], c.In[1].Shape[1]
		row, col := m, 1
		if byColumn {
			row, col = 1, m
		}
		return []any{c.Out, c.In[0], c.In[1], cuda.Optional(c, ids), cuda.Optional(c, own), rows, b, int64(row),
			int64(col),
			cuda.Double(floor)}
	})
}

// ids returns the ids of an op that may have them as its last operand k, nil: it has none.
func ids(c *exec.DeviceCall, k int) any {
	if len(c.In) <= k {
		return nil
	}
	return c.In[k]
}

var (
	SamplePairs = cuda.OnKernel(negativesSource, "sample_pairs", rowsOfWarps, func(c *exec.DeviceCall) []any {
		return []any{c.Out, c.In[0], c.In[1], ids(c, 2), c.In[0].Shape[0]}
	})
	HardestNegatives = cuda.OnKernel(negativesSource, "hardest_negatives", rowsOfWarps, func(c *exec.DeviceCall) []any {
		return []any{c.Out, c.Aux[0], c.In[0], ids(c, 1), c.In[0].Shape[0], c.In[0].Shape[1]}
	})
)
