package recurrent

import (
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/tensor"
)

// Operands of the gradient of the gates.
const (
	gradGates = iota
	gradStates
	gradDY
	gradWeight
	gradPacking
	gradStart
)

// gradGates goes back through the steps: the gradients of what the gates were made of, (R*L, 4H)
// in packed rows [new | reset | update | gate], for the gates, the states, the gradient of the
// states, WeightHH, the packing and perhaps Start. Its auxiliary result with Start is the
// gradient of that.
func (u *unit) gradGates() *op.Op {
	o := &op.Op{Kind: "gru dx", Args: u.args(), Diff: make([]bool, 5), InPlace: []int{gradGates}}
	if u.start {
		o.Diff = append(o.Diff, false)
		o.Aux = func(in []tensor.Shape) []exec.AuxSpec { return []exec.AuxSpec{{Shape: in[gradStart]}} }
	}
	o.Shape = func(in []tensor.Shape) (tensor.Shape, error) {
		return in[gradGates].Clone(), op.Need(in[gradStates].Eq(in[gradDY]), "the states and dy must have one shape")
	}
	o.Scratch = func(in []tensor.Shape, _ int) int {
		s := u.sizes(in[gradStates], in[gradWeight])
		return (s.r + 1) * s.h
	}
	o.FLOPs = func(in []tensor.Shape) int64 { return 2 * int64(in[gradDY][0]) * int64(in[gradWeight].TotalSize()) }
	o.Host = u.backward
	o.On = u.onCUDA().Backward()
	return o
}

// backward is the step of gradGates.
func (u *unit) backward(c *exec.Call) (exec.Step, error) {
	s := u.sizes(c.In[gradStates].Shape, c.In[gradWeight].Shape)
	r, h := s.r, s.h
	carry, zeros := c.Scratch[:r*h], c.Scratch[r*h:] // of the states of sequences by rank
	var p packing
	t := 0
	step := func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			at := p.packed(i, t) * 4 * h
			row := c.Out.F32[at:][:4*h]
			if gates := c.In[gradGates].F32[at:]; &gates[0] != &row[0] {
				copy(row, gates)
			}
			before := zeros
			switch {
			case t > 0:
				before = c.In[gradStates].F32[p.place(i, t-1, u.reverse)*h:]
			case u.start:
				before = c.In[gradStart].F32[int(p.order[i])*h:]
			}
			dy := c.In[gradDY].F32[p.place(i, t, u.reverse)*h:]
			vector.GRUGrad(carry[i*h:][:h], row[:h], row[h:], row[2*h:], row[3*h:], dy, before)
		}
	}
	recurrent := op.Product(c, false, false)
	recurrent.N, recurrent.K, recurrent.LDC, recurrent.Beta = h, 3*h, h, 1
	return func() error {
		p = packingOf(c.In[gradPacking].I32, u.l)
		clear(c.Scratch)
		for t = u.l - 1; t >= 0; t-- {
			alive := int(p.alive[t])
			c.Engine.For(alive, op.RowGrain(h), step)
			if alive > 0 && (t > 0 || u.start) {
				recurrent.M, recurrent.C = alive, carry
				recurrent.A.F32, recurrent.A.LD = c.Out.F32[p.packed(0, t)*4*h+h:], 4*h
				recurrent.B = op.Matrix(c, gradWeight, 0, h)
				c.Engine.Multiply(recurrent)
			}
		}
		clear(c.Out.F32[p.tokens()*4*h:])
		if u.start {
			for i, seq := range p.order {
				copy(c.Aux[0].F32[int(seq)*h:][:h], carry[i*h:])
			}
		}
		return nil
	}, nil
}
