package exec

import (
	"slices"
	"unsafe"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// HalfReader is an op that can read an operand whose values are bfloat16: Array.BF16
// is then set and F32 nil. Ops whose products round that operand anyway lose nothing.
type HalfReader interface {
	ReadsHalf(operand int) bool
}

// HalfWriter is an op that can write a result as bfloat16: its output (aux < 0) or an
// auxiliary result. In the step Array.BF16 is set and F32 nil if the plan wants it so.
// Other ops must read an auxiliary result that may be bfloat16 through a node that
// names it alone, never through Call.InAux, whose readers the plan does not ask.
type HalfWriter interface {
	WritesHalf(aux int) bool
}

// HalfScratcher is a HalfWriter whose output is made as float32 in working memory before it is
// rounded.
type HalfScratcher interface {
	// HalfScratch returns the number of float32 values that the op works on where its
	// output, or an auxiliary result, is stored as bfloat16, in place of what Scratcher says.
	HalfScratch(in []tensor.Shape, threads int) int
}

// Half is what the step of an op for a device does with bfloat16, besides what HalfReader and HalfWriter say of all its
// steps. Where the op has no step for the device after all, that of the host works on the values as float32.
type Half struct {
	// Reads lists operands that may be bfloat16, Writes results: auxiliary ones, or -1, the output.
	Reads, Writes []int
	// Rounds lists operands whose values the step rounds before it multiplies them, or might as well: operands that
	// HalfReader or Reads names, for which there may be a shadow, see shadow.go.
	Rounds []int
	// Shadows lists results that the step writes twice where it finds Operand.Shadow.
	Shadows []int
}

// HalfDeviceOp is a DeviceOp that does more with bfloat16 than the op on the host.
type HalfDeviceOp interface {
	HalfOn(device string) Half
}

// halfOn returns what the step of an op for the plan's device does with bfloat16 besides.
func (p *plan) halfOn(o gorgonia.Op) Half {
	if h, ok := o.(HalfDeviceOp); ok && p.device != "" {
		return h.HalfOn(p.device)
	}
	return Half{}
}

func (p *plan) readsHalf(o gorgonia.Op, operand int) bool {
	return readsHalf(o, operand) || slices.Contains(p.halfOn(o).Reads, operand)
}

func (p *plan) writesHalf(o gorgonia.Op, aux int) bool {
	return writesHalf(o, aux) || slices.Contains(p.halfOn(o).Writes, aux)
}

// halve stores the results that are read as bfloat16 alone as bfloat16: those whose op
// can write them so and whose readers, also under another name, can all read them so.
// What the caller reads stays float32. A result that is computed again has the type
// that it has the first time, whoever reads which copy.
func (p *plan) halve(external map[int][]float32, threads int) {
	type identity struct {
		node int64
		aux  int // -1: the output
	}
	of := make([]identity, len(p.units))
	full := map[identity]bool{}
	for pos := range p.entries {
		e := &p.entries[pos]
		if e.input || e.alias {
			continue
		}
		for k, r := range e.results() {
			id := identity{e.node.ID(), k - 1}
			of[r.unit] = id
			if e.consts != nil || r.ints || !p.writesHalf(e.node.Op(), k-1) {
				full[id] = true
			}
		}
		for operand, j := range e.in {
			if u := p.entries[j].out.unit; u >= 0 && !p.readsHalf(e.node.Op(), operand) {
				full[of[u]] = true
			}
		}
	}
	for i := range p.outputs {
		if u := p.entries[i].out.unit; u >= 0 {
			full[of[u]] = true
		}
	}
	for u := range external {
		full[of[u]] = true
	}
	for i := range p.units {
		if u := &p.units[i]; !full[of[i]] {
			u.half, u.size = true, halfSize(u.size)
		}
	}
	for pos := range p.entries {
		e := &p.entries[pos]
		if s, ok := e.node.Op().(HalfScratcher); ok && slices.ContainsFunc(e.results(), func(r result) bool {
			return r.unit >= 0 && p.units[r.unit].half
		}) {
			e.scratch = max(e.scratch, s.HalfScratch(p.shapes(e), threads))
			p.scratch = max(p.scratch, e.scratch)
		}
	}
}

// results returns the output and the auxiliary results.
func (e *entry) results() []result { return append([]result{e.out}, e.aux...) }

// halfSize returns how many float32 elements take the room of n bfloat16 values.
func halfSize(n int) int { return (n + 1) / 2 }

// asHalves returns the memory of f as n bfloat16 values.
func asHalves(f []float32, n int) []uint16 {
	return unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(f))), 2*len(f))[:n:n]
}

func readsHalf(o gorgonia.Op, operand int) bool {
	r, ok := o.(HalfReader)
	return ok && r.ReadsHalf(operand)
}

func writesHalf(o gorgonia.Op, aux int) bool {
	w, ok := o.(HalfWriter)
	return ok && w.WritesHalf(aux)
}
