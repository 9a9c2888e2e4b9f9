package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

var gruSource = cuda.NewSource(files, "gru", "gru.cu")

// How many tokens a step has is known on the device alone: products of a step are those of all sequences, and those of
// all steps of all places. Rows of no token are 0 there.

// GRU is a gated recurrent unit over sequences of so many places.
type GRU struct {
	Len            int
	Reverse, Start bool // Start: there are states before the first token
}

// Operands of the op of the gates, and of that of their gradients, as the ops have them.
const (
	inX = iota
	inWeightIH
	inWeightHH
	inBiasIH
	inBiasHH
	inPacking
	inTransposed
	inStart
)

const (
	gradGates = iota
	gradStates
	gradDY
	gradWeight
	gradPacking
	gradStart
)

// work is what steps of a unit on the CUDA device share.
type work struct {
	c       *exec.DeviceCall
	source  *cuda.Source
	r, l, h int
	reverse bool
	product exec.Type // of what products read
	room    *cuda.Room
	base    cuda.Pointer // of the scratch memory
	parts   []cuda.Part
	factors *cuda.Factors
	placed  []cuda.Matrix
}

// newWork begins a step that multiplies parts of operands.
func (u GRU) newWork(c *exec.DeviceCall, r, h int, parts ...cuda.Part) *work {
	x := &work{c: c, source: gruSource, r: r, l: u.Len, h: h, reverse: u.Reverse, product: cuda.ProductType(c),
		parts: parts}
	for i := range parts {
		parts[i].Type = x.product
	}
	x.room = cuda.NewRoom(c, parts...)
	return x
}

// scratch takes the memory that the step has asked for, and prepares the parts.
func (x *work) scratch() {
	x.base = cuda.Scratch(x.c, x.room.Bytes)
	x.factors = cuda.NewFactors(x.c, x.parts...)
}

// place brings the parts into their form, at the beginning of each run.
func (x *work) place() { x.placed = x.factors.Place() }

// floats asks for n floats of scratch.
func (x *work) floats(n int) cuda.Pointer { return x.room.Take(4 * int64(n)) }

// rows asks for rows of values that products read.
func (x *work) rows(rows, cols int) cuda.Matrix {
	ld := (cols + 7) / 8 * 8
	return cuda.Matrix{At: x.room.Take(4 * int64(rows) * int64(ld)), LD: ld, Type: x.product}
}

// at is memory that was asked for.
func (x *work) at(p cuda.Pointer) cuda.Pointer { return x.base + p }

// matrix is rows that were asked for.
func (x *work) matrix(m cuda.Matrix) cuda.Matrix {
	m.At += x.base
	return m
}

// kernel is one of the source.
func (x *work) kernel(name string) *cuda.Kernel {
	return cuda.Load(x.c, x.source, name, cuda.Type("P", exec.Operand{Spec: exec.Spec{Type: x.product}}))
}

// Grids: a block for each row or place, a thread for each value of a state, for each of n values.
func (x *work) places() cuda.Grid { return cuda.Grid{X: x.r * x.l, Threads: 256} }
func (x *work) values() cuda.Grid { return cuda.Each(x.r * x.h) }

// operand returns operand k, nil where the call has fewer.
func operand(c *exec.DeviceCall, k int) any {
	if k < len(c.In) {
		return c.In[k]
	}
	return nil
}

// Pack is the step of pack.
func Pack(l int, full bool) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k := cuda.Load(c, gruSource, "pack")
		r := (c.Out.Shape[0] - 2*(l+1)) / 2
		return func() {
			var lengths any
			if !full {
				lengths = c.In[0]
			}
			k.Enqueue(cuda.Each(r+l+1), c.Out, lengths, r, l)
		}
	})
}

// Forward is the step of the gates.
func (u GRU) Forward() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		total, in, h := c.In[inX].Shape[0], c.In[inX].Shape[1], c.In[inWeightHH].Shape[0]/3
		r := total / u.Len
		x := u.newWork(c, r, h,
			cuda.Part{In: inWeightIH, Rows: 3 * h, Cols: in}, cuda.Part{In: inWeightHH, Rows: 3 * h, Cols: h})
		packed, half, state, hidden := x.rows(total, in), x.rows(r, h), x.floats(r*h), x.floats(3*r*h)
		x.scratch()
		packed, half = x.matrix(packed), x.matrix(half)
		pack, begin, gates := x.kernel("pack_rows"), x.kernel("begin_states"), x.kernel("gates")
		return func() {
			x.place()
			packing := c.In[inPacking]
			pack.Enqueue(x.places(), packed.At, c.In[inX], packing, r, u.Len, in, packed.LD, u.Reverse)
			begin.Enqueue(x.places(), x.at(state), half.At, c.Aux[0], operand(c, inStart), packing, r, u.Len, h,
				half.LD)
			input := cuda.Product{TransB: true, M: total, N: 2 * h, K: in}
			cuda.Multiply(c, input, packed, x.placed[0], cuda.MatrixOf(c.Out, h, 4*h), nil)
			input.N = h
			cuda.Multiply(c, input, packed, x.placed[0].From(2*h*x.placed[0].LD), cuda.MatrixOf(c.Out, 0, 4*h),
				nil)
			recurrent := cuda.Product{TransB: true, M: r, N: 3 * h, K: h}
			for t := range u.Len {
				var own any
				if t > 0 || u.Start { // else the states are 0
					own = x.at(hidden)
					cuda.Multiply(c, recurrent, half, x.placed[1], cuda.FloatsAt(x.at(hidden), 3*h), nil)
				}
				gates.Enqueue(x.values(), c.Out, own, c.In[inBiasIH], c.In[inBiasHH], x.at(state), half.At, c.Aux[0],
					packing,
					r, u.Len, h, half.LD, t, u.Reverse)
			}
		}
	})
}

// Backward is the step of gradGates.
func (u GRU) Backward() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		r, h := c.In[gradStates].Shape[0]/u.Len, c.In[gradWeight].Shape[0]/3
		weight := cuda.Part{In: gradWeight, Rows: 3 * h, Cols: h}
		x := u.newWork(c, r, h, weight)
		d, carry := x.rows(r, 3*h), x.floats(r*h)
		x.scratch()
		d = x.matrix(d)
		begin, back, unrank := x.kernel("begin_back"), x.kernel("gates_back"), x.kernel("unrank")
		return func() {
			x.place()
			packing, start := c.In[gradPacking], operand(c, gradStart)
			begin.Enqueue(x.places(), c.Out, x.at(carry), packing, r, u.Len, h)
			recurrent := cuda.Product{M: r, N: h, K: 3 * h, Beta: 1}
			for t := u.Len - 1; t >= 0; t-- {
				back.Enqueue(x.values(), c.Out, c.In[gradGates], d.At, x.at(carry), c.In[gradStates], start,
					c.In[gradDY],
					packing,
					r, u.Len, h, d.LD, t, u.Reverse)
				if t > 0 || u.Start {
					cuda.Multiply(c, recurrent, d, x.placed[0], cuda.FloatsAt(x.at(carry), h), nil)
				}
			}
			if !u.Start {
				return
			}
			unrank.Enqueue(cuda.Grid{X: r, Threads: 256}, c.Aux[0], x.at(carry), packing, r, u.Len, h)
		}
	})
}

// GradX is the step of gradX.
func (u GRU) GradX() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		total, n, h := c.In[0].Shape[0], c.Out.Shape[1], c.In[0].Shape[1]/4
		x := u.newWork(c, total/u.Len, h,
			cuda.Part{In: 0, Rows: total, Cols: 3 * h, LD: 4 * h}, cuda.Part{In: 1, Rows: 3 * h, Cols: n})
		dx := x.floats(total * n)
		x.scratch()
		unpack := x.kernel("unpack_rows")
		return func() {
			x.place()
			d, w, to := x.placed[0], x.placed[1], cuda.FloatsAt(x.at(dx), n)
			cuda.Multiply(c, cuda.Product{M: total, N: n, K: 2 * h}, d.From(h), w, to, nil)
			cuda.Multiply(c, cuda.Product{M: total, N: n, K: h, Beta: 1}, d, w.From(2*h*w.LD), to, nil)
			unpack.Enqueue(x.places(), c.Out, x.at(dx), c.In[2], x.r, u.Len, n, u.Reverse, c.Accumulate)
		}
	})
}

// GradWeightIH is the step of gradWeightIH.
func (u GRU) GradWeightIH() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		total, n, h := c.In[0].Shape[0], c.Out.Shape[1], c.In[0].Shape[1]/4
		gates := cuda.Part{In: 0, Rows: total, Cols: 3 * h, LD: 4 * h}
		x := u.newWork(c, total/u.Len, h, gates)
		packed := x.rows(total, n)
		x.scratch()
		packed = x.matrix(packed)
		pack := x.kernel("pack_rows")
		return func() {
			x.place()
			pack.Enqueue(x.places(), packed.At, c.In[1], c.In[2], x.r, u.Len, n, packed.LD, u.Reverse)
			p, d := cuda.Product{TransA: true, M: 2 * h, N: n, K: total, Beta: cuda.Beta(c)}, x.placed[0]
			cuda.Multiply(c, p, d.From(h), packed, cuda.MatrixOf(c.Out, 0, n), nil)
			p.M = h
			cuda.Multiply(c, p, d, packed, cuda.MatrixOf(c.Out, 2*h*n, n), nil)
		}
	})
}

// GradWeightHH is the step of gradWeightHH.
func (u GRU) GradWeightHH() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		total, h := c.In[0].Shape[0], c.Out.Shape[1]
		gates := cuda.Part{In: 0, From: h, Rows: total, Cols: 3 * h, LD: 4 * h}
		x := u.newWork(c, total/u.Len, h, gates)
		before := x.rows(total, h)
		x.scratch()
		before = x.matrix(before)
		pack := x.kernel("pack_before")
		return func() {
			x.place()
			pack.Enqueue(x.places(), before.At, c.In[1], operand(c, 3), c.In[2], x.r, u.Len, h, before.LD,
				u.Reverse)
			p := cuda.Product{TransA: true, M: 3 * h, N: h, K: total, Beta: cuda.Beta(c)}
			cuda.Multiply(c, p, x.placed[0], before, cuda.MatrixOf(c.Out, 0, h), nil)
		}
	})
}

// GradBias is the step of gradBias, which sums so many rows at a time: rows of no token are 0.
func GradBias(biasBlock int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		rows, width := c.In[0].Shape[0], c.In[0].Shape[1]
		blocks := cuda.Blocks(rows, biasBlock)
		parts := cuda.Scratch(c, 4*int64(blocks)*int64(width))
		sums, finish := cuda.Load(c, gruSource, "sum_blocks"), cuda.Load(c, gruSource, "bias_sums")
		return func() {
			g := cuda.Each(width)
			g.Y = blocks
			sums.Enqueue(g, parts, c.In[0], rows, width, biasBlock)
			finish.Enqueue(cuda.Each(width), c.Out, c.Aux[0], parts, blocks, width/4)
		}
	})
}
