package similarity

import (
	_ "embed"

	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

//go:embed similarity.cu
var similarityText string

var similaritySource = cuda.Source{Name: "similarity", Text: similarityText}

// How many columns exist the device alone knows when a step is enqueued: products are of all columns. In what they read the columns
// that do not exist are taken as zero, and in what they write they are cleared. The rows of a queue behind them must be numbers.

// onCUDA is the step of f [keys; queue]^T.
func (s *similarity) onCUDA(c *exec.DeviceCall) (exec.Step, error) {
	b, width, n, total := c.In[0].Shape[0], c.In[0].Shape[1], c.In[1].Shape[0], c.Out.Shape[1]
	t := cuda.ProductType(c)
	parts := []cuda.Part{{In: 0, Rows: b, Cols: width, Type: t}, {In: 1, Rows: n, Cols: width, Type: t}}
	if s.queue >= 0 {
		parts = append(parts, cuda.Part{In: s.queue, Rows: total - n, Cols: width, Type: t})
	}
	f, err := cuda.NewFactors(c, parts...)
	if err != nil {
		return nil, err
	}
	clear := cuda.Load(c, &similaritySource, "clear_columns")
	p := cuda.Product{TransB: true, M: b, K: width}
	return func() error {
		m, err := f.Place()
		if err != nil {
			return err
		}
		p.N = n
		if err := cuda.Multiply(c, p, m[0], m[1], cuda.MatrixOf(c.Out, 0, total), nil); err != nil {
			return err
		}
		if s.queue >= 0 {
			p.N = total - n
			if err := cuda.Multiply(c, p, m[0], m[2], cuda.MatrixOf(c.Out, n, total), nil); err != nil {
				return err
			}
		}
		if s.cols < 0 {
			return nil
		}
		return clear.Launch(cuda.Grid{X: b, Y: min(8, cuda.Blocks(total, 256)), Threads: 256}, c.Out, c.In[s.cols], total)
	}, nil
}

// gradFOnCUDA is the step of df = dy [keys; queue].
func (s *similarity) gradFOnCUDA(c *exec.DeviceCall) (exec.Step, error) {
	b, total, n, width := c.In[0].Shape[0], c.In[0].Shape[1], c.In[1].Shape[0], c.In[1].Shape[1]
	t := cuda.ProductType(c)
	parts := []cuda.Part{{In: 0, Rows: b, Cols: total, Type: t, Limit: max(s.cols, 0)}, {In: 1, Rows: n, Cols: width, Type: t}}
	if s.queue >= 0 {
		parts = append(parts, cuda.Part{In: s.queue, Rows: total - n, Cols: width, Type: t})
	}
	f, err := cuda.NewFactors(c, parts...)
	if err != nil {
		return nil, err
	}
	keys, queue := cuda.Product{M: b, N: width, K: n}, cuda.Product{M: b, N: width, K: total - n, Beta: 1}
	return func() error {
		m, err := f.Place()
		if err != nil {
			return err
		}
		to := cuda.MatrixOf(c.Out, 0, width)
		if err := cuda.Multiply(c, keys, m[0], m[1], to, nil); err != nil || s.queue < 0 {
			return err
		}
		return cuda.Multiply(c, queue, m[0].From(n), m[2], to, nil)
	}, nil
}

// gradKeysOnCUDA is the step of dkeys = dy^T f of the first n columns.
func (s *similarity) gradKeysOnCUDA(n int) func(c *exec.DeviceCall) (exec.Step, error) {
	return func(c *exec.DeviceCall) (exec.Step, error) {
		b, width, total := c.In[0].Shape[0], c.In[0].Shape[1], c.In[1].Shape[1]
		t := cuda.ProductType(c)
		f, err := cuda.NewFactors(c,
			cuda.Part{In: 1, Rows: b, Cols: n, LD: total, Type: t, Limit: max(s.cols, 0)}, cuda.Part{In: 0, Rows: b, Cols: width, Type: t})
		if err != nil {
			return nil, err
		}
		p := cuda.Product{TransA: true, M: n, N: width, K: b}
		return func() error {
			m, err := f.Place()
			if err != nil {
				return err
			}
			return cuda.Multiply(c, p, m[0], m[1], cuda.MatrixOf(c.Out, 0, width), nil)
		}, nil
	}
}

// rowProductsOnCUDA is the step of RowProducts.
func rowProductsOnCUDA(c *exec.DeviceCall) (exec.Step, error) {
	const warps = 8
	rows, cols := c.In[0].Shape[0], c.In[0].Shape[1]
	k := cuda.Load(c, &similaritySource, "row_products")
	return func() error {
		return k.Launch(cuda.Grid{X: cuda.Blocks(rows, warps), Threads: 32 * warps}, c.Out, c.In[0], c.In[1], rows, cols, rows/c.In[1].Shape[0])
	}, nil
}

// rowProductsGradOnCUDA is the step of its gradient.
func rowProductsGradOnCUDA(c *exec.DeviceCall) (exec.Step, error) {
	n, cols := c.In[1].Shape[0], c.In[0].Shape[1]
	k := cuda.Load(c, &similaritySource, "row_products_gradient")
	return func() error {
		return k.Launch(cuda.Grid{X: n, Y: cuda.Blocks(cols, 128), Threads: 128}, c.Out, c.Aux[0], c.In[0], c.In[1], c.In[2], cols, c.In[0].Shape[0]/n)
	}, nil
}
