package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

var crossEntropySource = cuda.NewSource(files, "crossentropy", "sums.cuh", "crossentropy.cu")

// CrossEntropy has operands of a cross entropy, -1 for those that there are not.
type CrossEntropy struct {
	Labels, RowIDs, ColIDs, Cols   int
	Teacher, Alpha, Extra, Uniform int
}

// Auxiliary results, as the op has them.
const (
	ceWeight = iota
	ceLogits
	ceTeacher
)

// crossEntropyNarrow is the number of columns up to which a warp takes a row.
const crossEntropyNarrow = 256

// Forward is the step of the loss of each row.
func (x CrossEntropy) Forward() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		rows, total := c.In[0].Shape[0], c.In[0].Shape[1]
		k := x.kernel(c, "cross_entropy")
		grid := cuda.Grid{X: rows, Threads: powerOfTwo(total/4, 64, 1024)}
		if total <= crossEntropyNarrow {
			grid = cuda.Grid{X: cuda.Blocks(rows, 8), Threads: 32, ThreadsY: 8}
		}
		return func() {
			args := []any{c.Out, c.Aux[ceWeight], c.Aux[ceLogits], c.Aux[ceTeacher], c.In[0], rows, total}
			k.Enqueue(grid, append(args, x.target(c)...)...)
		}
	})
}

// Backward is the step of its gradient.
func (x CrossEntropy) Backward() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		rows, total := c.In[0].Shape[0], c.In[0].Shape[1]
		k := x.kernel(c, "cross_entropy_ds")
		width := powerOfTwo(total/16, 32, 256)
		grid := cuda.Grid{X: cuda.Blocks(rows, 256/width), Y: cuda.Blocks(total, 16*width), Threads: width,
			ThreadsY: 256 / width}
		return func() {
			aux := c.InAux[len(c.In)-2]
			args := []any{c.Out, c.In[len(c.In)-1], aux[ceWeight], aux[ceLogits], aux[ceTeacher], c.In[0], rows, total}
			k.Enqueue(grid, append(args, x.target(c)...)...)
		}
	})
}

func (x CrossEntropy) kernel(c *exec.DeviceCall, name string) *cuda.Kernel {
	narrow := c.In[0].Shape[1] <= crossEntropyNarrow
	return cuda.Load(c, crossEntropySource, name, cuda.Is("LABELS", x.Labels >= 0), cuda.Is("NARROW", narrow))
}

// target are the parameters that a row's target is made of.
func (x CrossEntropy) target(c *exec.DeviceCall) []any {
	return []any{cuda.Optional(c, x.Teacher), cuda.Optional(c, x.Alpha), cuda.Optional(c, max(x.Labels, x.RowIDs)),
		cuda.Optional(c, x.ColIDs),
		cuda.Optional(c, x.Cols), cuda.Optional(c, x.Extra), cuda.Optional(c, x.Uniform)}
}
