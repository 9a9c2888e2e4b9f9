package contrast

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/contrast/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// PoolPatches averages the patches of n images into parts: x (n*T, C) are the tokens of
// each image, the last side*side of which are its patches, row by row of the image, and
// those before are left out. Part (r, c) of grid*grid is the mean of the square of
// (side/grid)^2 patches there: (n*grid*grid, C), as an average pooling with equal kernel
// and stride. side must be a multiple of grid.
func PoolPatches(x *gorgonia.Node, t, side, grid int) *gorgonia.Node {
	p := patchPool{t, side, grid}
	return op.Apply(p.forward(), x)
}

type patchPool struct{ t, side, grid int }

func (p patchPool) args() string { return fmt.Sprintf("t=%d side=%d grid=%d", p.t, p.side, p.grid) }

func (p patchPool) shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := op.All(
		op.Need(len(in[0]) == 2, "want x (n*T, C)"),
		op.Need(p.grid > 0 && p.side > 0 && p.side%p.grid == 0, "a side of %d patches does not divide into %d parts",
			p.side, p.grid),
		op.Need(p.t >= p.side*p.side, "%d tokens hold no %d patches", p.t, p.side*p.side),
	); err != nil {
		return nil, err
	}
	return tensor.Shape{in[0][0] / p.t * p.grid * p.grid, in[0][1]},
		op.Need(in[0][0]%p.t == 0, "%d rows are no multiple of %d tokens", in[0][0], p.t)
}

// part returns the token of patch (i, k) in part q of image n: its row in x.
func (p patchPool) row(n, q, i, k int) int {
	cell := p.side / p.grid
	r, c := q/p.grid*cell+i, q%p.grid*cell+k
	return n*p.t + p.t - p.side*p.side + r*p.side + c
}

func (p patchPool) forward() *op.Op {
	o := &op.Op{Kind: "pool patches", Args: p.args(), Diff: []bool{true}, Shape: p.shape,
		On: oncuda.PoolPatches(p.t, p.side, p.grid)}
	o.Host = func(c *exec.Call) (exec.Step, error) {
		width, cell, parts := c.In[0].Dim(1), p.side/p.grid, p.grid*p.grid
		return c.For(c.Out.Dim(0), op.RowGrain(cell*cell*width), func(_, lo, hi int) {
			for r := lo; r < hi; r++ {
				y := c.Out.F32[r*width : (r+1)*width]
				clear(y)
				for i := range cell {
					from := p.row(r/parts, r%parts, i, 0) * width
					vector.SumRows(y, c.In[0].F32[from:from+cell*width])
				}
				vector.Scale(y, 1/float32(cell*cell), y)
			}
		})
	}
	o.Grad = func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
		return gorgonia.Nodes{op.Apply(p.backward(in[0].Shape()), dy)}
	}
	return o
}

// backward gives every patch its share of the gradient of its part.
func (p patchPool) backward(shape tensor.Shape) *op.Op {
	o := &op.Op{Kind: "pool patches dx", Args: fmt.Sprintf("%s shape=%v", p.args(), shape), Diff: []bool{false},
		On: oncuda.PoolPatchesGrad(p.t, p.side, p.grid)}
	o.Shape = func(in []tensor.Shape) (tensor.Shape, error) {
		return shape.Clone(), op.Need(len(in[0]) == 2 && in[0][0]*p.t == shape[0]*p.grid*p.grid &&
			in[0][1] == shape[1], "dy does not fit")
	}
	o.Host = func(c *exec.Call) (exec.Step, error) {
		width, cell, parts := shape[1], p.side/p.grid, p.grid*p.grid
		return c.For(shape[0]/p.t, op.RowGrain(p.t*width), func(_, lo, hi int) {
			for n := lo; n < hi; n++ {
				clear(c.Out.F32[n*p.t*width : ((n+1)*p.t-p.side*p.side)*width])
				for q := range parts {
					dy := c.In[0].F32[(n*parts+q)*width:][:width]
					for i := range cell {
						for k := range cell {
							vector.Scale(c.Out.F32[p.row(n, q, i, k)*width:][:width], 1/float32(cell*cell), dy)
						}
					}
				}
			}
		})
	}
	return o
}
