package interaction

import "github.com/geoalign/geoalign/internal/kernel/vector"

// unite sets the nodes of pairs, what the layers have made of words and wholes at unit length.
func (b *vectorsBlock) unite(_, lo, hi int) {
	for i := lo; i < hi; i++ {
		p := b.pair(i)
		b.unit(p.node, b.mapped[wholePart][i*b.size:])
		for r := range p.words {
			b.unit(p.node+1+r, b.mapped[wordPart][(p.word+r)*b.size:])
		}
	}
}

// unit sets a node.
func (b *vectorsBlock) unit(node int, row []float32) {
	row = row[:b.size]
	b.lengths[node] = length(row)
	vector.Scale(b.nodes[node*b.size:][:b.size], 1/(b.lengths[node]+vectorsEps), row)
}

// uniteSlopes sets the gradients of what unite reads.
func (b *vectorsBlock) uniteSlopes(_, lo, hi int) {
	for i := lo; i < hi; i++ {
		p := b.pair(i)
		b.unitSlopes(p.node, b.mapped[wholePart][i*b.size:])
		for r := range p.words {
			b.unitSlopes(p.node+1+r, b.mapped[wordPart][(p.word+r)*b.size:])
		}
	}
}

func (b *vectorsBlock) unitSlopes(node int, to []float32) {
	at := node * b.size
	unitGrad(to[:b.size], b.nodes[at:][:b.size], b.dnodes[at:][:b.size], b.lengths[node])
}

// unitGrad sets dz for n = z/(l + eps), where l = |z|, and dn.
func unitGrad(dz, n, dn []float32, l float32) {
	inverse, along := 1/(l+vectorsEps), float32(0)
	if l > 0 {
		along = -vector.Dot(n, dn) / l
	}
	vector.Axpby(dz, inverse, dn, along, n)
}
