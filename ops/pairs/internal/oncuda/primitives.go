package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

var source = cuda.NewSource(files, "pairs", "pairs.cu", "vectors.cu")

// Axis says what the rows of a matrix, or its columns, stand for.
type Axis int

// One, or each sequence, or each token, or each sequence and behind it its tokens.
const (
	One Axis = iota
	Sequences
	Tokens
	Joined
)

// Grid says so of rows and columns.
type Grid [2]Axis

// Side is the most that a block has of a side.
type Side struct{ Len, Tokens, Sequences int }

// Size returns how many rows or columns there are.
func (s Side) Size(a Axis) int {
	switch a {
	case Tokens:
		return s.Tokens
	case Sequences:
		return s.Sequences
	case Joined:
		return s.Tokens + s.Sequences
	}
	return 1
}

// Sides are those of rows and columns.
type Sides [2]Side

func (s Sides) size(g Grid) int { return s[0].Size(g[0]) * s[1].Size(g[1]) }

// ld is the distance of rows.
func (s Sides) ld(g Grid) int { return s[1].Size(g[1]) }

// block are the parameters BLOCK of kernels: the spans are the last operands of all primitives.
func (s Sides) block(c *exec.DeviceCall) []any {
	n := len(c.In)
	return []any{c.In[n-2], c.In[n-1], s[0].Len, s[1].Len, s[0].Tokens, s[1].Tokens, s[0].Sequences, s[1].Sequences}
}

// code is a grid as a parameter of a kernel.
func (g Grid) code() int { return 3*int(g[0]) + int(g[1]) }

// elements enqueues a function of up to three operands, which are broadcast, with two parameters.
func (s Sides) elements(k *cuda.Kernel, c *exec.DeviceCall, to any, g Grid, in []any, of []Grid, mean bool,
	p [2]float32, add bool) {
	args := []any{to}
	var codes [3]int
	for i := range 3 {
		if i < len(in) {
			args, codes[i] = append(args, in[i]), of[i].code()
		} else {
			args = append(args, nil)
		}
	}
	args = append(args, g.code(), codes[0], codes[1], codes[2], mean, p[0], p[1], add)
	k.Enqueue(cuda.Each(s.size(g)), append(args, s.block(c)...)...)
}

// function is the kernel of elements for a function of pairs.cu.
func function(c *exec.DeviceCall, name string) *cuda.Kernel {
	return cuda.Load(c, source, "elements", cuda.Macro{Name: "F", Value: name})
}

// Elements is the step of a function of operands that are broadcast to a grid.
func (s Sides) Elements(name string, g Grid, of []Grid, p ...float32) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k, parameters := function(c, name), [2]float32{}
		copy(parameters[:], p)
		return func() {
			var in []any
			for i := range of {
				in = append(in, c.In[i])
			}
			s.elements(k, c, c.Out, g, in, of, false, parameters, c.Accumulate)
		}
	})
}

// Spread is the step of a broadcast, or of that of shares of a mean.
func (s Sides) Spread(g, h Grid, mean bool) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k := function(c, "same")
		return func() { s.elements(k, c, c.Out, g, []any{c.In[0]}, []Grid{h}, mean, [2]float32{}, false) }
	})
}

// sums enqueues sums of x y (y may be nil) of grid g for each place of a coarser grid h.
func (s Sides) sums(k *cuda.Kernel, c *exec.DeviceCall, to, x, y any, g, h Grid, mean, clamp bool) {
	n := s.size(h)
	grid := cuda.Each(n)
	if g[1] != h[1] {
		grid = cuda.Each(n * 32)
	}
	args := []any{to, x, y, g.code(), h.code(), mean, clamp}
	k.Enqueue(grid, append(args, s.block(c)...)...)
}

// Sums is the step of sums, or of means.
func (s Sides) Sums(g, h Grid, mean bool) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k := cuda.Load(c, source, "sums")
		return func() { s.sums(k, c, c.Out, c.In[0], nil, g, h, mean, false) }
	})
}

// Dot is the step of sums of products of the first operand and another.
func (s Sides) Dot(g, h Grid, other int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k := cuda.Load(c, source, "sums")
		return func() { s.sums(k, c, c.Out, c.In[0], c.In[other], g, h, false, false) }
	})
}

// warps is the grid of a kernel with a warp for each of n results.
func warps(n int) cuda.Grid { return cuda.Each(32 * n) }

// Softmax is the step of a softmax over the tokens of contexts, of those above the second operand with above; kept says
// which weights stay, as in pairs.cu.
func (s Sides) Softmax(scale float32, above bool, kept int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k := cuda.Load(c, source, "softmax")
		return func() {
			args := []any{c.Out, c.In[0], nil, scale, kept}
			if above {
				args[2] = c.In[1]
			}
			k.Enqueue(warps(s[0].Tokens*(s[1].Tokens/s[1].Len)), append(args, s.block(c)...)...)
		}
	})
}

// SoftmaxSlopes is the step of its gradient.
func (s Sides) SoftmaxSlopes(scale float32) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k := cuda.Load(c, source, "softmax_slopes")
		return func() {
			args := []any{c.Out, c.In[0], c.In[1], scale}
			k.Enqueue(warps(s[0].Tokens*(s[1].Tokens/s[1].Len)), append(args, s.block(c)...)...)
		}
	})
}

// columns enqueues a kernel with a thread for each column of each sequence of queries.
func (s Sides) columns(k *cuda.Kernel, c *exec.DeviceCall, g Grid, args ...any) {
	k.Enqueue(cuda.Each(s[0].Sequences*s.ld(g)), append(args, s.block(c)...)...)
}

// ColumnSoftmax is the step of a softmax over the tokens of queries.
func (s Sides) ColumnSoftmax(g Grid, scale float32) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k := cuda.Load(c, source, "column_softmax")
		return func() { s.columns(k, c, g, c.Out, c.In[0], g.code(), scale) }
	})
}

// ColumnSoftmaxSlopes is the step of its gradient.
func (s Sides) ColumnSoftmaxSlopes(g Grid, scale float32) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k := cuda.Load(c, source, "column_softmax_slopes")
		return func() { s.columns(k, c, g, c.Out, c.In[0], c.In[1], g.code(), scale) }
	})
}

// LogSumExp is the step of the logarithm of a sum, or mean, over the tokens of a side.
func (s Sides) LogSumExp(g, h Grid, a float32, mean bool) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k := cuda.Load(c, source, "log_sum_exp")
		return func() {
			args := []any{c.Out, c.In[0], g.code(), h.code(), a, mean}
			k.Enqueue(cuda.Each(s.size(h)), append(args, s.block(c)...)...)
		}
	})
}

// Max is the step of maxima over the tokens of a side, whose places are the auxiliary result.
func (s Sides) Max(g, h Grid) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k := cuda.Load(c, source, "maxima")
		return func() {
			args := []any{c.Out, c.Aux[0], c.In[0], g.code(), h.code()}
			k.Enqueue(cuda.Each(s.size(h)), append(args, s.block(c)...)...)
		}
	})
}

// MaxSlopes is the step of their gradient.
func (s Sides) MaxSlopes(g, h Grid) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k := cuda.Load(c, source, "max_slopes")
		return func() {
			args := []any{c.Out, c.InAux[0][0], c.In[1], g.code(), h.code(), c.Accumulate}
			k.Enqueue(cuda.Each(s.size(g)), append(args, s.block(c)...)...)
		}
	})
}

// Count is the step of how many tokens sequences have.
func (s Sides) Count(g, h Grid) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k := cuda.Load(c, source, "sums")
		return func() { s.sums(k, c, c.Out, nil, nil, g, h, false, false) }
	})
}

// Value is the step of value i of the operand.
func (s Sides) Value(i int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k, g := function(c, "same"), Grid{One, One}
		return func() {
			s.elements(k, c, c.Out, g, []any{cuda.MatrixOf(c.In[0], i, 0).At}, []Grid{g}, false, [2]float32{}, false)
		}
	})
}

// Normalise is the step of columns divided by their norms over the tokens of queries, which are the auxiliary result.
func (s Sides) Normalise(g Grid, a, eps float32) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k := cuda.Load(c, source, "normalise")
		return func() { s.columns(k, c, g, c.Out, c.Aux[0], c.In[0], g.code(), a, eps) }
	})
}

// NormaliseSlopes is the step of its gradient, of the operand, the result and its gradient.
func (s Sides) NormaliseSlopes(g Grid, a, eps float32) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k := cuda.Load(c, source, "normalise_slopes")
		return func() { s.columns(k, c, g, c.Out, c.In[0], c.InAux[1][0], c.In[2], g.code(), a, eps) }
	})
}
