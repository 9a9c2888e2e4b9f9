package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

var attendedSource = cuda.NewSource(files, "attended gru", "gru.cu", "attended.cu")

// Attended is a unit that looks at a memory of so many places.
type Attended struct {
	GRU
	Memory int
}

// Operands of the op of the gates, of that of their gradients, and auxiliary results of the latter, as the ops have
// them.
const (
	atX = iota
	atKeys
	atValues
	atMemory
	atQuery
	atScore
	atWeightHH
	atBiasHH
	atStart
	atPacking
)

const (
	ofGates = iota
	ofStates
	ofDY
	ofKeys
	ofValues
	ofMemory
	ofQuery
	ofScore
	ofWeightHH
	ofStart
	ofPacking
)

const (
	backQueries = iota
	backKeys
	backValues
	backScore
	backStart
)

// Forward is the step of the gates.
func (d Attended) Forward() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		r, h := c.In[atStart].Shape[0], c.In[atQuery].Shape[0]
		x := d.newWork(c, r, h, cuda.Part{In: atWeightHH, Rows: 3 * h, Cols: h},
			cuda.Part{In: atQuery, Rows: h, Cols: h})
		x.source = attendedSource
		half, state, hidden, queries := x.rows(r, h), x.floats(r*h), x.floats(3*r*h), x.floats(r*h)
		x.scratch()
		half = x.matrix(half)
		pack, begin, attend, gates := x.kernel("pack_gates"), x.kernel("begin_states"), x.kernel("attend"),
			x.kernel("gates")
		return func() {
			x.place()
			packing := c.In[atPacking]
			pack.Enqueue(x.places(), c.Out, c.In[atX], packing, r, d.Len, h)
			begin.Enqueue(x.places(), x.at(state), half.At, c.Aux[0], c.In[atStart], packing, r, d.Len, h,
				half.LD)
			for t := range d.Len {
				cuda.Multiply(c, cuda.Product{TransB: true, M: r, N: 3 * h, K: h}, half, x.placed[0],
					cuda.FloatsAt(x.at(hidden), 3*h), nil)
				cuda.Multiply(c, cuda.Product{TransB: true, M: r, N: h, K: h}, half, x.placed[1],
					cuda.FloatsAt(x.at(queries),
						h), nil)
				attend.Enqueue(d.ranks(r), c.Out, c.Aux[1], x.at(queries), c.In[atKeys], c.In[atValues], c.In[atScore],
					c.In[atMemory], packing,
					r, d.Len, h, d.Memory, t)
				gates.Enqueue(x.values(), c.Out, x.at(hidden), nil, c.In[atBiasHH], x.at(state), half.At, c.Aux[0],
					packing,
					r, d.Len, h, half.LD, t, false)
			}
		}
	})
}

// ranks has a block for each sequence, with memory for a weight of each place of the memory.
func (d Attended) ranks(r int) cuda.Grid { return cuda.Grid{X: r, Threads: 256, Shared: 4 * d.Memory} }

// Backward is the step of back.
func (d Attended) Backward() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		r, h := c.In[ofStart].Shape[0], c.In[ofStart].Shape[1]
		x := d.newWork(c, r, h, cuda.Part{In: ofWeightHH, Rows: 3 * h, Cols: h},
			cuda.Part{In: ofQuery, Rows: h, Cols: h})
		x.source = attendedSource
		dhidden, half, carry, queries, scores := x.rows(r, 3*h), x.rows(r, h), x.floats(r*h), x.floats(r*h),
			x.floats(r*h)
		x.scratch()
		dhidden, half = x.matrix(dhidden), x.matrix(half)
		begin, before, gates, attend := x.kernel("begin_back"), x.kernel("before_step"), x.kernel("gates_back"),
			x.kernel("attend_back")
		sum, unrank := x.kernel("sum_blocks"), x.kernel("unrank")
		// back goes through step t.
		back := func(t int) {
			packing, start := c.In[ofPacking], c.In[ofStart]
			before.Enqueue(cuda.Grid{X: r, Threads: 256}, half.At, c.In[ofStates], start, packing, r, d.Len, h, half.LD,
				t)
			cuda.Multiply(c, cuda.Product{TransB: true, M: r, N: h, K: h}, half, x.placed[1],
				cuda.FloatsAt(x.at(queries), h),
				nil)
			gates.Enqueue(x.values(), c.Out, c.In[ofGates], dhidden.At, x.at(carry), c.In[ofStates], start, c.In[ofDY],
				packing,
				r, d.Len, h, dhidden.LD, t, false)
			attend.Enqueue(d.ranks(r), c.Aux[backQueries], half.At, c.Aux[backKeys], c.Aux[backValues], x.at(scores),
				c.Out, c.InAux[ofGates][1],
				x.at(queries), c.In[ofKeys], c.In[ofValues], c.In[ofScore], c.In[ofMemory], packing, r, d.Len, h,
				d.Memory, half.LD,
				t)
			cuda.Multiply(c, cuda.Product{M: r, N: h, K: 3 * h, Beta: 1}, dhidden, x.placed[0],
				cuda.FloatsAt(x.at(carry), h),
				nil)
			cuda.Multiply(c, cuda.Product{M: r, N: h, K: h, Beta: 1}, half, x.placed[1], cuda.FloatsAt(x.at(carry), h),
				nil)
		}
		return func() {
			x.place()
			for _, k := range []int{backQueries, backKeys, backValues} {
				cuda.Zero(c.Aux[k])
			}
			packing := c.In[ofPacking]
			for _, sums := range []cuda.Pointer{carry, scores} {
				begin.Enqueue(x.places(), c.Out, x.at(sums), packing, r, d.Len, h)
			}
			for t := d.Len - 1; t >= 0; t-- {
				back(t)
			}
			sum.Enqueue(cuda.Each(h), c.Aux[backScore], x.at(scores), r, h, r)
			unrank.Enqueue(cuda.Grid{X: r, Threads: 256}, c.Aux[backStart], x.at(carry), packing, r, d.Len, h)
		}
	})
}

// GradX is the step of gradX.
func (d Attended) GradX() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		r, h := c.Out.Shape[0]/d.Len, c.Out.Shape[1]/3
		k := cuda.Load(c, attendedSource, "unpack_gates")
		return func() { k.Enqueue(cuda.Grid{X: r * d.Len, Threads: 256}, c.Out, c.In[0], c.In[1], r, d.Len, h) }
	})
}

// GradQuery is the step of gradQuery.
func (d Attended) GradQuery() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		r, h := c.In[3].Shape[0], c.Out.Shape[1]
		x := d.newWork(c, r, h)
		x.source = attendedSource
		dqueries, before := x.rows(r*d.Len, h), x.rows(r*d.Len, h)
		x.scratch()
		dqueries, before = x.matrix(dqueries), x.matrix(before)
		round, pack := x.kernel("round_rows"), x.kernel("pack_before")
		return func() {
			round.Enqueue(x.places(), dqueries.At, c.InAux[0][backQueries], h, dqueries.LD)
			pack.Enqueue(x.places(), before.At, c.In[1], c.In[3], c.In[2], r, d.Len, h, before.LD, false)
			cuda.Multiply(c, cuda.Product{TransA: true, M: h, N: h, K: r * d.Len}, dqueries, before,
				cuda.MatrixOf(c.Out, 0,
					h), nil)
		}
	})
}
