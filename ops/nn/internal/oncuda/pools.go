package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

var (
	poolsSource    = cuda.NewSource(files, "pools", "rows.cuh", "pools.cu")
	sortPoolSource = cuda.NewSource(files, "sort pool", "rows.cuh", "sortpool.cu")
)

// lengthsOf returns operand 1, the lengths, as a parameter of a kernel, nil where there are none.
func lengthsOf(c *exec.DeviceCall) any {
	if len(c.In) < 2 {
		return nil
	}
	return c.In[1]
}

// MeanTokens is the step of means over sequences of l rows, without the first skip.
func MeanTokens(l, skip int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		b, cols := sizeOf(c.Out)
		p := pieceOf(cols)
		k := cuda.Load(c, poolsSource, "mean_tokens", cuda.Value("PIECE", p))
		return func() {
			k.Enqueue(cuda.Grid{X: b, Y: cuda.Blocks(cols, 32*p), Threads: 256}, c.Out, c.In[0], lengthsOf(c), cols, l,
				skip)
		}
	})
}

// MeanTokensGrad is the step of its gradient.
func MeanTokensGrad(l, skip int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		rows, cols := sizeOf(c.Out)
		p := pieceOf(cols)
		k := cuda.Load(c, poolsSource, "mean_tokens_dx", cuda.Value("PIECE", p))
		return func() { k.Enqueue(pieceGrid(rows, cols, p), c.Out, c.In[0], lengthsOf(c), rows, cols, l, skip) }
	})
}

// columnGrid has a thread for each column of each sequence.
func columnGrid(sequences, cols int) cuda.Grid {
	return cuda.Grid{X: sequences, Y: cuda.Blocks(cols, 128), Threads: 128}
}

// MaxTokens is the step of the maxima of each column of a sequence of l rows.
func MaxTokens(l int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		b, cols := sizeOf(c.Out)
		k := cuda.Load(c, poolsSource, "max_tokens", cuda.Value("PIECE", 1))
		return func() { k.Enqueue(columnGrid(b, cols), c.Out, c.Aux[0], c.In[0], c.In[1], cols, l) }
	})
}

// MaxTokensGrad is the step of its gradient.
func MaxTokensGrad(l int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		rows, cols := sizeOf(c.Out)
		p := pieceOf(cols)
		k := cuda.Load(c, poolsSource, "max_tokens_dx", cuda.Value("PIECE", p))
		return func() { k.Enqueue(pieceGrid(rows, cols, p), c.Out, c.InAux[0][0], c.In[1], rows, cols, l) }
	})
}

// SoftPool is the step of means of sequences of l rows by weights of each column.
func SoftPool(l int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		b, cols := sizeOf(c.Out)
		k := cuda.Load(c, poolsSource, "soft_pool", cuda.Value("PIECE", 1))
		return func() { k.Enqueue(columnGrid(b, cols), c.Out, c.Aux[0], c.Aux[1], c.In[0], c.In[1], c.In[2], cols, l) }
	})
}

// SoftPoolGrad is the step of its gradient.
func SoftPoolGrad(l int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		rows, cols := sizeOf(c.Out)
		p := pieceOf(cols)
		k := cuda.Load(c, poolsSource, "soft_pool_dx", cuda.Value("PIECE", p))
		return func() {
			k.Enqueue(pieceGrid(rows, cols, p), c.Out, c.Aux[0], c.In[0], c.In[1], c.In[2], c.In[3], c.In[4],
				c.InAux[0][0],
				c.InAux[0][1], rows, cols, l)
		}
	})
}

// Auxiliary results of SortPool, as its op has them.
const (
	sortPoolOrder = iota
	sortPoolWeights
)

// SortPool is the step of weighted means of the sorted values of sequences of l rows.
func SortPool(l int, temperature float32) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		b, cols := sizeOf(c.Out)
		weights := cuda.Load(c, sortPoolSource, "sort_pool_weights", cuda.Value("PIECE", 1))
		sort := cuda.Load(c, sortPoolSource, "sort_pool", cuda.Value("PIECE", 1))
		return func() {
			w := c.Aux[sortPoolWeights]
			weights.Enqueue(cuda.Grid{X: cuda.Blocks(b, 4), Threads: 128}, w, c.In[1], c.In[2], b, l,
				1/temperature)
			sort.Enqueue(cuda.Grid{X: b, Y: cuda.Blocks(cols, 32), Threads: 256}, c.Out, c.Aux[sortPoolOrder], w,
				c.In[0],
				c.In[2], cols, l)
		}
	})
}

// SortPoolGradX is the step of its gradient for the rows.
func SortPoolGradX(l int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		rows, cols := sizeOf(c.Out)
		k := cuda.Load(c, sortPoolSource, "sort_pool_dx", cuda.Value("PIECE", 1))
		return func() {
			cuda.Zero(c.Out)
			k.Enqueue(pieceGrid(rows, cols, 1), c.Out, c.InAux[0][sortPoolOrder], c.InAux[0][sortPoolWeights], c.In[1],
				rows,
				cols, l)
		}
	})
}

// SortPoolGradScores is that for the scores.
func SortPoolGradScores(l int, temperature float32) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		rows, cols := sizeOf(c.In[1])
		k := cuda.Load(c, sortPoolSource, "sort_pool_dscores", cuda.Value("PIECE", 1))
		return func() {
			k.Enqueue(cuda.Grid{X: cuda.Blocks(rows, 8), Threads: 256}, c.Out, c.InAux[0][sortPoolOrder],
				c.InAux[0][sortPoolWeights], c.In[0], c.In[1], c.In[2], rows, cols, l, 1/temperature)
		}
	})
}
