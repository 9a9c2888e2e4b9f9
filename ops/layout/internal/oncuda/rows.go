package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

// layoutSource has the kernels of rows and columns.
var layoutSource = cuda.NewSource(files, "layout", "layout.cu")

// mover is a kernel that moves units of one or four values, one a thread.
type mover struct {
	*cuda.Kernel
	values int // of a unit
}

// newMover returns a kernel for `most` values at most, in pieces of rows that begin and end at multiples of these
// widths.
func newMover(c *exec.DeviceCall, name string, most int, widths ...int) mover {
	m := mover{values: 4}
	for _, w := range widths {
		if w%4 != 0 {
			m.values = 1
		}
	}
	m.Kernel = cuda.Load(c, layoutSource, name, cuda.Is("VEC", m.values == 4),
		cuda.Is("LARGE", most/m.values >= 1<<31-threads))
	return m
}

// threads is how many threads a block has.
const threads = 256

// over returns the grid of n values and their number of units.
func (m mover) over(n int) (cuda.Grid, uint64) {
	n /= m.values
	return cuda.Grid{X: cuda.Blocks(n, threads), Threads: threads}, uint64(n)
}

// Place says where the rows of a part lie in a whole, see struct part of layout.cu.
type Place struct{ First, T, Kept, From, Shift int }

// Take makes the step of the part of operand 0.
func (p Place) Take() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		cols, n := c.In[0].Shape[1], c.Out.Shape.TotalSize()
		m := newMover(c, "take_rows", n, cols)
		grid, units := m.over(n)
		return func() { m.Enqueue(grid, c.Out, c.In[0], units, cols/m.values, p.First, p.T, p.Kept, p.From, p.Shift) }
	})
}

// Put makes the step that puts operand 0 at its places among zeros, or adds it there.
func (p Place) Put() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		rows, cols := c.In[0].Shape[0], c.In[0].Shape[1]
		if c.Accumulate {
			n := rows * cols
			m := newMover(c, "add_rows", n, cols)
			grid, units := m.over(n)
			return func() {
				m.Enqueue(grid, c.Out, c.In[0], units, cols/m.values, p.First, p.T, p.Kept, p.From, p.Shift)
			}
		}
		n := c.Out.Shape.TotalSize()
		m := newMover(c, "place_rows", n, cols)
		grid, units := m.over(n)
		return func() {
			m.Enqueue(grid, c.Out, c.In[0], units, cols/m.values, rows, p.First, p.T, p.Kept, p.From, p.Shift)
		}
	})
}

// Insert puts k rows of operand 1 behind the first at of every l rows of operand 0.
func Insert(l, k, at int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step { return insert(c, l, k, at) })
}

func insert(c *exec.DeviceCall, l, k, at int) cuda.Step {
	n := c.Out.Shape.TotalSize()
	cols := n / c.Out.Shape[0]
	m := newMover(c, "join_rows", n, cols)
	grid, units := m.over(n)
	return func() { m.Enqueue(grid, c.Out, c.In[0], c.In[1], units, cols/m.values, l, k, at) }
}

// ConcatRows is an insertion behind all rows of one sequence.
func ConcatRows() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		l := c.In[0].Shape[0]
		return insert(c, l, c.In[1].Shape[0], l)
	})
}

// ConcatColumns is the step of the columns of operand 0 with those of operand 1 behind them.
func ConcatColumns() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		n, d, e := c.Out.Shape.TotalSize(), c.In[0].Shape[1], c.In[1].Shape[1]
		m := newMover(c, "join_columns", n, d, e)
		grid, units := m.over(n)
		return func() { m.Enqueue(grid, c.Out, c.In[0], c.In[1], units, d/m.values, e/m.values) }
	})
}

// ColumnRange takes n columns from one on.
func ColumnRange(from, n int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		width := c.In[0].Shape[1]
		m := newMover(c, "column_range", c.Out.Shape.TotalSize(), from, n, width)
		grid, units := m.over(c.Out.Shape.TotalSize())
		return func() { m.Enqueue(grid, c.Out, c.In[0], units, n/m.values, width/m.values, from/m.values) }
	})
}
