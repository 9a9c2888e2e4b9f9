package exec

import (
	"math"

	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"gorgonia.org/gorgonia"
)

// Packs are the packed parts of a graph input that never changes, such as a weight in inference. Products of several
// machines read them, on one goroutine.
type Packs struct{ of map[packedPart]*gemm.Packed }

// packedPart is n rows of the input from one on, for products of few rows alone or for all.
type packedPart struct {
	from, n int
	few     bool
}

// Of returns op(B) of p packed, which is n = p.N rows of the input from row from on; nil where packing saves nothing,
// see kernel.Engine.PackWeights. It packs at the first call. A nil x has nothing.
func (x *Packs) Of(e Engine, p *gemm.Product, from int) *gemm.Packed {
	if x == nil {
		return nil
	}
	many := *p
	many.M, many.A, many.Packed = math.MaxInt32, gemm.Matrix{}, nil // as many rows as there may be
	if b := x.part(e, &many, packedPart{from, p.N, false}); b != nil {
		return b
	}
	few := *p
	few.Packed = nil
	return x.part(e, &few, packedPart{from, p.N, true})
}

func (x *Packs) part(e Engine, p *gemm.Product, of packedPart) *gemm.Packed {
	if b := x.of[of]; b != nil {
		return b
	}
	b := e.PackWeights(p)
	if b == nil {
		return nil
	}
	if x.of == nil {
		x.of = map[packedPart]*gemm.Packed{}
	}
	x.of[of] = b
	return b
}

// Bytes returns the memory of what is packed.
func (x *Packs) Bytes() (n int64) {
	for _, b := range x.of {
		n += int64(b.Bytes())
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
