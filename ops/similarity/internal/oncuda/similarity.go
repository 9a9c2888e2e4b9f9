package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

var similaritySource = cuda.NewSource(files, "similarity", "similarity.cu")

// How many columns exist the device alone knows when a step is enqueued: products are of all columns. In what they read
// the columns that do not exist are taken as zero, and in what they write they are cleared. The rows of a queue behind
// them must be numbers.

// Similarity is a product with columns, of which operands queue and cols may be -1.
type Similarity struct{ Queue, Cols int }

// Step is that of f [keys; queue]^T.
func (s Similarity) Step() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		b, width, n, total := c.In[0].Shape[0], c.In[0].Shape[1], c.In[1].Shape[0], c.Out.Shape[1]
		t := cuda.ProductType(c)
		parts := []cuda.Part{{In: 0, Rows: b, Cols: width, Type: t}, {In: 1, Rows: n, Cols: width, Type: t}}
		if s.Queue >= 0 {
			parts = append(parts, cuda.Part{In: s.Queue, Rows: total - n, Cols: width, Type: t})
		}
		f := cuda.NewFactors(c, parts...)
		clear := cuda.Load(c, similaritySource, "clear_columns")
		p := cuda.Product{TransB: true, M: b, K: width}
		return func() {
			m := f.Place()
			p.N = n
			cuda.Multiply(c, p, m[0], m[1], cuda.MatrixOf(c.Out, 0, total), nil)
			if s.Queue >= 0 {
				p.N = total - n
				cuda.Multiply(c, p, m[0], m[2], cuda.MatrixOf(c.Out, n, total), nil)
			}
			if s.Cols < 0 {
				return
			}
			clear.Enqueue(cuda.Grid{X: b, Y: min(8, cuda.Blocks(total, 256)), Threads: 256}, c.Out, c.In[s.Cols], total)
		}
	})
}

// GradF is the step of df = dy [keys; queue].
func (s Similarity) GradF() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		b, total, n, width := c.In[0].Shape[0], c.In[0].Shape[1], c.In[1].Shape[0], c.In[1].Shape[1]
		t := cuda.ProductType(c)
		parts := []cuda.Part{{In: 0, Rows: b, Cols: total, Type: t, Limit: max(s.Cols, 0)},
			{In: 1, Rows: n, Cols: width, Type: t}}
		if s.Queue >= 0 {
			parts = append(parts, cuda.Part{In: s.Queue, Rows: total - n, Cols: width, Type: t})
		}
		f := cuda.NewFactors(c, parts...)
		keys, queue := cuda.Product{M: b, N: width, K: n}, cuda.Product{M: b, N: width, K: total - n, Beta: 1}
		return func() {
			m := f.Place()
			to := cuda.MatrixOf(c.Out, 0, width)
			cuda.Multiply(c, keys, m[0], m[1], to, nil)
			if s.Queue < 0 {
				return
			}

			cuda.Multiply(c, queue, m[0].From(n), m[2], to, nil)
		}
	})
}

// GradKeys is the step of dkeys = dy^T f of the first n columns.
func (s Similarity) GradKeys(n int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		b, width, total := c.In[0].Shape[0], c.In[0].Shape[1], c.In[1].Shape[1]
		t := cuda.ProductType(c)
		f := cuda.NewFactors(c,
			cuda.Part{In: 1, Rows: b, Cols: n, LD: total, Type: t, Limit: max(s.Cols, 0)},
			cuda.Part{In: 0, Rows: b, Cols: width, Type: t})
		p := cuda.Product{TransA: true, M: n, N: width, K: b}
		return func() {
			m := f.Place()
			cuda.Multiply(c, p, m[0], m[1], cuda.MatrixOf(c.Out, 0, width), nil)
		}
	})
}

// RowProducts is the step of RowProducts.
func RowProducts() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		const warps = 8
		rows, cols := c.In[0].Shape[0], c.In[0].Shape[1]
		k := cuda.Load(c, similaritySource, "row_products")
		return func() {
			k.Enqueue(cuda.Grid{X: cuda.Blocks(rows, warps), Threads: 32 * warps}, c.Out, c.In[0], c.In[1], rows, cols,
				rows/c.In[1].Shape[0])
		}
	})
}

// RowProductsGrad is the step of its gradient.
func RowProductsGrad() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		n, cols := c.In[1].Shape[0], c.In[0].Shape[1]
		each := c.In[0].Shape[0] / n
		k := cuda.Load(c, similaritySource, "row_products_gradient")
		g := cuda.Grid{X: n, Y: cuda.Blocks(cols, 128), Threads: 128}
		return func() { k.Enqueue(g, c.Out, c.Aux[0], c.In[0], c.In[1], c.In[2], cols, each) }
	})
}
