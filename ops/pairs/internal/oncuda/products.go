package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

// Mode says which product of queries, contexts and the matrix of their products is made.
type Mode int

// The matrix of queries and contexts; rows, of the matrix and contexts; columns, of the matrix transposed and queries.
const (
	Scores Mode = iota
	Rows
	Columns
)

// factors are the first operands of a call as products over channels read them.
func factors(c *exec.DeviceCall, n int) *cuda.Factors {
	var parts []cuda.Part
	for i := range n {
		parts = append(parts, part(c, i))
	}
	return cuda.NewFactors(c, parts...)
}

func part(c *exec.DeviceCall, i int) cuda.Part {
	return cuda.Part{In: i, Rows: c.In[i].Shape[0], Cols: c.In[i].Shape[1], Type: cuda.ProductType(c)}
}

// Product is the step of a product.
func (s Sides) Product(mode Mode) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		f := factors(c, 2)
		channels := c.In[1].Shape[1]
		p := cuda.Product{TransB: true, M: s[0].Tokens, N: s[1].Tokens, K: channels, Beta: cuda.Beta(c)}
		switch mode {
		case Rows:
			p.TransB, p.N, p.K = false, channels, s[1].Tokens
		case Columns:
			p.TransA, p.TransB, p.M, p.N, p.K = true, false, s[1].Tokens, channels, s[0].Tokens
		}
		return func() {
			x := f.Place()
			cuda.Multiply(c, p, x[0], x[1], cuda.MatrixOf(c.Out, 0, p.N), nil)
		}
	})
}

// SquaredNorms is the step of |x|^2 of the tokens of a side.
func (s Sides) SquaredNorms(side int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k, rows, cols := cuda.Load(c, source, "squared_norms"), c.In[0].Shape[0], c.In[0].Shape[1]
		return func() { k.Enqueue(warps(rows), c.Out, c.In[0], rows, cols) }
	})
}

// SquaredNormSlopes is the step of its gradient.
func (s Sides) SquaredNormSlopes(side int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k, n := cuda.Load(c, source, "squared_norm_slopes"), c.Out.Shape.TotalSize()
		return func() { k.Enqueue(cuda.Each(n), c.Out, c.In[0], c.In[1], int64(n), c.Out.Shape[1], c.Accumulate) }
	})
}

// Gram is the step of the products of the tokens of each sequence of a side with each other.
func (s Sides) Gram(side int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		f, n := factors(c, 1), s[side].Len
		return func() {
			x := f.Place()[0]
			p := cuda.Product{TransB: true, M: n, N: n, K: c.In[0].Shape[1], Batch: s[side].Tokens / n,
				StrideA: n * x.LD, StrideB: n * x.LD, StrideC: n * n}
			cuda.Multiply(c, p, x, x, cuda.MatrixOf(c.Out, 0, n), nil)
		}
	})
}

// GramSlopes is the step of its gradient, 2 G x for a symmetric one.
func (s Sides) GramSlopes(side int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		f, n := factors(c, 2), s[side].Len
		channels := c.In[0].Shape[1]
		return func() {
			x := f.Place()
			p := cuda.Product{M: n, N: channels, K: n, Alpha: 2, Beta: cuda.Beta(c), Batch: s[side].Tokens / n,
				StrideA: n * x[1].LD, StrideB: n * x[0].LD, StrideC: n * channels}
			cuda.Multiply(c, p, x[1], x[0], cuda.MatrixOf(c.Out, 0, channels), nil)
		}
	})
}

// mixed is the product of weights of all tokens, times the matrix of the tokens of each sequence of a side with each
// other.
func (s Sides) mixed(c *exec.DeviceCall, side int, weights, gram, to cuda.Matrix) {
	n, ld := s[side].Len, s[1].Tokens
	p := cuda.Product{M: s[0].Tokens, N: n, K: n, Batch: ld / n, StrideA: n, StrideB: n * n, StrideC: n}
	if side == 0 {
		p = cuda.Product{M: n, N: ld, K: n, Batch: s[0].Tokens / n, StrideA: n * n, StrideB: n * ld, StrideC: n * ld}
		weights, gram = gram, weights
	}
	cuda.Multiply(c, p, weights, gram, to, nil)
}

// SquaredLengths is the step of w G w for each query and context, with the products G of the tokens of a side.
func (s Sides) SquaredLengths(side int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k, ld := cuda.Load(c, source, "sums"), s[1].Tokens
		return func() {
			s.mixed(c, side, cuda.MatrixOf(c.In[0], 0, ld), cuda.MatrixOf(c.In[1], 0, s[side].Len),
				cuda.MatrixOf(c.Aux[0], 0, ld))
			s.sums(k, c, c.Out, c.In[0], c.Aux[0], Grid{Tokens, Tokens}, over(side), false, true)
		}
	})
}

// over is the grid of sums of values of all tokens over those of a side.
func over(side int) Grid {
	g := Grid{Tokens, Tokens}
	g[side] = Sequences
	return g
}

// SquaredLengthSlopes is the step of its gradients, from weights, the result and its gradient.
func (s Sides) SquaredLengthSlopes(side int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k, n, ld := function(c, "scaled_product"), s[side].Len, s[1].Tokens
		room := &cuda.Room{}
		base := room.Take(4 * int64(s[0].Tokens) * int64(ld))
		base += cuda.Scratch(c, room.Bytes)
		full, coarse := Grid{Tokens, Tokens}, over(side)
		p := cuda.Product{TransA: true, M: n, N: n, K: s[0].Tokens, Batch: ld / n, StrideA: n, StrideB: n,
			StrideC: n * n}
		if side == 0 {
			p = cuda.Product{TransB: true, M: n, N: n, K: ld, Batch: s[0].Tokens / n, StrideA: n * ld, StrideB: n * ld,
				StrideC: n * n}
		}
		return func() {
			times := func(to, x any, a float32, add bool) {
				s.elements(k, c, to, full, []any{x, c.In[2]}, []Grid{full, coarse}, false, [2]float32{a}, add)
			}
			times(c.Out, c.InAux[1][0], 2, c.Accumulate)
			times(base, c.In[0], 1, false)
			cuda.Multiply(c, p, cuda.MatrixOf(c.In[0], 0, ld), cuda.FloatsAt(base, ld), cuda.MatrixOf(c.Aux[0], 0, n),
				nil)
		}
	})
}

// Blend is the step of values of tokens of queries, the shares of which are softmaxes of scale times their products.
func (s Sides) Blend(g Grid, scale float32) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k, n, ld := cuda.Load(c, source, "shares"), s[0].Len, s.ld(g)
		room := &cuda.Room{}
		base := room.Take(4 * int64(s[0].Tokens) * int64(n))
		base += cuda.Scratch(c, room.Bytes)
		p := cuda.Product{M: n, N: ld, K: n, Batch: s[0].Tokens / n, StrideA: n * n, StrideB: n * ld, StrideC: n * ld}
		return func() {
			args := []any{base, c.In[1], scale}
			k.Enqueue(warps(s[0].Tokens), append(args, s.block(c)...)...)
			cuda.Multiply(c, p, cuda.FloatsAt(base, n), cuda.MatrixOf(c.In[0], 0, ld), cuda.MatrixOf(c.Out, 0, ld), nil)
		}
	})
}
