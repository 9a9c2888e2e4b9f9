package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

var localSource = cuda.NewSource(files, "local", "sums.cuh", "local.cu")

// LocalContrast has operands of a local contrast, -1 for those that there are not, and the first part that counts.
type LocalContrast struct{ Lengths, IDs, First int }

// Auxiliary results, as the op has them.
const (
	localLSE = iota
	localCount
	localSum
)

// rows is the grid of the kernels of rows, and what they read of the operands.
func (l LocalContrast) rows(c *exec.DeviceCall) (cuda.Grid, func() []any) {
	b, cols := c.In[0].Shape[0], c.In[0].Shape[1]
	return cuda.Grid{X: b, Threads: 256}, func() []any {
		return []any{c.In[0], cuda.Optional(c, l.Lengths), cuda.Optional(c, l.IDs), b, cols / b, l.First}
	}
}

// Forward is the step of the loss.
func (l LocalContrast) Forward() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		b := c.In[0].Shape[0]
		partial := cuda.Scratch(c, 8*int64(b))
		grid, args := l.rows(c)
		each, mean := cuda.Load(c, localSource, "local_rows"), cuda.Load(c, localSource, "local_mean")
		return func() {
			each.Enqueue(grid, append([]any{partial, c.Aux[localLSE], c.Aux[localCount], c.Aux[localSum]},
				args()...)...)
			mean.Enqueue(oneBlock(c), c.Out, partial, c.Aux[localCount], b)
		}
	})
}

// Backward is the step of its gradient.
func (l LocalContrast) Backward() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		grid, args := l.rows(c)
		k := cuda.Load(c, localSource, "local_ds")
		return func() {
			aux := c.InAux[len(c.In)-2]
			k.Enqueue(grid, append([]any{c.Out, aux[localLSE], aux[localCount], aux[localSum], c.In[len(c.In)-1]},
				args()...)...)
		}
	})
}

// PoolPatches is the step of the pooling of a side of patches to a grid, among t tokens.
func PoolPatches(t, side, grid int) cuda.Steps { return poolPatches("pool_patches", t, side, grid) }

// PoolPatchesGrad is the step of its gradient.
func PoolPatchesGrad(t, side, grid int) cuda.Steps {
	return poolPatches("pool_patches_dx", t, side, grid)
}

func poolPatches(kernel string, t, side, grid int) cuda.Steps {
	return cuda.OnKernel(localSource, kernel, eachElement, func(c *exec.DeviceCall) []any {
		return []any{c.Out, c.In[0], int64(c.Out.Shape.TotalSize()), t, side, grid, c.In[0].Shape[1]}
	})
}
