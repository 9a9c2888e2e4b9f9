package contrast

import (
	_ "embed"

	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

//go:embed local.cu
var localText string

var localSource = source("local", localText)

// rowsOnCUDA is the grid of the kernels of rows, and what they read of the operands.
func (l localContrast) rowsOnCUDA(c *exec.DeviceCall) (cuda.Grid, func() []any) {
	b, cols := c.In[0].Shape[0], c.In[0].Shape[1]
	return cuda.Grid{X: b, Threads: 256}, func() []any {
		return []any{c.In[0], operand(c, l.lengths), operand(c, l.ids), b, cols / b, l.first}
	}
}

func (l localContrast) forwardOnCUDA(c *exec.DeviceCall) (exec.Step, error) {
	b := c.In[0].Shape[0]
	partial, err := cuda.Scratch(c, 8*int64(b))
	if err != nil {
		return nil, err
	}
	grid, args := l.rowsOnCUDA(c)
	each, mean := cuda.Load(c, &localSource, "local_rows"), cuda.Load(c, &localSource, "local_mean")
	return func() error {
		if err := each.Launch(grid, append([]any{partial, c.Aux[localLSE], c.Aux[localCount], c.Aux[localSum]}, args()...)...); err != nil {
			return err
		}
		return mean.Launch(oneBlock(c), c.Out, partial, c.Aux[localCount], b)
	}, nil
}

func (l localContrast) backwardOnCUDA(c *exec.DeviceCall) (exec.Step, error) {
	grid, args := l.rowsOnCUDA(c)
	k := cuda.Load(c, &localSource, "local_ds")
	return func() error {
		aux := c.InAux[l.operands]
		return k.Launch(grid, append([]any{c.Out, aux[localLSE], aux[localCount], aux[localSum], c.In[l.operands+1]}, args()...)...)
	}, nil
}

// onCUDA is the step of the pooling, or of its gradient.
func (p patchPool) onCUDA(kernel string) steps {
	return launches(&localSource, kernel, eachElement, func(c *exec.DeviceCall) []any {
		return []any{c.Out, c.In[0], int64(c.Out.Shape.TotalSize()), p.t, p.side, p.grid, c.In[0].Shape[1]}
	})
}
