package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

// Unit is the step of vectors of unit length.
func (s Sides) Unit(axis Axis, channels int, eps float32) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k := cuda.Load(c, source, "unit")
		return func() { s.vectors(k, c, axis, c.Out, c.Aux[0], c.In[0], int(axis), channels, eps) }
	})
}

// UnitSlopes is the step of its gradient.
func (s Sides) UnitSlopes(axis Axis, channels int, eps float32) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k := cuda.Load(c, source, "unit_slopes")
		return func() { s.vectors(k, c, axis, c.Out, c.In[0], c.InAux[0][0], c.In[1], int(axis), channels, eps) }
	})
}

// Transpose is the step of a matrix of sequences of queries and contexts from vectors of one channel (side 0), or the
// other way.
func (s Sides) Transpose(side int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k, n, m := cuda.Load(c, source, "transpose"), s[side].Sequences, s[1-side].Sequences
		return func() { k.Enqueue(cuda.Each(n*m), c.Out, c.In[0], n, m) }
	})
}

// SquaredDifference is the step of squared differences, of vectors with factors or without, or of 2 (a x - y) dy.
func (s Sides) SquaredDifference(axis Axis, channels int, scaled, slope bool) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k := cuda.Load(c, source, "squared_difference")
		return func() {
			args, dy := []any{c.Out, c.In[0], c.In[1], nil, nil}, 2
			if scaled {
				args[3], dy = c.In[2], 3
			}
			if slope {
				args[4] = c.In[dy]
			}
			s.vectors(k, c, axis, append(args, int(axis), channels)...)
		}
	})
}

// RowTimes is the step of vectors times a value of each.
func (s Sides) RowTimes(axis Axis, channels int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k := cuda.Load(c, source, "row_times")
		return func() { s.vectors(k, c, axis, c.Out, c.In[0], c.In[1], int(axis), channels, c.Accumulate) }
	})
}

// RowDots is the step of the products of vectors with those of another operand.
func (s Sides) RowDots(axis Axis, channels, other int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k := cuda.Load(c, source, "row_dots")
		return func() { s.vectors(k, c, axis, c.Out, c.In[0], c.In[other], int(axis), channels) }
	})
}

// Join is the step of joined vectors of sequences, and of tokens where there are some.
func (s Sides) Join(tokens bool, channels int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k := cuda.Load(c, source, "join")
		return func() {
			args := []any{c.Out, c.In[0], nil, channels}
			if tokens {
				args[2] = c.In[1]
			}
			s.vectors(k, c, Joined, args...)
		}
	})
}

// Part is the step of the vectors of sequences, or of tokens, of joined ones.
func (s Sides) Part(axis Axis, channels int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k := cuda.Load(c, source, "part")
		return func() { s.vectors(k, c, axis, c.Out, c.In[0], int(axis), channels) }
	})
}

// attending are products of a pair: of its n queries, those of an axis, with its m joined vectors.
func (s Sides) attending(axis Axis) (p cuda.Product, n, m int) {
	n, m = 1, s[0].Len+1
	if axis == Joined {
		n = m
	}
	return cuda.Product{Batch: s[0].Sequences * s[1].Sequences}, n, m
}

// product enqueues one for each pair: to (rows, cols) from inner values.
func product(c *exec.DeviceCall, p cuda.Product, transA, transB bool, rows, cols, inner int, a, b, to cuda.Matrix) {
	p.TransA, p.TransB, p.M, p.N, p.K = transA, transB, rows, cols, inner
	p.StrideA, p.StrideB, p.StrideC = rows*inner, inner*cols, rows*cols
	cuda.Multiply(c, p, a, b, to, nil)
}

// Attend is the step of sums of joined vectors, operand last, by the softmax of products, the auxiliary result.
func (s Sides) Attend(axis Axis, last int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k := cuda.Load(c, source, "attention")
		p, n, m := s.attending(axis)
		inner, channels := c.In[0].Shape[1], c.In[last].Shape[1]
		return func() {
			weights := cuda.MatrixOf(c.Aux[0], 0, m)
			product(c, p, false, true, n, m, inner, cuda.MatrixOf(c.In[0], 0, inner), cuda.MatrixOf(c.In[1], 0, inner), weights)
			s.vectors(k, c, axis, c.Aux[0], nil, int(axis))
			product(c, p, false, false, n, channels, m, weights, cuda.MatrixOf(c.In[last], 0, channels),
				cuda.MatrixOf(c.Out, 0, channels))
		}
	})
}

// AttendSlopes is the step of its gradients, from its operands, the result and its gradient.
func (s Sides) AttendSlopes(axis Axis, last int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k, subtract := cuda.Load(c, source, "attention"), cuda.Load(c, source, "from_first")
		p, n, m := s.attending(axis)
		inner, channels := c.In[0].Shape[1], c.In[last].Shape[1]
		room := &cuda.Room{}
		rows := 4 * int64(p.Batch) * int64(m)
		base, near := room.Take(rows*int64(n)), room.Take(rows*int64(max(inner, channels)))
		scratch := cuda.Scratch(c, room.Bytes)
		base, near = base+scratch, near+scratch
		fromFirst := func(x exec.Operand, cols int) cuda.Matrix {
			s.vectors(subtract, c, Joined, near, x, cols)
			return cuda.FloatsAt(near, cols)
		}
		return func() {
			of := func(x exec.Operand, cols int) cuda.Matrix { return cuda.MatrixOf(x, 0, cols) }
			kept := c.InAux[last+1][0]
			weights, d, dy := of(kept, m), cuda.FloatsAt(base, m), of(c.In[last+2], channels)
			product(c, p, false, true, n, m, channels, dy, fromFirst(c.In[last], channels), d)
			s.vectors(k, c, axis, base, kept, int(axis))
			product(c, p, false, false, n, inner, m, d, fromFirst(c.In[1], inner), of(c.Out, inner))
			product(c, p, true, false, m, inner, n, d, of(c.In[0], inner), of(c.Aux[0], inner))
			p.Beta = float32(2 - last) // to what is both
			product(c, p, true, false, m, channels, n, weights, dy, of(c.Aux[last-1], channels))
			p.Beta = 0
		}
	})
}

// Gather is the step of sums of joined vectors by gates, which are an auxiliary result, and their sums.
func (s Sides) Gather(channels int, eps float32) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k := cuda.Load(c, source, "gather")
		return func() {
			s.vectors(k, c, Sequences, c.Out, c.Aux[0], c.Aux[1], c.In[0], c.In[1], channels, eps)
		}
	})
}

// GatherSlopes is the step of its gradients.
func (s Sides) GatherSlopes(channels int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k := cuda.Load(c, source, "gather_slopes")
		return func() {
			of := c.InAux[1]
			s.vectors(k, c, Sequences, c.Out, c.Aux[0], c.In[0], of[0], of[1], c.In[2], channels)
		}
	})
}
