package interaction

import "github.com/geoalign/geoalign/internal/kernel/vector"

// vectorsFilter is the memory of the filtration of the nodes of each pair.
type vectorsFilter struct {
	gates   []float32 // (R) a
	sums    []float32 // (P) of the gates
	lengths []float32 // (P) of f before unit
	dgates  []float32 // (R) gradients of the logits
}

func (b *vectorsBlock) layFilter(m *carve) {
	f := &b.filter
	f.gates, f.sums, f.lengths = m.take(b.capacity), m.take(b.capacity), m.take(b.capacity)
	if b.back {
		f.dgates = m.take(b.capacity)
	}
}

// gates makes the gates of all nodes. The published model has a batch norm of the logits here.
func (b *vectorsBlock) gates(nodes int) {
	gates := b.filter.gates[:nodes]
	b.apply(b.gate, nodes, b.nodes, gates)
	for i, v := range gates {
		gates[i] = sigmoid(v)
	}
}

// endFilter adds the nodes of each pair up under their gates.
func (b *vectorsBlock) endFilter(_, lo, hi int) {
	f := &b.filter
	for i := lo; i < hi; i++ {
		gates, nodes := b.filtered(i, b.nodes)
		f.sums[i] = vector.Sum(gates) + vectorsEps
		end := b.ends[i*b.size:][:b.size]
		clear(end)
		for r, a := range gates {
			vector.Axpy(end, a/f.sums[i], nodes[r*b.size:][:b.size])
		}
		f.lengths[i] = length(end)
		vector.Scale(end, 1/(f.lengths[i]+vectorsEps), end)
	}
}

// filtered returns the gates of pair i and the values of its nodes.
func (b *vectorsBlock) filtered(i int, of []float32) (gates, nodes []float32) {
	p := b.pair(i)
	return b.filter.gates[p.node:][:1+p.words], of[p.node*b.size:][:(1+p.words)*b.size]
}

// endFilterSlopes sets the gradients of nodes through the sum, and of the logits of their gates.
func (b *vectorsBlock) endFilterSlopes(_, lo, hi int) {
	f, size := &b.filter, b.size
	for i := lo; i < hi; i++ {
		gates, nodes := b.filtered(i, b.nodes)
		_, dnodes := b.filtered(i, b.dnodes)
		dgates := f.dgates[b.pair(i).node:][:len(gates)]
		d := b.dends[i*size:][:size]
		unitGrad(d, b.ends[i*size:][:size], d, f.lengths[i])
		for r, a := range gates {
			dgates[r] = vector.Dot(d, nodes[r*size:][:size])
			vector.Scale(dnodes[r*size:][:size], a/f.sums[i], d)
		}
		mean := vector.Dot(gates, dgates) / f.sums[i]
		for r, a := range gates {
			dgates[r] = (dgates[r] - mean) / f.sums[i] * a * (1 - a)
		}
	}
}

// gateSlopes adds the gradients of the gate's layer, and of nodes through it.
func (b *vectorsBlock) gateSlopes(nodes int) {
	b.applySlopes(b.gate, nodes, b.nodes, b.filter.dgates, b.dnodes, 1)
}
