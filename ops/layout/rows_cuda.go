package layout

import (
	_ "embed"

	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

//go:embed layout.cu
var layoutText string

// layoutSource has the kernels of rows and columns.
var layoutSource = cuda.Source{Name: "layout", Text: layoutText}

// device names a step for the CUDA device.
func device(prepare func(c *exec.DeviceCall) (exec.Step, error)) map[string]func(c *exec.DeviceCall) (exec.Step, error) {
	return map[string]func(c *exec.DeviceCall) (exec.Step, error){cuda.Name: prepare}
}

// mover is a kernel that moves units of one or four values, one a thread.
type mover struct {
	*cuda.Kernel
	values int // of a unit
}

// newMover returns a kernel for `most` values at most, in pieces of rows that begin and end at multiples of these widths.
func newMover(c *exec.DeviceCall, name string, most int, widths ...int) mover {
	m := mover{values: 4}
	for _, w := range widths {
		if w%4 != 0 {
			m.values = 1
		}
	}
	m.Kernel = cuda.Load(c, &layoutSource, name, cuda.Is("VEC", m.values == 4), cuda.Is("LARGE", most/m.values >= 1<<31-threads))
	return m
}

// threads is how many threads a block has.
const threads = 256

// over returns the grid of n values and their number of units.
func (m mover) over(n int) (cuda.Grid, uint64) {
	n /= m.values
	return cuda.Grid{X: cuda.Blocks(n, threads), Threads: threads}, uint64(n)
}

// place says where the rows of a part lie in a whole, see struct part of layout.cu.
type place struct{ first, t, kept, from, shift int }

// take makes the step of the part of operand 0.
func (p place) take(c *exec.DeviceCall) (exec.Step, error) {
	cols, n := c.In[0].Shape[1], c.Out.Shape.TotalSize()
	m := newMover(c, "take_rows", n, cols)
	grid, units := m.over(n)
	return func() error {
		return m.Launch(grid, c.Out, c.In[0], units, cols/m.values, p.first, p.t, p.kept, p.from, p.shift)
	}, nil
}

// put makes the step that puts operand 0 at its places among zeros, or adds it there.
func (p place) put(c *exec.DeviceCall) (exec.Step, error) {
	rows, cols := c.In[0].Shape[0], c.In[0].Shape[1]
	if c.Accumulate {
		n := rows * cols
		m := newMover(c, "add_rows", n, cols)
		grid, units := m.over(n)
		return func() error {
			return m.Launch(grid, c.Out, c.In[0], units, cols/m.values, p.first, p.t, p.kept, p.from, p.shift)
		}, nil
	}
	n := c.Out.Shape.TotalSize()
	m := newMover(c, "place_rows", n, cols)
	grid, units := m.over(n)
	return func() error {
		return m.Launch(grid, c.Out, c.In[0], units, cols/m.values, rows, p.first, p.t, p.kept, p.from, p.shift)
	}, nil
}

// strided is the part of every row start, start+stride, ...
func strided(start, stride int) place { return place{first: start, t: stride, kept: 1} }

// place is the part as the device's kernels want it.
func (p sequencePart) place() place {
	if p.rest {
		return place{t: p.t, kept: p.kept(), from: p.from, shift: p.n}
	}
	return place{t: p.t, kept: p.n, shift: p.from}
}

// insertOnCUDA puts k rows of operand 1 behind the first at of every l rows of operand 0.
func insertOnCUDA(l, k, at int) func(c *exec.DeviceCall) (exec.Step, error) {
	return func(c *exec.DeviceCall) (exec.Step, error) {
		n := c.Out.Shape.TotalSize()
		cols := n / c.Out.Shape[0]
		m := newMover(c, "join_rows", n, cols)
		grid, units := m.over(n)
		return func() error {
			return m.Launch(grid, c.Out, c.In[0], c.In[1], units, cols/m.values, l, k, at)
		}, nil
	}
}

// concatRowsOnCUDA is an insertion behind all rows of one sequence.
func concatRowsOnCUDA(c *exec.DeviceCall) (exec.Step, error) {
	l := c.In[0].Shape[0]
	return insertOnCUDA(l, c.In[1].Shape[0], l)(c)
}

func concatColumnsOnCUDA(c *exec.DeviceCall) (exec.Step, error) {
	n, d, e := c.Out.Shape.TotalSize(), c.In[0].Shape[1], c.In[1].Shape[1]
	m := newMover(c, "join_columns", n, d, e)
	grid, units := m.over(n)
	return func() error {
		return m.Launch(grid, c.Out, c.In[0], c.In[1], units, d/m.values, e/m.values)
	}, nil
}

// columnRangeOnCUDA takes n columns from one on.
func columnRangeOnCUDA(from, n int) func(c *exec.DeviceCall) (exec.Step, error) {
	return func(c *exec.DeviceCall) (exec.Step, error) {
		width := c.In[0].Shape[1]
		m := newMover(c, "column_range", c.Out.Shape.TotalSize(), from, n, width)
		grid, units := m.over(c.Out.Shape.TotalSize())
		return func() error {
			return m.Launch(grid, c.Out, c.In[0], units, n/m.values, width/m.values, from/m.values)
		}, nil
	}
}
