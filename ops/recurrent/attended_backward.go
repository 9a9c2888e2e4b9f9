package recurrent

import (
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/tensor"
)

// Operands of the way back through the steps, and its auxiliary results.
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
	backQueries = iota // (R*L, H) of Q h, in packed rows
	backKeys
	backValues
	backScore
	backStart
)

// back goes back through the steps: the gradients of what the gates were made of, (R*L, 4H) in packed rows
// [new | reset | update | gate], as those of a GRU.
func (d *attended) back() *op.Op {
	return &op.Op{
		Kind: "attended gru dx", Args: d.args(), Diff: make([]bool, ofPacking+1), InPlace: []int{ofGates},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return in[ofGates].Clone(), op.Need(in[ofStates].Eq(in[ofDY]), "the states and dy must have one shape")
		},
		Aux: func(in []tensor.Shape) []exec.AuxSpec {
			return []exec.AuxSpec{{Shape: in[ofStates]}, {Shape: in[ofKeys]}, {Shape: in[ofValues]},
				{Shape: in[ofScore]}, {Shape: in[ofStart]}}
		},
		Scratch: func(in []tensor.Shape, threads int) int {
			return 4*in[ofStart].TotalSize() + threads*(in[ofStart][1]+d.m)
		},
		FLOPs: func(in []tensor.Shape) int64 {
			rows, h := int64(in[ofStates][0]), int64(in[ofStates][1])
			return rows * (10*h*h + 18*int64(d.m)*h)
		},
		On:   d.onCUDA().Backward(),
		Host: d.backward,
	}
}

// backward is the step of back.
func (d *attended) backward(c *exec.Call) (exec.Step, error) {
	r, h := c.In[ofStart].Dim(0), c.In[ofStart].Dim(1)
	n := r * h
	// by rank
	carry, before, queries, scores, rows := c.Scratch[:n], c.Scratch[n:2*n], c.Scratch[2*n:3*n], c.Scratch[3*n:4*n],
		c.Scratch[4*n:]
	var p packing
	t := 0
	gather := func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			copy(before[i*h:][:h], d.before(&p, i, t, c.In[ofStates].F32, c.In[ofStart].F32, h))
		}
	}
	step := func(worker, lo, hi int) {
		own := rows[worker*(h+d.m):]
		tanh, dp := own[:h], own[h:h+d.m]
		for i := lo; i < hi; i++ {
			at, seq := p.packed(i, t), int(p.order[i])
			row := c.Out.F32[at*4*h:][:4*h]
			if gates := c.In[ofGates].F32[at*4*h:]; &gates[0] != &row[0] {
				copy(row, gates)
			}
			dy := c.In[ofDY].F32[p.place(i, t, false)*h:]
			vector.GRUGrad(carry[i*h:][:h], row[:h], row[h:], row[2*h:], row[3*h:], dy, before[i*h:])
			m := int(c.In[ofMemory].I32[seq])
			weights, dq := c.InAux[ofGates][1].F32[at*d.m:][:m], c.Aux[backQueries].F32[at*h:][:h]
			clear(dq)
			sum := float32(0)
			for k, w := range weights {
				v, dv := c.In[ofValues].F32[(seq*d.m+k)*3*h:][:3*h], c.Aux[backValues].F32[(seq*d.m+k)*3*h:][:3*h]
				dp[k] = vector.Dot(row[h:3*h], v[:2*h]) + vector.Dot(row[:h], v[2*h:])
				sum += w * dp[k]
				vector.Axpy(dv[:2*h], w, row[h:3*h])
				vector.Axpy(dv[2*h:], w, row[:h])
			}
			for k, w := range weights {
				key := (seq*d.m + k) * h
				tanhSum(tanh, c.In[ofKeys].F32[key:], queries[i*h:])
				d.scoreGrad(w*(dp[k]-sum), tanh, c.In[ofScore].F32, scores[i*h:], dq, c.Aux[backKeys].F32[key:])
			}
		}
	}
	query, hidden, back := op.Product(c, false, true), op.Product(c, false, false), op.Product(c, false, false)
	query.N, query.K, query.LDC, query.A.F32, query.A.LD, query.C = h, h, h, before, h, queries
	hidden.N, hidden.K, hidden.LDC, hidden.Beta, hidden.C = h, 3*h, h, 1, carry
	back.N, back.K, back.LDC, back.Beta, back.C = h, h, h, 1, carry
	return func() error {
		p = packingOf(c.In[ofPacking].I32, d.l)
		clear(carry)
		clear(scores)
		clear(c.Aux[backKeys].F32)
		clear(c.Aux[backValues].F32)
		query.B, hidden.B, back.B = op.Matrix(c, ofQuery, 0, h), op.Matrix(c, ofWeightHH, 0, h),
			op.Matrix(c, ofQuery, 0, h)
		for t = d.l - 1; t >= 0; t-- {
			alive := int(p.alive[t])
			if alive == 0 {
				continue
			}
			c.Engine.For(alive, op.RowGrain(h), gather)
			query.M, hidden.M, back.M = alive, alive, alive
			c.Engine.Multiply(query)
			c.Engine.For(alive, op.RowGrain(d.m*h), step)
			hidden.A.F32, hidden.A.LD = c.Out.F32[p.packed(0, t)*4*h+h:], 4*h
			c.Engine.Multiply(hidden)
			back.A.F32, back.A.LD = c.Aux[backQueries].F32[p.packed(0, t)*h:], h
			c.Engine.Multiply(back)
		}
		clear(c.Out.F32[p.tokens()*4*h:])
		clear(c.Aux[backScore].F32)
		vector.SumRows(c.Aux[backScore].F32, scores)
		for i, seq := range p.order {
			copy(c.Aux[backStart].F32[int(seq)*h:][:h], carry[i*h:])
		}
		return nil
	}, nil
}

// scoreGrad adds the gradients of score.tanh, whose own is de, to those of the score, of the query and of the key.
func (d *attended) scoreGrad(de float32, tanh, score, dscore, dquery, dkey []float32) {
	n := len(tanh)
	score, dscore, dquery, dkey = score[:n], dscore[:n], dquery[:n], dkey[:n]
	for j, v := range tanh {
		dscore[j] += de * v
		g := de * score[j] * (1 - v*v)
		dquery[j] += g
		dkey[j] += g
	}
}

// before returns the state of the sequence of rank i before its token t.
func (u *unit) before(p *packing, i, t int, states, start []float32, h int) []float32 {
	if t > 0 {
		return states[p.place(i, t-1, u.reverse)*h:][:h]
	}
	return start[int(p.order[i])*h:][:h]
}

// gradX returns dx (R*L, 3H) for the gradients of what the gates were made of and the packing.
func (d *attended) gradX() *op.Op {
	return &op.Op{
		Kind: "attended gru input", Args: d.args(), Diff: make([]bool, 2),
		Shape: func(in []tensor.Shape) (tensor.Shape, error) { return tensor.Shape{in[0][0], in[0][1] / 4 * 3}, nil },
		On:    d.onCUDA().GradX(),
		Host: func(c *exec.Call) (exec.Step, error) {
			h, r := c.Out.Dim(1)/3, c.Out.Dim(0)/d.l
			var p packing
			body := func(_, lo, hi int) {
				for i := lo; i < hi; i++ {
					for t := range int(p.length[i]) {
						to, row := c.Out.F32[p.place(i, t, false)*3*h:][:3*h], c.In[0].F32[p.packed(i, t)*4*h:]
						copy(to[:2*h], row[h:])
						copy(to[2*h:], row)
					}
					d.clearBeyond(&p, i, c.Out.F32, 3*h)
				}
			}
			return func() error {
				p = packingOf(c.In[1].I32, d.l)
				c.Engine.For(r, op.RowGrain(d.l*h), body)
				return nil
			}, nil
		},
	}
}

// gradQuery returns dQ (H, H) for the node of back, the states, the packing and Start.
func (d *attended) gradQuery() *op.Op {
	return &op.Op{
		Kind: "attended gru query", Args: d.args(), Diff: make([]bool, 4),
		Shape:   func(in []tensor.Shape) (tensor.Shape, error) { return tensor.Shape{in[1][1], in[1][1]}, nil },
		Scratch: func(in []tensor.Shape, _ int) int { return in[1].TotalSize() },
		FLOPs:   func(in []tensor.Shape) int64 { return 2 * int64(in[1].TotalSize()) * int64(in[1][1]) },
		On:      d.onCUDA().GradQuery(),
		Host: func(c *exec.Call) (exec.Step, error) {
			h, r := c.Out.Dim(1), c.In[3].Dim(0)
			var p packing
			gather := func(_, lo, hi int) {
				for i := lo; i < hi; i++ {
					for t := range int(p.length[i]) {
						copy(c.Scratch[p.packed(i, t)*h:][:h], d.before(&p, i, t, c.In[1].F32, c.In[3].F32, h))
					}
				}
			}
			product := op.Product(c, true, false)
			product.M, product.N, product.LDC = h, h, h
			return func() error {
				p = packingOf(c.In[2].I32, d.l)
				c.Engine.For(r, op.RowGrain(d.l*h), gather)
				product.K, product.C = p.tokens(), c.Out.F32
				product.A.F32, product.A.LD = c.InAux[0][backQueries].F32, h
				product.B.F32, product.B.LD = c.Scratch, h
				c.Engine.Multiply(product)
				return nil
			}, nil
		},
	}
}
