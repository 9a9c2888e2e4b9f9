package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

var distanceSource = cuda.NewSource(files, "distance", "distance.cu")

// Tiles of pairs that a block of threads works on, and how many blocks keep a device busy.
const (
	distanceTile   = 64
	distanceBusy   = 512
	distanceChunks = 128 // at most
)

// Columns are the operands that say which rows stand for columns, -1: there is none.
type Columns struct{ Keys, Queue, Pointer, Cols int }

// arguments are what kernels want to know of the columns.
func (d Columns) arguments(c *exec.DeviceCall) []any {
	return []any{c.In[d.Keys], cuda.Optional(c, d.Queue), cuda.Optional(c, d.Pointer), cuda.Optional(c, d.Cols)}
}

// Distance is a distance of f, operand 0, from columns.
type Distance struct {
	L2      bool
	Spheres int
	Columns Columns
}

// load returns a kernel for the kind of the distance.
func (x Distance) load(c *exec.DeviceCall, name string) *cuda.Kernel {
	return cuda.Load(c, distanceSource, name, cuda.Is("L2", x.L2))
}

// unit is how many channels belong together: all of l2, those of a sphere.
func (x Distance) unit(width int) int {
	if x.L2 {
		return width
	}
	return width / x.Spheres
}

// Forward is the step of the scores.
func (x Distance) Forward() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		columns := x.Columns
		rows, total, width, n := c.Out.Shape[0], c.Out.Shape[1], c.In[0].Shape[1], c.In[columns.Keys].Shape[0]
		k := x.load(c, "distance_scores")
		g := cuda.Grid{X: cuda.Blocks(total, distanceTile), Y: cuda.Blocks(rows, distanceTile), Threads: 16,
			ThreadsY: 16}
		return func() {
			args := append([]any{c.Out, c.In[0]}, columns.arguments(c)...)
			k.Enqueue(g, append(args, rows, n, total, width, x.unit(width))...)
		}
	})
}

// Backward is the step of the gradient for operand of: of f from all columns, or of the keys, the first columns, from
// f. Keys whose columns do not exist have scores of 0, and so no gradient.
func (x Distance) Backward(operands, of int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		layout := x.Columns
		scores, dy := operands, operands+1
		width := c.In[0].Shape[1]
		unit := x.unit(width)
		rows, total := c.Out.Shape[0], c.In[scores].Shape[1] // of the gradient, and what each has pairs with
		n, rowStep, colStep := c.In[layout.Keys].Shape[0], total, 1
		columns := layout
		if of != 0 {
			total = c.In[0].Shape[0]
			columns, n = Columns{Keys: 0, Queue: -1, Pointer: -1, Cols: -1}, total
			rowStep, colStep = 1, rowStep
		}
		tiles := cuda.Blocks(rows, distanceTile) * cuda.Blocks(unit, distanceTile)
		each := cuda.Blocks(total, min(distanceChunks, cuda.Blocks(distanceBusy, tiles)))
		each = cuda.Blocks(each, distanceTile) * distanceTile
		chunks := cuda.Blocks(total, each)
		slopeBytes := int64(0)
		if !x.L2 {
			slopeBytes = (4*int64(rows)*int64(total) + 255) / 256 * 256
		}
		slopes := cuda.Scratch(c, slopeBytes+4*int64(chunks)*int64(rows)*int64(width))
		parts := slopes + cuda.Pointer(slopeBytes)
		slope, gradient, sum := x.load(c, "distance_slopes"), x.load(c, "distance_gradient"), x.load(c, "distance_sum")
		pairs := cuda.Grid{X: cuda.Blocks(total, distanceTile), Y: cuda.Blocks(rows, distanceTile), Threads: 16,
			ThreadsY: 16}
		channels := cuda.Grid{X: cuda.Blocks(rows, distanceTile), Y: cuda.Blocks(unit, distanceTile), Z: chunks,
			Threads: 16, ThreadsY: 16}
		return func() {
			for from := 0; from < width; from += unit {
				if !x.L2 {
					args := append([]any{slopes, c.In[scores], c.In[dy], c.In[of]}, columns.arguments(c)...)
					slope.Enqueue(pairs,
						append(args, rows, n, total, width, from, unit, int64(rowStep), int64(colStep))...)
				}
				args := append([]any{parts, slopes, c.In[scores], c.In[dy], c.In[of]}, columns.arguments(c)...)
				args = append(args, rows, n, total, width, from, unit, each, int64(rowStep), int64(colStep))
				gradient.Enqueue(channels, args...)
			}
			sum.Enqueue(cuda.Grid{X: cuda.Blocks(rows*width, 256), Threads: 256}, c.Out, parts, chunks, rows*width)
		}
	})
}
