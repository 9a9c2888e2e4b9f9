package contrast

import (
	_ "embed"

	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

//go:embed sigmoid.cu
var sigmoidText string

var sigmoidSource = source("sigmoid", sigmoidText)

// positivesOnCUDA are the parameters that say which pairs are positive.
func (x *sigmoidContrast) positivesOnCUDA(c *exec.DeviceCall) []any {
	return []any{operand(c, max(x.labels, x.rowIDs)), operand(c, x.colIDs), operand(c, x.cols)}
}

func (x *sigmoidContrast) forwardOnCUDA(c *exec.DeviceCall) (exec.Step, error) {
	rows, total := c.In[0].Shape[0], c.In[0].Shape[1]
	partial, err := cuda.Scratch(c, 8*int64(rows))
	if err != nil {
		return nil, err
	}
	each, all := cuda.Load(c, &sigmoidSource, "sigmoid_rows"), cuda.Load(c, &sigmoidSource, "sigmoid_loss")
	grid := cuda.Grid{X: rows, Threads: powerOfTwo(total/4, 32, 512)}
	return func() error {
		p := x.positivesOnCUDA(c)
		if err := each.Launch(grid, append(append([]any{partial, c.In[0], c.In[1], c.In[2]}, p...), total)...); err != nil {
			return err
		}
		return all.Launch(oneBlock(c), c.Out, partial, p[0], rows)
	}, nil
}

func (x *sigmoidContrast) backwardOnCUDA(c *exec.DeviceCall) (exec.Step, error) {
	rows, total := c.In[0].Shape[0], c.In[0].Shape[1]
	partial, err := cuda.Scratch(c, 16*int64(rows))
	if err != nil {
		return nil, err
	}
	each, all := cuda.Load(c, &sigmoidSource, "sigmoid_ds"), cuda.Load(c, &sigmoidSource, "sigmoid_scalars")
	grid := cuda.Grid{X: rows, Threads: powerOfTwo(total/4, 32, 512)}
	return func() error {
		p, dy := x.positivesOnCUDA(c), c.In[x.operands]
		args := append([]any{c.Out, partial, c.In[0], c.In[1], c.In[2]}, p...)
		if err := each.Launch(grid, append(args, dy, rows, total)...); err != nil {
			return err
		}
		return all.Launch(oneBlock(c), c.Aux[sigmoidScale], c.Aux[sigmoidBias], partial, c.In[1], p[0], dy, rows)
	}, nil
}
