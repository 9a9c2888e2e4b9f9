package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

var sinkhornSource = cuda.NewSource(files, "sinkhorn", "sums.cuh", "sinkhorn.cu")

// Sinkhorn is the step of the codes, where the share of a prototype is at least least before it is evened. Which rows
// of the queue exist its kernels look up themselves.
func Sinkhorn(epsilon float32, iterations int, least float32) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		most, k := c.In[0].Shape[0], c.In[0].Shape[1]
		if len(c.In) > 1 {
			most += c.In[1].Shape[0]
		}
		b := c.In[0].Shape[0]
		p := cuda.Scratch(c, 4*(int64(most)*int64(k)+2*int64(most)+int64(k)))
		row := p + cuda.Pointer(4*most*k)
		top := row + cuda.Pointer(4*most)
		col := top + cuda.Pointer(4*most)
		kernel := func(name string) *cuda.Kernel { return cuda.Load(c, sinkhornSource, "sinkhorn_"+name) }
		start, rows, columns, balance, codes := kernel("start"), kernel("rows"), kernel("columns"), kernel("balance"),
			kernel("codes")
		each := func(rows int) cuda.Grid { return cuda.Grid{X: rows, Threads: powerOfTwo(k/4, 32, 512)} }
		return func() {
			var queue, existing any
			if len(c.In) > 1 {
				queue, existing = c.In[1], c.In[2]
			}
			start.Enqueue(each(most), p, top, c.In[0], queue, existing, b, most, k, 1/epsilon)
			rows.Enqueue(oneBlock(c), row, top, existing, b, most)
			for range iterations {
				grid := cuda.Grid{X: cuda.Blocks(k, 32), Threads: 32, ThreadsY: 16}
				columns.Enqueue(grid, col, row, p, existing, b, most, k, least)
				balance.Enqueue(each(most), row, col, p, existing, b, most, k)
			}
			codes.Enqueue(each(b), c.Out, c.In[0], top, row, col, existing, b, most, k, 1/epsilon)
		}
	})
}
