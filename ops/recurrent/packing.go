package recurrent

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/ops/recurrent/internal/oncuda"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// packing says where tokens lie in packed order. Its parts are views of one int32 vector.
type packing struct {
	order  []int32 // (R) sequences, the longest first, as they come among equal ones
	length []int32 // (R) their lengths
	alive  []int32 // (L+1) sequences with more than t tokens, those of step t
	from   []int32 // (L+1) first packed row of step t; the last one is T
	l      int
}

// packingSize returns the values of a packing.
func packingSize(r, l int) int { return 2*r + 2*(l+1) }

// packingOf returns the parts of v.
func packingOf(v []int32, l int) packing {
	r := (len(v) - 2*(l+1)) / 2
	return packing{order: v[:r], length: v[r : 2*r], alive: v[2*r:][:l+1], from: v[2*r+l+1:], l: l}
}

// tokens returns T.
func (p packing) tokens() int { return int(p.from[p.l]) }

// packed is the packed row of token t of the sequence of rank i.
func (p packing) packed(i, t int) int { return int(p.from[t]) + i }

// place is the place of the token that the sequence of rank i reads in step t, as a row of all
// R*L places.
func (p packing) place(i, t int, reverse bool) int {
	if reverse {
		t = int(p.length[i]) - 1 - t
	}
	return int(p.order[i])*p.l + t
}

// pack returns the packing of lengths (R) int32 of sequences of l places as a node, or with
// lengths nil that of full sequences x (R*l, I).
func pack(x, lengths *gorgonia.Node, l int) *gorgonia.Node {
	in, full := lengths, lengths == nil
	if full {
		in = x
	}
	rows := func(s tensor.Shape) int {
		if full {
			return s[0] / l
		}
		return s[0]
	}
	o := op.IntsOp("pack", 1, func(in []tensor.Shape) (tensor.Shape, error) {
		if err := op.All(
			op.Need(l > 0, "a sequence has at least one place (got %d)", l),
			op.Need(full || len(in[0]) == 1, "lengths must be a vector (got %v)", in[0]),
			op.Need(!full || len(in[0]) == 2, "want x (R*L, I) (got %v)", in[0]),
		); err != nil {
			return nil, err
		}
		return tensor.Shape{packingSize(rows(in[0]), l)}, nil
	}, func(c *exec.Call) error {
		p := packingOf(c.Out.I32, l)
		if full {
			return p.fill(func(int) int { return l })
		}
		return p.fill(func(r int) int { return int(c.In[0].I32[r]) })
	})
	o.On = oncuda.Pack(l, full)
	o.Args = fmt.Sprintf("l=%d full=%t", l, full)
	return op.Apply(o, in)
}

// fill sorts sequences by counting. A length outside [0, l] is an error.
func (p packing) fill(length func(r int) int) error {
	clear(p.alive)
	for r := range p.order {
		n := length(r)
		if n < 0 || n > p.l {
			return fmt.Errorf("ops: gru: lengths[%d] is %d: want [0, %d]", r, n, p.l)
		}
		for t := range n {
			p.alive[t]++
		}
	}
	// Sequences of n tokens come after those with more.
	next := p.from
	copy(next, p.alive)
	for r := range p.order {
		n := length(r)
		p.order[next[n]], p.length[next[n]] = int32(r), int32(n)
		next[n]++
	}
	at := int32(0)
	for t, n := range p.alive {
		p.from[t] = at
		at += n
	}
	return nil
}
