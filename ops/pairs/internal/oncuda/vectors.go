package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

// LinearMode says which product of a linear layer is made: the rows, or the gradient of what it reads, or of its
// weight.
type LinearMode int

// Those of a linear layer.
const (
	LinearRows LinearMode = iota
	LinearSlopes
	LinearWeights
)

// Vectors says what vectors stand for: those of a side, or those of queries for each context.
type Vectors struct {
	Side int
	Axis Axis
	Each bool
}

// Linear is the step of a product of a linear layer, whose bias is the third operand if there is one. Rows that belong
// to nothing are 0.
func (s Sides) Linear(mode LinearMode, rows Vectors) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		f := factors(c, 2)
		x, y := c.In[0].Shape, c.In[1].Shape
		p := cuda.Product{M: x[0], N: y[1], K: x[1], Beta: cuda.Beta(c)}
		switch mode {
		case LinearRows:
			p.TransB, p.N = true, y[0]
		case LinearWeights:
			p.TransA, p.M, p.K = true, x[1], x[0]
		}
		clear := cuda.Load(c, source, "clear_padding")
		return func() {
			in := f.Place()
			var bias *cuda.Matrix
			if len(c.In) == 5 {
				m := cuda.MatrixOf(c.In[2], 0, 0)
				bias = &m
			}
			cuda.Multiply(c, p, in[0], in[1], cuda.MatrixOf(c.Out, 0, p.N), bias)
			if bias != nil {
				args := []any{c.Out, rows.Side, int(rows.Axis), rows.Each, p.N}
				clear.Enqueue(cuda.Each(p.M*p.N), append(args, s.block(c)...)...)
			}
		}
	})
}

// LinearBias is the step of the gradient of its bias.
func (s Sides) LinearBias() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k, rows, cols := cuda.Load(c, source, "sum_columns"), c.In[0].Shape[0], c.In[0].Shape[1]
		return func() {
			k.Enqueue(cuda.Grid{X: cuda.Blocks(cols, 32), Threads: 256}, c.Out, c.In[0], rows, cols, c.Accumulate)
		}
	})
}

// EachMode says which product of what each context has is made: its part of a matrix, of vectors of queries for it (0)
// and of its own (1), or either of those of the others, of which the matrix is the first.
type EachMode int

// Those of each context.
const (
	ToMatrix EachMode = iota
	ToContexts
	ToQueries
)

// Each is the step of such a product over channels, with bf16 in the precision of the engine.
func (s Sides) Each(mode EachMode, channels int, bf16 bool) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		rows, n, ld := s[0].Tokens, s[1].Len, s[1].Tokens
		p := cuda.Product{Beta: cuda.Beta(c), Batch: ld / n}
		of := func(i int) cuda.Matrix { return cuda.MatrixOf(c.In[i], 0, c.In[i].Shape[1]) }
		var f *cuda.Factors
		if bf16 {
			f = factors(c, 2)
		}
		return func() {
			x := []cuda.Matrix{of(0), of(1)}
			if bf16 {
				x = f.Place()
			}
			to, q := cuda.MatrixOf(c.Out, 0, c.Out.Shape[1]), rows*channels
			switch mode {
			case ToMatrix:
				p.TransB, p.M, p.N, p.K = true, rows, n, channels
				p.StrideA, p.StrideB, p.StrideC = rows*x[0].LD, n*x[1].LD, n
			case ToContexts:
				p.TransA, p.M, p.N, p.K = true, n, channels, rows
				p.StrideA, p.StrideB, p.StrideC = n, q, n*channels
			case ToQueries:
				p.M, p.N, p.K = rows, channels, n
				p.StrideA, p.StrideB, p.StrideC = n, n*channels, q
			}
			cuda.Multiply(c, p, x[0], x[1], to, nil)
		}
	})
}

// Repeat is the step of vectors of queries for each context, or of those of the sequences of contexts for each sequence
// of queries.
func (s Sides) Repeat(of Vectors) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k, x, n := cuda.Load(c, source, "repeat"), c.In[0].Shape, c.Out.Shape[0]
		count := 1
		if of.Side == 1 {
			count = s[0].Sequences
		}
		return func() { k.Enqueue(cuda.Each(n*x[1]), c.Out, c.In[0], int64(n), count, x[0], x[1]) }
	})
}

// SumContexts is the step of a times the sums over contexts.
func (s Sides) SumContexts(a float32) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k, n := cuda.Load(c, source, "sum_repeated"), int64(c.Out.Shape.TotalSize())
		return func() { k.Enqueue(cuda.Each(int(n)), c.Out, c.In[0], n, n, n, n, s[1].Sequences, a, c.Accumulate) }
	})
}

// SumSequences is the step of the sums over the sequences of queries.
func (s Sides) SumSequences() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k, n, cols := cuda.Load(c, source, "sum_repeated"), c.Out.Shape.TotalSize(), int64(c.Out.Shape[1])
		count := s[0].Sequences
		return func() {
			k.Enqueue(cuda.Each(n), c.Out, c.In[0], int64(n), cols, int64(count)*cols, cols, count, float32(1), false)
		}
	})
}

// vectors enqueues a kernel with a warp for each vector of an axis of queries for each context.
func (s Sides) vectors(k *cuda.Kernel, c *exec.DeviceCall, axis Axis, args ...any) {
	k.Enqueue(warps(s[0].Size(axis)*s[1].Sequences), append(args, s.block(c)...)...)
}

// Gated is the step of gates and what they make of vectors.
func (s Sides) Gated(channels int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k := cuda.Load(c, source, "gated")
		return func() { s.vectors(k, c, Tokens, c.Out, c.Aux[0], c.In[0], c.In[1], channels) }
	})
}

// GatedSlopes is the step of its gradients.
func (s Sides) GatedSlopes(channels int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k := cuda.Load(c, source, "gated_slopes")
		return func() { s.vectors(k, c, Tokens, c.Out, c.Aux[0], c.In[0], c.InAux[1][0], c.In[2], channels) }
	})
}
