package recurrent

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/ops/recurrent/internal/oncuda"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Args are R sequences of L places and the parameters of a unit, which are those of PyTorch's
// nn.GRU: rows of the gates reset, update and new, one after the other.
type Args struct {
	X                  *gorgonia.Node // (R*L, I) tokens
	Lengths            *gorgonia.Node // (R) int32, the places that are tokens, the first ones; nil: all L
	WeightIH, WeightHH *gorgonia.Node // (3H, I), (3H, H)
	BiasIH, BiasHH     *gorgonia.Node // (3H)
	Start              *gorgonia.Node // (R, H) states before the first token that is read; nil: 0
	Len                int            // L
	Reverse            bool           // read each sequence from its last token to its first
}

// GRU returns the state after each token (Cho et al. 2014, in the form of PyTorch and cuDNN),
// (R*L, H), at the place of the token in either direction and 0 beyond the length:
//
//	r  = sigmoid(W_ir x + b_ir + W_hr h + b_hr)
//	z  = sigmoid(W_iz x + b_iz + W_hz h + b_hz)
//	n  = tanh(W_in x + b_in + r * (W_hn h + b_hn))
//	h' = (1-z) * n + z * h
//
// A length outside [0, L] fails the run. The gates of all places are kept for the backward pass,
// which works in their memory: 4 R L H values.
func GRU(a Args) *gorgonia.Node {
	u := &unit{l: a.Len, reverse: a.Reverse, start: a.Start != nil}
	for _, n := range []*gorgonia.Node{a.X, a.WeightIH, a.WeightHH, a.BiasIH, a.BiasHH} {
		if n == nil {
			panic(&op.BuildError{Op: "gru",
				Err: fmt.Errorf("an operand is nil: want X, WeightIH, WeightHH, BiasIH and BiasHH")})
		}
	}
	if err := op.Need(len(a.WeightHH.Shape()) == 2, "WeightHH must be a matrix (got %v)",
		a.WeightHH.Shape()); err != nil {
		panic(&op.BuildError{Op: "gru", Err: err})
	}
	u.packing = pack(a.X, a.Lengths, a.Len)
	u.weight = a.WeightHH
	in := []*gorgonia.Node{a.X, a.WeightIH, a.WeightHH, a.BiasIH, a.BiasHH, u.packing,
		layout.Transpose(op.Detach(a.WeightHH))}
	if u.start {
		in = append(in, a.Start)
	}
	return op.Apply(u.states(), op.Apply(u.gates(), in...))
}

// Last returns of the states of GRU the last one of each of R sequences, that after all of its
// tokens: (R, H). That of a sequence without tokens is 0.
func Last(states, lengths *gorgonia.Node, l int, reverse bool) *gorgonia.Node {
	switch {
	case reverse:
		return layout.StridedRows(states, 0, l, states.Shape()[0]/l)
	case lengths == nil:
		return layout.StridedRows(states, l-1, l, states.Shape()[0]/l)
	}
	return nn.GatherRows(states, layout.LastRows(lengths, l), 1)
}

// unit describes the ops of a GRU.
type unit struct {
	l              int
	reverse, start bool
	packing        *gorgonia.Node
	weight         *gorgonia.Node // WeightHH
}

// onCUDA is the unit as its steps for the CUDA device know it.
func (u *unit) onCUDA() oncuda.GRU { return oncuda.GRU{Len: u.l, Reverse: u.reverse, Start: u.start} }

// Operands of the op of the gates.
const (
	inX = iota
	inWeightIH
	inWeightHH // for its gradient: the step reads the transposed one
	inBiasIH
	inBiasHH
	inPacking
	inTransposed
	inStart
)

func (u *unit) args() string {
	return fmt.Sprintf("l=%d reverse=%t start=%t", u.l, u.reverse, u.start)
}

// sizes are those of a unit.
type sizes struct{ r, in, h int }

// sizesOf returns the sizes for the shapes of tokens (R*L, I) and states (R*L, H), or of gates.
func (u *unit) sizes(x, weight tensor.Shape) sizes {
	return sizes{r: x[0] / u.l, in: x[1], h: weight[0] / 3}
}

// gates is the op that runs over the sequences. Its output (R*L, 4H) has the gates of packed
// tokens, a row [new | reset | update | gate] each with gate = W_hn h + b_hn, its auxiliary
// result (R*L, H) the states. With the gates in this order those of the tokens are columns 0 to
// 3H, and those of the states, in PyTorch's order, columns H to 4H.
func (u *unit) gates() *op.Op {
	o := &op.Op{Kind: "gru", Args: u.args(), Diff: []bool{true, true, true, true, true, false, false},
		ReadsHalf: []int{inTransposed}}
	if u.start {
		o.Diff = append(o.Diff, true)
	}
	o.Shape = u.shape
	o.Aux = func(in []tensor.Shape) []exec.AuxSpec {
		return []exec.AuxSpec{{Shape: tensor.Shape{in[inX][0], in[inWeightHH][1]}}}
	}
	o.Scratch = func(in []tensor.Shape, _ int) int {
		s := u.sizes(in[inX], in[inWeightHH])
		return in[inX].TotalSize() + s.r*s.h + 2*s.h
	}
	o.FLOPs = func(in []tensor.Shape) int64 {
		s := u.sizes(in[inX], in[inWeightHH])
		return 6 * int64(in[inX][0]) * int64(s.h) * int64(s.in+s.h)
	}
	o.Host = u.forward
	o.On = u.onCUDA().Forward()
	o.Grad = func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
		grads := gorgonia.Nodes{
			op.Apply(u.gradX(), dy, in[inWeightIH], u.packing),
			op.Apply(u.gradWeightIH(), dy, in[inX], u.packing),
			nil,
			op.Apply(u.gradBias(), dy, u.packing),
			nil,
			nil, nil,
		}
		grads[inBiasHH] = op.Take(grads[inBiasIH], 0, in[inBiasHH].Shape())
		operands := gorgonia.Nodes{dy, op.Apply(u.states(), out), u.packing}
		if u.start {
			operands = append(operands, in[inStart])
			grads = append(grads, op.Take(dy, 0, in[inStart].Shape()))
		}
		grads[inWeightHH] = op.Apply(u.gradWeightHH(), operands...)
		return grads
	}
	return o
}

// shape checks the operands of the gates.
func (u *unit) shape(in []tensor.Shape) (tensor.Shape, error) {
	x, w := in[inX], in[inWeightHH]
	if err := op.All(
		op.Need(u.l > 0, "a sequence has at least one place (got %d)", u.l),
		op.Need(len(x) == 2, "want x (R*L, I) (got %v)", x),
		op.Need(len(w) == 2 && w[0] == 3*w[1], "weight_hh must have shape (3H, H) (got %v)", w),
	); err != nil {
		return nil, err
	}
	h := w[1]
	if err := op.All(
		op.Need(x[0]%u.l == 0, "rows must be a multiple of %d (got %d)", u.l, x[0]),
		op.WantShape(in, inWeightIH, "weight_ih", 3*h, x[1]),
		op.WantVector(in[inBiasIH], "bias_ih", 3*h),
		op.WantVector(in[inBiasHH], "bias_hh", 3*h),
	); err != nil {
		return nil, err
	}
	r := x[0] / u.l
	if err := op.Need(in[inPacking][0] == packingSize(r, u.l), "lengths must have shape (%d)", r); err != nil {
		return nil, err
	}
	if u.start {
		if err := op.WantShape(in, inStart, "start", r, h); err != nil {
			return nil, err
		}
	}
	return tensor.Shape{x[0], 4 * h}, nil
}

// forward is the step of the gates.
func (u *unit) forward(c *exec.Call) (exec.Step, error) {
	s := u.sizes(c.In[inX].Shape, c.In[inWeightHH].Shape)
	r, h := s.r, s.h
	xs, rest := c.Scratch[:c.In[inX].Len()], c.Scratch[c.In[inX].Len():]
	state, bias := rest[:r*h], rest[r*h:]
	var p packing
	gather := func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			u.packRows(&p, i, xs, c.In[inX].F32, s.in)
			u.clearBeyond(&p, i, c.Aux[0].F32, h)
			for t := range int(p.length[i]) {
				copy(c.Out.F32[p.packed(i, t)*4*h+3*h:][:h], c.In[inBiasHH].F32[2*h:])
			}
			if u.start {
				copy(state[i*h:][:h], c.In[inStart].F32[int(p.order[i])*h:])
			} else {
				clear(state[i*h:][:h])
			}
		}
	}
	t := 0
	step := func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			row := c.Out.F32[p.packed(i, t)*4*h:][:4*h]
			vector.GRU(state[i*h:][:h], row[:h], row[h:], row[2*h:], row[3*h:])
			copy(c.Aux[0].F32[p.place(i, t, u.reverse)*h:][:h], state[i*h:])
		}
	}
	input, recurrent := op.Product(c, false, true), op.Product(c, false, false)
	input.LDC, recurrent.LDC = 4*h, 4*h
	input.K, recurrent.K, recurrent.N, recurrent.Beta = s.in, h, 3*h, 1
	return func() error {
		p = packingOf(c.In[inPacking].I32, u.l)
		c.Engine.For(r, op.RowGrain(u.l*h), gather)
		input.M, input.A.F32, input.A.LD = p.tokens(), xs, s.in
		// Both biases of reset and update come with the input, whose product adds one for nothing.
		vector.Add(bias[:2*h], c.In[inBiasIH].F32, c.In[inBiasHH].F32)
		input.N, input.B, input.Bias, input.C = 2*h, op.Matrix(c, inWeightIH, 0, s.in), bias, c.Out.F32[h:]
		c.Engine.Multiply(input)
		input.N, input.B, input.Bias, input.C = h, op.Matrix(c, inWeightIH, 2*h*s.in, s.in), c.In[inBiasIH].F32[2*h:],
			c.Out.F32
		c.Engine.Multiply(input)
		recurrent.B = op.Matrix(c, inTransposed, 0, 3*h)
		for t = 0; t < u.l && p.alive[t] > 0; t++ {
			alive := int(p.alive[t])
			if t > 0 || u.start { // else the states are 0
				recurrent.M, recurrent.A.F32, recurrent.A.LD = alive, state, h
				recurrent.C = c.Out.F32[p.packed(0, t)*4*h+h:]
				c.Engine.Multiply(recurrent)
			}
			c.Engine.For(alive, op.RowGrain(h), step)
		}
		return nil
	}, nil
}

// packRows copies the tokens of the sequence of rank i from x (R*L, n) to packed rows.
func (u *unit) packRows(p *packing, i int, packed, x []float32, n int) {
	for t := range int(p.length[i]) {
		copy(packed[p.packed(i, t)*n:][:n], x[p.place(i, t, u.reverse)*n:])
	}
}

// clearBeyond clears the places of x (R*L, n) beyond the length of the sequence of rank i.
func (u *unit) clearBeyond(p *packing, i int, x []float32, n int) {
	at := int(p.order[i]) * u.l
	clear(x[(at+int(p.length[i]))*n : (at+u.l)*n])
}

// states names the states of the gates' node. Its gradient is that of what the gates were made
// of, with which the gates' own gradient goes on.
func (u *unit) states() *op.Op {
	return &op.Op{
		Kind: "gru states", Args: u.args(), Diff: []bool{true}, Alias: &[2]int{0, 0},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) { return tensor.Shape{in[0][0], in[0][1] / 4}, nil },
		Grad: func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
			operands := gorgonia.Nodes{in[0], out, dy, u.weight, u.packing}
			if u.start {
				operands = append(operands, op.Operand(in[0], inStart))
			}
			return gorgonia.Nodes{op.Apply(u.gradGates(), operands...)}
		},
	}
}
