package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

var (
	relativeSource = cuda.NewSource(files, "relative bias", "relative.cu")
	affinitySource = cuda.NewSource(files, "affinity", "affinity.cu")
)

// Relative is RelativeBias's step.
func Relative(farthest int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k := cuda.Load(c, relativeSource, "relative_bias")
		n, heads, lq, lk := c.In[0].Shape[0], c.In[0].Shape[1], c.Out.Shape[1], c.Out.Shape[2]
		grid := cuda.Grid{X: cuda.Blocks(lq*lk, 256), Y: heads, Threads: 256}
		return func() { k.Enqueue(grid, c.Out, c.In[0], lq, lk, heads, n, farthest) }
	})
}

// RelativeGrad is the step of its gradient.
func RelativeGrad(n, farthest int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k := cuda.Load(c, relativeSource, "relative_bias_grad")
		heads, lq, lk := c.In[0].Shape[0], c.In[0].Shape[1], c.In[0].Shape[2]
		return func() { k.Enqueue(cuda.Grid{X: n * heads, Threads: 256}, c.Out, c.In[0], lq, lk, heads, n, farthest) }
	})
}

// Affinity is Affinity's step.
func Affinity(l int) cuda.Steps {
	const rows, most = 4, 48 << 10 // of a block, and bytes of its shared memory
	if 4*rows*l > most {
		return nil
	}
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k := cuda.Load(c, affinitySource, "affinity")
		d, e := c.In[0].Shape[1], c.Out.Shape[1]
		grid := cuda.Grid{X: c.In[3].Shape[0] * cuda.Blocks(l, rows), Threads: 256, Shared: 4 * rows * l}
		return func() { k.Enqueue(grid, c.Out, c.In[0], c.In[1], c.In[2], c.In[3], l, d, e) }
	})
}
