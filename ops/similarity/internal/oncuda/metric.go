package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
	"gorgonia.org/tensor"
)

// MultiplyColumns is the step of Diagonal and of its gradient for x: the diagonal of one head as wide as the rows.
func MultiplyColumns() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step { return scaleHeads(c, 0, c.In[0].Shape[1]) })
}

// DiagonalWeights is the step of its gradient for w.
func DiagonalWeights() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step { return scaleHeadsWeights(c, 0, c.In[0].Shape[1]) })
}

// scaleHeads returns the step of rows of which some columns, in heads as wide as w, are multiplied by w.
func scaleHeads(c *exec.DeviceCall, from, width int) cuda.Step {
	rows, cols, n := c.In[0].Shape[0], c.In[0].Shape[1], c.In[1].Shape[0]
	k := cuda.Load(c, similaritySource, "multiply_columns")
	return func() {
		k.Enqueue(cuda.Grid{X: rows, Y: cuda.Blocks(cols, 256), Threads: 256}, c.Out, c.In[0], c.In[1], cols, from,
			width, n)
	}
}

// scaleHeadsWeights returns the step of the gradient for w.
func scaleHeadsWeights(c *exec.DeviceCall, from, width int) cuda.Step {
	rows, cols, n := c.In[0].Shape[0], c.In[0].Shape[1], c.Out.Shape[0]
	k := cuda.Load(c, similaritySource, "multiply_columns_weights")
	return func() {
		k.Enqueue(cuda.Grid{X: cuda.Blocks(n, 32), Threads: 32, ThreadsY: 32}, c.Out, c.In[0], c.In[1], rows, cols,
			from, width, n)
	}
}

// blocks returns the number and the size of the blocks of weights, of size 1 of a diagonal.
func blocks(w tensor.Shape) (n, d int) {
	switch len(w) {
	case 1:
		return w[0], 1
	case 2:
		return 1, w[0]
	}
	return w[0], w[1]
}

// blocksProduct is the product of rows by n blocks of size d, in float32.
func blocksProduct(transposed bool, rows, n, d int) cuda.Product {
	return cuda.Product{TransB: !transposed, M: rows, N: d, K: d, Batch: n, StrideA: d, StrideB: d * d, StrideC: d}
}

// weightsProduct is that of the gradient for the blocks, added to what is there or not.
func weightsProduct(beta float32, rows, n, d int) cuda.Product {
	return cuda.Product{TransA: true, M: d, N: d, K: rows, Beta: beta, Batch: n, StrideA: d, StrideB: d, StrideC: d * d}
}

// MultiplyBlocks is the step of BlockDiagonal and of its gradient for x.
func MultiplyBlocks(transposed bool) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		rows, cols := c.In[0].Shape[0], c.In[0].Shape[1]
		n, d := blocks(c.In[1].Shape)
		p := blocksProduct(transposed, rows, n, d)
		return func() {
			cuda.Multiply(c, p, cuda.MatrixOf(c.In[0], 0, cols), cuda.MatrixOf(c.In[1], 0, d),
				cuda.MatrixOf(c.Out, 0, cols), nil)
		}
	})
}

// BlockWeights is the step of its gradient for the blocks.
func BlockWeights() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		rows, cols := c.In[0].Shape[0], c.In[0].Shape[1]
		n, d := blocks(c.Out.Shape)
		p := weightsProduct(0, rows, n, d)
		return func() {
			cuda.Multiply(c, p, cuda.MatrixOf(c.In[0], 0, cols), cuda.MatrixOf(c.In[1], 0, cols),
				cuda.MatrixOf(c.Out, 0, d), nil)
		}
	})
}

// FoldColumns is the step of heads of width columns from one on times the weights of their channels, or with transposed
// of its gradient for x: a product for each head.
func FoldColumns(from, width int, transposed bool) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		rows, cols := c.In[0].Shape[0], c.In[0].Shape[1]
		n, d := blocks(c.In[1].Shape)
		if d == 1 {
			return scaleHeads(c, from, width)
		}
		p := blocksProduct(transposed, rows, n, d)
		return func() {
			cuda.Copy(c.Out, c.In[0])
			for at := from; at < from+width; at += n * d {
				x, w, to := cuda.MatrixOf(c.In[0], at, cols), cuda.MatrixOf(c.In[1], 0, d),
					cuda.MatrixOf(c.Out, at, cols)
				cuda.Multiply(c, p, x, w, to, nil)
			}
		}
	})
}

// FoldColumnsWeights is the step of its gradient for the weights: the heads one after the other.
func FoldColumnsWeights(from, width int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		rows, cols := c.In[0].Shape[0], c.In[0].Shape[1]
		n, d := blocks(c.Out.Shape)
		if d == 1 {
			return scaleHeadsWeights(c, from, width)
		}
		return func() {
			for at := from; at < from+width; at += n * d {
				p := weightsProduct(min(1, float32(at-from)), rows, n, d)
				dy, x := cuda.MatrixOf(c.In[0], at, cols), cuda.MatrixOf(c.In[1], at, cols)
				cuda.Multiply(c, p, dy, x, cuda.MatrixOf(c.Out, 0, d), nil)
			}
		}
	})
}
