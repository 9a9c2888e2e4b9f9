package similarity

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

// multiplyColumnsOnCUDA is the step of Diagonal and of its gradient for x: the diagonal of one head as wide as the rows.
func multiplyColumnsOnCUDA(c *exec.DeviceCall) (exec.Step, error) {
	return scaleHeads(c, 0, c.In[0].Shape[1]), nil
}

// diagonalWeightsOnCUDA is the step of its gradient for w.
func diagonalWeightsOnCUDA(c *exec.DeviceCall) (exec.Step, error) {
	return scaleHeadsWeights(c, 0, c.In[0].Shape[1]), nil
}

// scaleHeads returns the step of rows of which some columns, in heads as wide as w, are multiplied by w.
func scaleHeads(c *exec.DeviceCall, from, width int) exec.Step {
	rows, cols, n := c.In[0].Shape[0], c.In[0].Shape[1], c.In[1].Shape[0]
	k := cuda.Load(c, &similaritySource, "multiply_columns")
	return func() error {
		return k.Launch(cuda.Grid{X: rows, Y: cuda.Blocks(cols, 256), Threads: 256}, c.Out, c.In[0], c.In[1], cols, from, width, n)
	}
}

// scaleHeadsWeights returns the step of the gradient for w.
func scaleHeadsWeights(c *exec.DeviceCall, from, width int) exec.Step {
	rows, cols, n := c.In[0].Shape[0], c.In[0].Shape[1], c.Out.Shape[0]
	k := cuda.Load(c, &similaritySource, "multiply_columns_weights")
	return func() error {
		return k.Launch(cuda.Grid{X: cuda.Blocks(n, 32), Threads: 32, ThreadsY: 32}, c.Out, c.In[0], c.In[1], rows, cols, from, width, n)
	}
}

// blocksProduct is the product of rows by n blocks of size d, in float32.
func blocksProduct(transposed bool, rows, n, d int) cuda.Product {
	return cuda.Product{TransB: !transposed, M: rows, N: d, K: d, Batch: n, StrideA: d, StrideB: d * d, StrideC: d}
}

// weightsProduct is that of the gradient for the blocks, added to what is there or not.
func weightsProduct(beta float32, rows, n, d int) cuda.Product {
	return cuda.Product{TransA: true, M: d, N: d, K: rows, Beta: beta, Batch: n, StrideA: d, StrideB: d, StrideC: d * d}
}

// multiplyBlocksOnCUDA is the step of BlockDiagonal and of its gradient for x.
func multiplyBlocksOnCUDA(transposed bool) func(c *exec.DeviceCall) (exec.Step, error) {
	return func(c *exec.DeviceCall) (exec.Step, error) {
		rows, cols := c.In[0].Shape[0], c.In[0].Shape[1]
		n, d := metricBlocks(c.In[1].Shape)
		p := blocksProduct(transposed, rows, n, d)
		return func() error {
			return cuda.Multiply(c, p, cuda.MatrixOf(c.In[0], 0, cols), cuda.MatrixOf(c.In[1], 0, d), cuda.MatrixOf(c.Out, 0, cols), nil)
		}, nil
	}
}

// blockWeightsOnCUDA is the step of its gradient for the blocks.
func blockWeightsOnCUDA(c *exec.DeviceCall) (exec.Step, error) {
	rows, cols := c.In[0].Shape[0], c.In[0].Shape[1]
	n, d := metricBlocks(c.Out.Shape)
	p := weightsProduct(0, rows, n, d)
	return func() error {
		return cuda.Multiply(c, p, cuda.MatrixOf(c.In[0], 0, cols), cuda.MatrixOf(c.In[1], 0, cols), cuda.MatrixOf(c.Out, 0, d), nil)
	}, nil
}

// onCUDA is the step of FoldColumns, or with transposed of its gradient for x: a product for each head.
func (f folding) onCUDA(transposed bool) func(c *exec.DeviceCall) (exec.Step, error) {
	return func(c *exec.DeviceCall) (exec.Step, error) {
		rows, cols := c.In[0].Shape[0], c.In[0].Shape[1]
		n, d := columnBlocks(c.In[1].Shape)
		if d == 1 {
			return scaleHeads(c, f.from, f.width), nil
		}
		p := blocksProduct(transposed, rows, n, d)
		return func() error {
			if err := cuda.Copy(c.Out, c.In[0]); err != nil {
				return err
			}
			for at := f.from; at < f.from+f.width; at += n * d {
				if err := cuda.Multiply(c, p, cuda.MatrixOf(c.In[0], at, cols), cuda.MatrixOf(c.In[1], 0, d), cuda.MatrixOf(c.Out, at, cols), nil); err != nil {
					return err
				}
			}
			return nil
		}, nil
	}
}

// weightsOnCUDA is the step of its gradient for the weights: the heads one after the other.
func (f folding) weightsOnCUDA(c *exec.DeviceCall) (exec.Step, error) {
	rows, cols := c.In[0].Shape[0], c.In[0].Shape[1]
	n, d := columnBlocks(c.Out.Shape)
	if d == 1 {
		return scaleHeadsWeights(c, f.from, f.width), nil
	}
	return func() error {
		for at := f.from; at < f.from+f.width; at += n * d {
			p := weightsProduct(min(1, float32(at-f.from)), rows, n, d)
			if err := cuda.Multiply(c, p, cuda.MatrixOf(c.In[0], at, cols), cuda.MatrixOf(c.In[1], at, cols), cuda.MatrixOf(c.Out, 0, d), nil); err != nil {
				return err
			}
		}
		return nil
	}, nil
}
