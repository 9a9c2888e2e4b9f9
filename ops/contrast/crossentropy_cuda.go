package contrast

import (
	_ "embed"

	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

//go:embed crossentropy.cu
var crossEntropyText string

var crossEntropySource = source("crossentropy", crossEntropyText)

// crossEntropyNarrow is the number of columns up to which a warp takes a row.
const crossEntropyNarrow = 256

func (x *crossEntropy) forwardOnCUDA(c *exec.DeviceCall) (exec.Step, error) {
	rows, total := c.In[0].Shape[0], c.In[0].Shape[1]
	k := x.kernel(c, "cross_entropy")
	grid := cuda.Grid{X: rows, Threads: powerOfTwo(total/4, 64, 1024)}
	if total <= crossEntropyNarrow {
		grid = cuda.Grid{X: cuda.Blocks(rows, 8), Threads: 32, ThreadsY: 8}
	}
	return func() error {
		args := []any{c.Out, c.Aux[ceWeight], c.Aux[ceLogits], c.Aux[ceTeacher], c.In[0], rows, total}
		return k.Launch(grid, append(args, x.targetOnCUDA(c)...)...)
	}, nil
}

func (x *crossEntropy) backwardOnCUDA(c *exec.DeviceCall) (exec.Step, error) {
	rows, total := c.In[0].Shape[0], c.In[0].Shape[1]
	k := x.kernel(c, "cross_entropy_ds")
	width := powerOfTwo(total/16, 32, 256)
	grid := cuda.Grid{X: cuda.Blocks(rows, 256/width), Y: cuda.Blocks(total, 16*width), Threads: width, ThreadsY: 256 / width}
	return func() error {
		aux := c.InAux[x.operands]
		args := []any{c.Out, c.In[x.operands+1], aux[ceWeight], aux[ceLogits], aux[ceTeacher], c.In[0], rows, total}
		return k.Launch(grid, append(args, x.targetOnCUDA(c)...)...)
	}, nil
}

func (x *crossEntropy) kernel(c *exec.DeviceCall, name string) *cuda.Kernel {
	narrow := c.In[0].Shape[1] <= crossEntropyNarrow
	return cuda.Load(c, &crossEntropySource, name, cuda.Is("LABELS", x.labels >= 0), cuda.Is("NARROW", narrow))
}

// targetOnCUDA are the parameters that a row's target is made of.
func (x *crossEntropy) targetOnCUDA(c *exec.DeviceCall) []any {
	return []any{operand(c, x.teacher), operand(c, x.alpha), operand(c, max(x.labels, x.rowIDs)), operand(c, x.colIDs),
		operand(c, x.cols), operand(c, x.extra), operand(c, x.uniform)}
}

// powerOfTwo returns the smallest power of two from lo to hi that is not below n, or hi.
func powerOfTwo(n, lo, hi int) int {
	p := lo
	for p < n && p < hi {
		p *= 2
	}
	return p
}
