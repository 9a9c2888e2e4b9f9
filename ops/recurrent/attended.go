package recurrent

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/ops/recurrent/internal/oncuda"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// AttendedArgs are R sequences of L places, each with a memory of M places that a unit attends to.
type AttendedArgs struct {
	X             *gorgonia.Node // (R*L, 3H) what tokens give to the gates, W_i x + b_i: reset, update and new
	Lengths       *gorgonia.Node // (R) int32, the places that are tokens, the first ones; nil: all L
	Keys          *gorgonia.Node // (R*M, H) of the memory, K
	Values        *gorgonia.Node // (R*M, 3H) what the memory gives to the gates, V
	MemoryLengths *gorgonia.Node // (R) int32, the places of the memory that count, the first ones
	Query         *gorgonia.Node // (H, H), Q
	Score         *gorgonia.Node // (H), s
	WeightHH      *gorgonia.Node // (3H, H)
	BiasHH        *gorgonia.Node // (3H)
	Start         *gorgonia.Node // (R, H) states before the first token
	Len, Memory   int            // L and M
}

// Attended returns the states (R*L, H) of a gated recurrent unit that looks at a memory before each token (additive
// attention, Bahdanau et al. 2015, appendix A.1.2), 0 beyond a length:
//
//	p  = softmax_m(s . tanh(K_m + Q h))
//	i  = x + sum_m p_m V_m
//	h' = the state of GRU for the gates i + W_h h + b_h
//
// An empty memory gives nothing. The gates and the weights p of all places are kept for the backward pass, R L (4H + M)
// values; the tanh of each place and each of the memory is made again.
func Attended(a AttendedArgs) *gorgonia.Node {
	in := gorgonia.Nodes{a.X, a.Keys, a.Values, a.MemoryLengths, a.Query, a.Score, a.WeightHH, a.BiasHH, a.Start}
	for _, n := range in {
		if n == nil {
			panic(&op.BuildError{Op: "attended gru", Err: fmt.Errorf("an operand is nil: all but Lengths are needed")})
		}
	}
	d := &attended{unit: &unit{l: a.Len, start: true}, m: a.Memory}
	d.packing = pack(a.X, a.Lengths, a.Len)
	d.in = append(in, d.packing)
	return op.Apply(d.states(), op.Apply(d.gates(), d.in...))
}

// attended describes the ops of a unit with a memory.
type attended struct {
	*unit
	m  int
	in gorgonia.Nodes // operands of the gates
}

// onCUDA is the unit as its steps for the CUDA device know it.
func (d *attended) onCUDA() oncuda.Attended {
	return oncuda.Attended{GRU: d.unit.onCUDA(), Memory: d.m}
}

// Operands of the op of the gates.
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

func (d *attended) args() string { return fmt.Sprintf("l=%d m=%d", d.l, d.m) }

// shape checks the operands of the gates.
func (d *attended) shape(in []tensor.Shape) (tensor.Shape, error) {
	x, q := in[atX], in[atQuery]
	if err := op.All(
		op.Need(d.l > 0 && d.m > 0, "a sequence and its memory have at least one place (got %d and %d)", d.l, d.m),
		op.Need(len(x) == 2, "want x (R*L, 3H) (got %v)", x),
		op.Need(len(q) == 2 && q[0] == q[1], "query must have shape (H, H) (got %v)", q),
	); err != nil {
		return nil, err
	}
	if err := op.Need(x[0]%d.l == 0, "rows must be a multiple of %d (got %d)", d.l, x[0]); err != nil {
		return nil, err
	}
	r, h := x[0]/d.l, q[0]
	return tensor.Shape{x[0], 4 * h}, op.All(
		op.WantShape(in, atX, "x", x[0], 3*h),
		op.WantShape(in, atKeys, "keys", r*d.m, h),
		op.WantShape(in, atValues, "values", r*d.m, 3*h),
		op.WantVector(in[atMemory], "memory lengths", r),
		op.WantVector(in[atScore], "score", h),
		op.WantShape(in, atWeightHH, "weight_hh", 3*h, h),
		op.WantVector(in[atBiasHH], "bias_hh", 3*h),
		op.WantShape(in, atStart, "start", r, h),
		op.Need(in[atPacking][0] == packingSize(r, d.l), "lengths must have shape (%d)", r),
	)
}

// gates is the op that runs over the sequences. Its output (R*L, 4H) has the gates of packed tokens, as that of a GRU,
// its auxiliary results the states (R*L, H) and the weights p of packed tokens (R*L, M).
func (d *attended) gates() *op.Op {
	return &op.Op{
		Kind: "attended gru", Args: d.args(),
		Diff:  []bool{true, true, true, false, true, true, true, true, true, false},
		Shape: d.shape,
		Aux: func(in []tensor.Shape) []exec.AuxSpec {
			return []exec.AuxSpec{{Shape: tensor.Shape{in[atX][0], in[atQuery][0]}},
				{Shape: tensor.Shape{in[atX][0], d.m}}}
		},
		Scratch: func(in []tensor.Shape, threads int) int { return (2*in[atStart][0] + threads) * in[atQuery][0] },
		FLOPs: func(in []tensor.Shape) int64 {
			rows, h := int64(in[atX][0]), int64(in[atQuery][0])
			return rows * (8*h*h + 9*int64(d.m)*h)
		},
		On:   d.onCUDA().Forward(),
		Host: d.forward,
		Grad: func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
			grads := make(gorgonia.Nodes, len(in))
			states, packing, start := op.Apply(d.states(), out), in[atPacking], in[atStart]
			take := func(operand, aux int) { grads[operand] = op.Take(dy, aux, in[operand].Shape()) }
			grads[atX] = op.Apply(d.gradX(), dy, packing)
			take(atKeys, backKeys)
			take(atValues, backValues)
			take(atScore, backScore)
			take(atStart, backStart)
			grads[atQuery] = op.Apply(d.gradQuery(), dy, states, packing, start)
			grads[atWeightHH] = op.Apply(d.gradWeightHH(), dy, states, packing, start)
			grads[atBiasHH] = op.Take(op.Apply(d.gradBias(), dy, packing), 0, in[atBiasHH].Shape())
			return grads
		},
	}
}

// forward is the step of the gates.
func (d *attended) forward(c *exec.Call) (exec.Step, error) {
	r, h := c.In[atStart].Dim(0), c.In[atQuery].Dim(0)
	state, queries, rows := c.Scratch[:r*h], c.Scratch[r*h:2*r*h], c.Scratch[2*r*h:]
	var p packing
	gather := func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			d.clearBeyond(&p, i, c.Aux[0].F32, h)
			copy(state[i*h:][:h], c.In[atStart].F32[int(p.order[i])*h:])
			for t := range int(p.length[i]) {
				x, row, bias := c.In[atX].F32[p.place(i, t, false)*3*h:], c.Out.F32[p.packed(i, t)*4*h:],
					c.In[atBiasHH].F32
				copy(row[:h], x[2*h:])
				vector.Add(row[h:3*h], x[:2*h], bias[:2*h])
				copy(row[3*h:4*h], bias[2*h:])
			}
		}
	}
	t := 0
	step := func(worker, lo, hi int) {
		values, tanh := c.In[atValues].F32, rows[worker*h:][:h]
		for i := lo; i < hi; i++ {
			at := p.packed(i, t)
			row, weights := c.Out.F32[at*4*h:][:4*h], c.Aux[1].F32[at*d.m:][:d.m]
			seq := int(p.order[i])
			n := int(c.In[atMemory].I32[seq])
			for m := range n {
				tanhSum(tanh, c.In[atKeys].F32[(seq*d.m+m)*h:], queries[i*h:])
				weights[m] = vector.Dot(tanh, c.In[atScore].F32)
			}
			if n > 0 {
				vector.Softmax(weights[:n], weights[:n])
			}
			for m := range n {
				v := values[(seq*d.m+m)*3*h:]
				vector.Axpy(row[h:3*h], weights[m], v[:2*h])
				vector.Axpy(row[:h], weights[m], v[2*h:3*h])
			}
			vector.GRU(state[i*h:][:h], row[:h], row[h:], row[2*h:], row[3*h:])
			copy(c.Aux[0].F32[p.place(i, t, false)*h:][:h], state[i*h:])
		}
	}
	hidden, query := op.Product(c, false, true), op.Product(c, false, true)
	hidden.N, hidden.K, hidden.LDC, hidden.Beta, hidden.A.F32, hidden.A.LD = 3*h, h, 4*h, 1, state, h
	query.N, query.K, query.LDC, query.A.F32, query.A.LD, query.C = h, h, h, state, h, queries
	return func() error {
		if err := d.checkMemory(c.In[atMemory].I32); err != nil {
			return err
		}
		p = packingOf(c.In[atPacking].I32, d.l)
		c.Engine.For(r, op.RowGrain(d.l*h), gather)
		hidden.B, query.B = op.Matrix(c, atWeightHH, 0, h), op.Matrix(c, atQuery, 0, h)
		for t = 0; t < d.l && p.alive[t] > 0; t++ {
			alive := int(p.alive[t])
			hidden.M, query.M, hidden.C = alive, alive, c.Out.F32[p.packed(0, t)*4*h+h:]
			c.Engine.Multiply(hidden)
			c.Engine.Multiply(query)
			c.Engine.For(alive, op.RowGrain(d.m*h), step)
		}
		return nil
	}, nil
}

// checkMemory refuses lengths outside [0, M].
func (d *attended) checkMemory(lengths []int32) error {
	for i, n := range lengths {
		if n < 0 || int(n) > d.m {
			return fmt.Errorf("ops: attended gru: memory lengths[%d] is %d: want [0, %d]", i, n, d.m)
		}
	}
	return nil
}

// tanhSum sets dst to tanh(x + y), by 1 - 2/(exp(2(x+y)) + 1), whose error is below 2e-7.
func tanhSum(dst, x, y []float32) {
	n := len(dst)
	vector.Axpby(dst, 2, x[:n], 2, y[:n])
	vector.Exp(dst, dst)
	for j, e := range dst {
		dst[j] = 1 - 2/(e+1)
	}
}

// states names the states of the gates' node, as those of a GRU do.
func (d *attended) states() *op.Op {
	return &op.Op{
		Kind: "attended gru states", Args: d.args(), Diff: []bool{true}, Alias: &[2]int{0, 0},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) { return tensor.Shape{in[0][0], in[0][1] / 4}, nil },
		Grad: func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
			operands := gorgonia.Nodes{in[0], out, dy}
			for _, i := range []int{atKeys, atValues, atMemory, atQuery, atScore, atWeightHH, atStart, atPacking} {
				operands = append(operands, d.in[i])
			}
			return gorgonia.Nodes{op.Apply(d.back(), operands...)}
		},
	}
}
