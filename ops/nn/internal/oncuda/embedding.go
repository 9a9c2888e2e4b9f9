package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

var embeddingSource = cuda.NewSource(files, "embedding", "rows.cuh", "embedding.cu")

// embeddingChunk is CHUNK of the kernels: places of an index that are summed at a time.
const embeddingChunk = 64

// Gather is the step of rows, or blocks of them, by their index.
func Gather(block int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		n, width, rows := c.In[0].Shape[0]/block, block*c.In[0].Shape[1], c.In[1].Shape[0]
		p := pieceOf(width)
		k := cuda.Load(c, embeddingSource, "gather", cuda.Value("PIECE", p), cuda.Is("ACCUMULATE", false))
		return func() { k.Enqueue(pieceGrid(rows, width, p), c.Out, c.In[0], c.In[1], rows, width, n) }
	})
}

// GatherGrad makes dx of so many rows.
func GatherGrad(block, still int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		n, width, rows := c.Out.Shape[0]/block, block*c.Out.Shape[1], c.In[0].Shape[0]
		p := pieceOf(width)
		macros := []cuda.Macro{cuda.Value("PIECE", p), cuda.Is("ACCUMULATE", c.Accumulate)}
		load := func(name string) *cuda.Kernel { return cuda.Load(c, embeddingSource, name, macros...) }
		sorting, summing, joining := load("sort_index"), load("sum_runs"), load("join_runs")
		chunks := cuda.Blocks(rows, embeddingChunk)
		list := cuda.Pointer(cuda.Blocks(4*rows, 256) * 256) // bytes of order, and of the sorted index
		order := cuda.Scratch(c, 2*int64(list)+int64(chunks)*2*int64(width)*4)
		sorted, parts := order+list, order+2*list
		grid := cuda.Grid{X: chunks, Y: cuda.Blocks(width, 64*p), Threads: 64}
		return func() {
			if !c.Accumulate {
				cuda.Zero(c.Out)
			}
			sorting.Enqueue(cuda.Grid{X: cuda.Blocks(rows, 32), Threads: 256}, order, sorted, c.In[0], rows)
			summing.Enqueue(grid, c.Out, parts, c.In[1], order, sorted, rows, width, n, still)
			if chunks == 1 {
				return
			}

			joining.Enqueue(grid, c.Out, parts, sorted, rows, width, n, still)
		}
	})
}
