package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

var sigmoidSource = cuda.NewSource(files, "sigmoid", "sums.cuh", "sigmoid.cu")

// SigmoidContrast has operands of a sigmoid contrast, -1 for those that there are not.
type SigmoidContrast struct {
	Positives    int // labels, or ids of rows
	ColIDs, Cols int
}

// Auxiliary results, as the op has them.
const (
	sigmoidScale = iota
	sigmoidBias
)

// positives are the parameters that say which pairs are positive.
func (x SigmoidContrast) positives(c *exec.DeviceCall) []any {
	return []any{cuda.Optional(c, x.Positives), cuda.Optional(c, x.ColIDs), cuda.Optional(c, x.Cols)}
}

// Forward is the step of the loss.
func (x SigmoidContrast) Forward() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		rows, total := c.In[0].Shape[0], c.In[0].Shape[1]
		partial := cuda.Scratch(c, 8*int64(rows))
		each, all := cuda.Load(c, sigmoidSource, "sigmoid_rows"), cuda.Load(c, sigmoidSource, "sigmoid_loss")
		grid := cuda.Grid{X: rows, Threads: powerOfTwo(total/4, 32, 512)}
		return func() {
			p := x.positives(c)
			each.Enqueue(grid, append(append([]any{partial, c.In[0], c.In[1], c.In[2]}, p...), total)...)
			all.Enqueue(oneBlock(c), c.Out, partial, p[0], rows)
		}
	})
}

// Backward is the step of its gradients.
func (x SigmoidContrast) Backward() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		rows, total := c.In[0].Shape[0], c.In[0].Shape[1]
		partial := cuda.Scratch(c, 16*int64(rows))
		each, all := cuda.Load(c, sigmoidSource, "sigmoid_ds"), cuda.Load(c, sigmoidSource, "sigmoid_scalars")
		grid := cuda.Grid{X: rows, Threads: powerOfTwo(total/4, 32, 512)}
		return func() {
			p, dy := x.positives(c), c.In[len(c.In)-1]
			args := append([]any{c.Out, partial, c.In[0], c.In[1], c.In[2]}, p...)
			each.Enqueue(grid, append(args, dy, rows, total)...)
			all.Enqueue(oneBlock(c), c.Aux[sigmoidScale], c.Aux[sigmoidBias], partial, c.In[1], p[0], dy, rows)
		}
	})
}
