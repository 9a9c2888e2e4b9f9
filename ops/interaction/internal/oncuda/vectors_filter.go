package oncuda

import "github.com/geoalign/geoalign/internal/cuda"

// filterWork is the memory of the filtration of the nodes of each pair, in the backward pass.
type filterWork struct {
	ends   cuda.Matrix  // (P, S) f
	dgates cuda.Pointer // (R) of the logits of gates
}

func (b *vectorsWork) layFilter(pairs, nodes int) {
	if b.backward {
		b.filter = filterWork{ends: b.floatRows(pairs, b.size), dgates: b.floats(nodes)}
	}
}

// filterFloats is the shared memory of the kernels.
func (b *vectorsWork) filterFloats() int { return 1 + b.Sides[textSide].Len + b.size }

// filterLayers are the parameters of the kernels of the gate and of the score.
func (b *vectorsWork) filterLayers() []any {
	return append(b.layer(b.how.Gate), b.layer(b.how.Score)...)
}

// layer are the weight and the bias of a layer, nil without one.
func (b *vectorsWork) layer(l Layer) []any {
	if l.Bias == 0 {
		return []any{b.c.In[l.Weight], nil}
	}
	return []any{b.c.In[l.Weight], b.c.In[l.Bias]}
}

// filterForward returns what scores pairs in the forward pass; the backward pass makes all by itself.
func (b *vectorsWork) filterForward() func() {
	if b.backward {
		return func() {}
	}
	filter := b.kernel("filter")
	return func() {
		b.launch(filter, 256, b.filterFloats(), append([]any{b.c.Out, b.at(b.nodes.values.At)}, b.filterLayers()...),
			[]any{b.size})
	}
}

// filterBackward returns what makes the gradients of nodes from those of scores, and adds those of layers.
func (b *vectorsWork) filterBackward() func() {
	x, f := b.how, &b.filter
	slopes := b.kernel("filter_slopes")
	return func() {
		pairs, _, nodes, _ := b.sizes()
		before := []any{b.at(b.dnodes.values.At), b.at(f.dgates), b.at(b.dlogits), b.at(f.ends.At),
			b.at(b.nodes.values.At)}
		before = append(append(before, b.filterLayers()...), b.c.In[x.Operands])
		b.launch(slopes, 256, b.filterFloats(), before, []any{b.size})
		b.addWeighted(x.Score, b.at(b.dlogits), b.placed(f.ends), pairs)
		b.addWeighted(x.Gate, b.at(f.dgates), b.placed(b.nodes.values), nodes)
	}
}
