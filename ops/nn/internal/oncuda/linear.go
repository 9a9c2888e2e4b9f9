package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// Linear is the step of a linear layer over rows of the weight from one on: a product to whose result the bias is
// added, and, where an activation follows, a pass over what it is applied to, the auxiliary result or, where that is
// spared, the output itself.
func Linear(from int, bias bool, then vector.Activation) cuda.Steps {
	return cuda.OnWith(exec.Half{Rounds: []int{0, 1}}, func(c *exec.DeviceCall) cuda.Step {
		rows, inner, n := c.In[0].Shape[0], c.In[0].Shape[1], c.Out.Shape[1]
		before := &c.Out
		if then != 0 && len(c.Aux) > 0 {
			before = &c.Aux[0]
		}
		t := cuda.ProductType(c)
		parts := []cuda.Part{{In: 0, Rows: rows, Cols: inner, Type: t},
			{In: 1, From: from * inner, Rows: n, Cols: inner, Type: t}}
		if bias {
			parts = append(parts, cuda.Part{In: 2, From: from, Rows: 1, Cols: n, Type: before.Type})
		}
		f := cuda.NewFactors(c, parts...)
		finish := func() {}
		if then != 0 {
			finish = activate(c, then, &c.Out, before)
		}
		p := cuda.Product{TransB: true, M: rows, N: n, K: inner}
		return func() {
			m := f.Place()
			var added *cuda.Matrix
			if bias {
				added = &m[2]
			}
			cuda.Multiply(c, p, m[0], m[1], cuda.MatrixOf(*before, 0, n), added)
			finish()
		}
	})
}

// LinearGradX is the step of dx = dy W, times the derivative of an activation at the third operand if one is given.
func LinearGradX(from int, then vector.Activation) cuda.Steps {
	return cuda.OnWith(exec.Half{Rounds: []int{0, 1}}, func(c *exec.DeviceCall) cuda.Step {
		rows, n, inner := c.In[0].Shape[0], c.In[0].Shape[1], c.In[1].Shape[1]
		t := cuda.ProductType(c)
		f := cuda.NewFactors(c,
			cuda.Part{In: 0, Rows: rows, Cols: n, Type: t},
			cuda.Part{In: 1, From: from * inner, Rows: n, Cols: inner, Type: t})
		derive := func() {}
		if then != 0 {
			derive = activateGradient(c, then, &c.Out, &c.In[2], &c.Out)
		}
		p := cuda.Product{M: rows, N: inner, K: n, Beta: cuda.Beta(c)}
		return func() {
			m := f.Place()
			cuda.Multiply(c, p, m[0], m[1], cuda.MatrixOf(c.Out, 0, inner), nil)
			derive()
		}
	})
}

// LinearGradW is the step of dw = dy^T x in the rows that take part.
func LinearGradW(from int) cuda.Steps {
	return cuda.OnWith(exec.Half{Rounds: []int{0, 1}}, func(c *exec.DeviceCall) cuda.Step {
		rows, n, inner, total := c.In[0].Shape[0], c.In[0].Shape[1], c.In[1].Shape[1], c.Out.Shape[0]
		t := cuda.ProductType(c)
		f := cuda.NewFactors(c, cuda.Part{In: 0, Rows: rows, Cols: n, Type: t},
			cuda.Part{In: 1, Rows: rows, Cols: inner, Type: t})
		first, end := from*inner, (from+n)*inner
		p := cuda.Product{TransA: true, M: n, N: inner, K: rows, Beta: cuda.Beta(c)}
		return func() {
			if !c.Accumulate {
				cuda.ZeroPart(c.Out, 0, first)
				cuda.ZeroPart(c.Out, end, total*inner)
			}
			m := f.Place()
			cuda.Multiply(c, p, m[0], m[1], cuda.MatrixOf(c.Out, first, inner), nil)
		}
	})
}

var columnSumsSource = cuda.NewSource(files, "column sums", "columnsums.cu")

// columnSumsLayout is how blocks of 256 threads share a matrix: lanes threads take wide neighbours each of a row, and a
// block so many rows. The blocks of a strip of columns are counted, for up to columnSumsStrips.
type columnSumsLayout struct{ wide, lanes, each int }

const columnSumsStrips = 4096

// layoutOfSums has lanes for 128 bytes of a row, and for a block the rows that its threads load at once, which is
// enough to keep memory busy; more where there are blocks enough, and all of a few rows, so that nothing is left to
// add.
func layoutOfSums(in exec.Operand) columnSumsLayout {
	rows, cols := sizeOf(in)
	l := columnSumsLayout{wide: 4, lanes: 8}
	if in.Type == exec.BFloat16 {
		l.wide = 8
	}
	for cols%l.wide != 0 {
		l.wide, l.lanes = l.wide/2, min(2*l.lanes, 32)
	}
	unit, strips := 256/l.lanes*8, cuda.Blocks(cols, l.lanes*l.wide)
	l.each = unit * cuda.Blocks(strips*cuda.Blocks(rows, unit), 4096)
	if rows <= 4*unit || strips > columnSumsStrips {
		l.each = rows
	}
	return l
}

// ColumnSums is the step of sums over rows.
func ColumnSums(from, total int) cuda.Steps {
	return cuda.OnWith(exec.Half{Rounds: []int{0}}, func(c *exec.DeviceCall) cuda.Step {
		return layoutOfSums(c.In[0]).prepare(c, from, total)
	})
}

func (l columnSumsLayout) prepare(c *exec.DeviceCall, from, total int) cuda.Step {
	rows, cols := sizeOf(c.In[0])
	g := cuda.Grid{X: cuda.Blocks(cols, l.lanes*l.wide), Y: cuda.Blocks(rows, l.each), Threads: 256}
	var parts cuda.Pointer
	if g.Y > 1 {
		parts = cuda.Scratch(c, 4*int64(g.Y)*int64(cols))
	}
	k := cuda.Load(c, columnSumsSource, "sum_rows", cuda.Type("X", c.In[0]), cuda.Value("WIDE", l.wide),
		cuda.Value("LANES", l.lanes), cuda.Value("STRIPS", columnSumsStrips))
	return func() { k.Enqueue(g, c.Out, parts, c.In[0], rows, cols, l.each, from, total) }
}
