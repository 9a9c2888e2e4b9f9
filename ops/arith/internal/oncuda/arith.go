package oncuda

import (
	"math"

	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

var arithSource = cuda.NewSource(files, "arith", "arith.cu")

// Elements is the step of an elementwise op: kernel (out, number of elements, operands..., further...).
func Elements(kernel string, further ...any) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k, n := cuda.Load(c, arithSource, kernel), c.Out.Shape.TotalSize()
		return func() {
			args := []any{c.Out, int64(n)}
			for _, x := range c.In {
				args = append(args, x)
			}
			k.Enqueue(fours(n), append(args, further...)...)
		}
	})
}

// fours is the grid of n elements, four to a thread.
func fours(n int) cuda.Grid { return cuda.Grid{X: cuda.Blocks(n, 1024), Threads: 256} }

// Sum is the step of the sum of operand 0, or of its mean.
func Sum(mean bool) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		if mean {
			return sum(c, 1/float64(c.In[0].Shape.TotalSize()), false, false)
		}
		return sum(c, 1, false, false)
	})
}

// Dot is the step of factor times the sum of products of operands 0 and 1, divided by operand 2 with over.
func Dot(factor float64, over bool) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step { return sum(c, factor, true, over) })
}

func sum(c *exec.DeviceCall, factor float64, dot, over bool) cuda.Step {
	n := c.In[0].Shape.TotalSize()
	blocks := 1
	if n > 32<<10 {
		blocks = min(cuda.Blocks(n, 16<<10), 1024)
	}
	partial := cuda.Scratch(c, 8*1024)
	total, finish := cuda.Load(c, arithSource, "sum"), cuda.Load(c, arithSource, "finish_sum")
	f := math.Float64bits(factor)
	return func() {
		var y, by any
		if dot {
			y = c.In[1]
		}
		if over {
			by = c.In[2]
		}
		grid := cuda.Grid{X: blocks, Threads: 1024}
		total.Enqueue(grid, c.Out, partial, c.In[0], y, int64(n), f, by)
		if blocks == 1 {
			return
		}

		finish.Enqueue(cuda.Grid{Threads: 1024}, c.Out, partial, blocks, f, by)
	}
}

// Combine is the step of Combine, or with scalars of WeightedSum: eight arrays at a time, behind the first eight by
// seven beside the result so far.
func Combine(weights []float32, scalars bool) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		n, name := c.Out.Shape.TotalSize(), "combine"
		grid := fours(n)
		if scalars {
			grid, name = cuda.Grid{}, "weighted_sum"
		}
		k := cuda.Load(c, arithSource, name)
		return func() {
			for at := 0; at < len(c.In); {
				var xs, ws [8]any
				count := 0
				add := func(x any, w float32) { xs[count], ws[count] = x, w; count++ }
				if at > 0 {
					add(c.Out, 1)
				}
				for ; at < len(c.In) && count < 8; at++ {
					add(c.In[at], weights[at])
				}
				for i := count; i < 8; i++ {
					ws[i] = float32(0)
				}
				args := []any{c.Out}
				if !scalars {
					args = append(args, int64(n))
				}
				k.Enqueue(grid, append(append(append(args, count), xs[:]...), ws[:]...)...)
			}
		}
	})
}

// strides say where the elements of an operand of products lie.
type strides struct{ row, step, col int }

// OuterGradX is the step of the sums of operand 1 (R, M*N) over the columns of operand 0 (R, N): (R, M).
func OuterGradX() cuda.Steps {
	return products(func(c *exec.DeviceCall) (int, strides, strides) {
		n := c.In[0].Shape[1]
		return n, strides{n, 1, 0}, strides{c.In[1].Shape[1], 1, n}
	})
}

// OuterGradY is that over the columns of operand 0 (R, M): (R, N).
func OuterGradY() cuda.Steps {
	return products(func(c *exec.DeviceCall) (int, strides, strides) {
		m, width := c.In[0].Shape[1], c.In[1].Shape[1]
		return m, strides{m, 1, 0}, strides{width, width / m, 1}
	})
}

// SumProducts is the step of sums of products of groups of n columns.
func SumProducts(n int) cuda.Steps {
	return products(func(c *exec.DeviceCall) (int, strides, strides) {
		width := c.In[0].Shape[1]
		return width / n, strides{width, n, 1}, strides{width, n, 1}
	})
}

// products is the step of sums of depth products of two operands for each element of the result (R, n).
func products(layout func(c *exec.DeviceCall) (depth int, a, b strides)) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		size, n := c.Out.Shape.TotalSize(), c.Out.Shape[1]
		depth, a, b := layout(c)
		name, grid := "products", cuda.Grid{X: cuda.Blocks(size, 256), Threads: 256}
		if n < 32 && depth >= 32 || b.step == 1 { // neighbours in a row of the result would read far from each other
			name, grid.X = "products_of_warps", cuda.Blocks(size, 8)
		}
		k := cuda.Load(c, arithSource, name)
		return func() {
			k.Enqueue(grid, c.Out, c.In[0], c.In[1], int64(size), n, depth, int64(a.row), a.step, a.col, int64(b.row),
				b.step, b.col)
		}
	})
}

// MulGroups is the step of mulGroups.
func MulGroups(n int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k, size, width := cuda.Load(c, arithSource, "mul_groups"), c.Out.Shape.TotalSize(), c.Out.Shape[1]
		return func() { k.Enqueue(fours(size), c.Out, int64(size), c.In[0], c.In[1], width, n) }
	})
}

// Outer is the step of Outer.
func Outer() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k, size, m, n := cuda.Load(c, arithSource, "outer"), c.Out.Shape.TotalSize(), c.In[0].Shape[1], c.In[1].Shape[1]
		return func() { k.Enqueue(fours(size), c.Out, int64(size), c.In[0], c.In[1], m, n) }
	})
}
