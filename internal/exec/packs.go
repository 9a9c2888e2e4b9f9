package exec

import (
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"gorgonia.org/gorgonia"
)

// Packs are the packed parts of a graph input that never changes, such as a weight in inference. Products of several
// machines read them, on one goroutine.
type Packs struct {
	of map[packedPart]*gemm.Packed // nil: packing saves nothing
}

// packedPart is n rows of the input from one on.
type packedPart struct{ from, n int }

// Of returns op(B) of p packed, which is n = p.N rows of the input from row from on; nil where packing saves nothing,
// see kernel.Engine.PackWeights. It packs at the first call. A nil x has nothing.
func (x *Packs) Of(e Engine, p *gemm.Product, from int) *gemm.Packed {
	if x == nil {
		return nil
	}
	part := packedPart{from, p.N}
	if b, asked := x.of[part]; asked {
		return b
	}
	of := *p
	of.A, of.Packed = gemm.Matrix{}, nil // for any rows
	if x.of == nil {
		x.of = map[packedPart]*gemm.Packed{}
	}
	x.of[part] = e.PackWeights(&of)
	return x.of[part]
}

// Bytes returns the memory of what is packed.
func (x *Packs) Bytes() (n int64) {
	for _, b := range x.of {
		if b != nil {
			n += int64(b.Bytes())
		}
	}
	return n
}

// SetPacks says that a graph input never changes, and gives what reads it a place for packed parts of it. Like SetInput
// it reaches all uses and ignores inputs that no output depends on.
func (m *Machine) SetPacks(n *gorgonia.Node, x *Packs) {
	slot := m.inputs[n.ID()]
	if slot == nil {
		return
	}
	slot.array.Packs = x
	for _, u := range slot.uses {
		u.call.In[u.operand].Packs = x
	}
}
