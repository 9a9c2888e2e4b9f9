package oncuda

import "github.com/geoalign/geoalign/internal/cuda"

// graphWork is the memory of the reasoning over the graph of the nodes of each pair. Of the last step only the first
// nodes of pairs are made, which alone the score reads.
type graphWork struct {
	steps []graphStep
	// Gradients, of the step that is worked on.
	dmixed       cuda.Matrix  // (R, S)
	dquery, dkey cuda.Matrix  // (R, S) that products read; that is what the gradients of their biases are sums of
	dedges       cuda.Pointer // (P, 1+L, 1+L)
}

// graphStep is what a step makes of its nodes.
type graphStep struct {
	nodes      roundedRows  // (R, S)
	query, key cuda.Matrix  // (R, S)
	edges      cuda.Pointer // (P, 1+L, 1+L)
	mixed      cuda.Matrix  // (R, S) edges times nodes, that products read
	out        roundedRows  // (R, S)
}

// layGraph asks for memory for so many nodes. The forward pass keeps nothing of a step but its results.
func (b *vectorsWork) layGraph(nodes int) {
	edges := nodes * (1 + b.Sides[textSide].Len)
	before := b.nodes
	for k := range b.how.Steps {
		var s graphStep
		if k > 0 && !b.backward {
			s = b.graph.steps[0]
		} else {
			s = graphStep{query: b.floatRows(nodes, b.size), key: b.floatRows(nodes, b.size), edges: b.floats(edges),
				mixed: b.read(nodes, b.size)}
		}
		s.nodes, s.out = before, b.both(nodes, b.size, k+1 < len(b.how.Steps))
		b.graph.steps, before = append(b.graph.steps, s), s.out
	}
	if g := &b.graph; b.backward {
		g.dmixed, g.dquery, g.dkey, g.dedges = b.floatRows(nodes, b.size), b.read(nodes, b.size),
			b.read(nodes, b.size), b.floats(edges)
	}
}

// looking returns the nodes that look at others in a step: how many of the block, every how many-th of all, and how to
// take their rows.
func (b *vectorsWork) looking(step int) (n, each int, rows func(cuda.Matrix) cuda.Matrix) {
	pairs, _, nodes, _ := b.sizes()
	if step == len(b.how.Steps)-1 {
		return pairs, 1 + b.Sides[textSide].Len, b.wholes
	}
	return nodes, 1, func(m cuda.Matrix) cuda.Matrix { return m }
}

// graphForward returns what takes all steps, and in the forward pass scores pairs.
func (b *vectorsWork) graphForward() func() {
	x, c := b.how, b.c
	mix, relu := b.kernel("mix_nodes"), b.kernel("relu")
	step := func(k int) {
		s, of := &b.graph.steps[k], x.Steps[k]
		_, _, nodes, _ := b.sizes()
		n, each, rows := b.looking(k)
		b.apply(of.Query, n, rows(b.placed(s.nodes.read)), rows(b.placed(s.query)))
		b.apply(of.Key, nodes, b.placed(s.nodes.read), b.placed(s.key))
		b.launch(mix, graphThreads, 0, []any{b.at(s.edges), b.at(s.mixed.At), b.at(s.query.At),
			b.at(s.key.At), b.at(s.nodes.values.At)}, []any{b.size, s.mixed.LD, each > 1})
		b.apply(of.Out, n, rows(b.placed(s.mixed)), rows(b.placed(s.out.values)))
		relu.Enqueue(cuda.Each(n*b.size), b.at(s.out.values.At), b.half(s.out), n, b.size, s.out.read.LD, each)
	}
	steps := func() {
		for k := range x.Steps {
			step(k)
		}
	}
	if b.backward {
		return steps
	}
	score := b.kernel("score_nodes")
	return func() {
		steps()
		b.launch(score, 128, 0, append([]any{c.Out, b.at(b.ends().At)}, b.layer(x.Score)...), []any{b.size})
	}
}

// graphThreads are those of the kernels of products of a pair.
const graphThreads = 128

// ends are the nodes behind the last step.
func (b *vectorsWork) ends() cuda.Matrix { return b.graph.steps[len(b.graph.steps)-1].out.values }

// graphBackward returns what makes the gradients of nodes from those of scores, and adds those of layers.
func (b *vectorsWork) graphBackward() func() {
	x, c, g := b.how, b.c, &b.graph
	score, relu, mix := b.kernel("score_nodes_slopes"), b.kernel("relu_slopes"), b.kernel("mix_slopes")
	step := func(k int) { // from the gradients before ReLU
		s, of := &g.steps[k], x.Steps[k]
		_, _, nodes, _ := b.sizes()
		n, each, rows := b.looking(k)
		b.applySlopes(of.Out, n, rows(b.placed(s.mixed)), rows(b.placed(b.dnodes.read)),
			rows(b.placed(b.dnodes.values)),
			rows(b.placed(g.dmixed)), 0)
		b.launch(mix, graphThreads, 0, []any{b.at(b.dnodes.values.At), b.at(g.dquery.At), b.at(g.dkey.At),
			b.at(g.dedges), b.at(g.dmixed.At), b.at(s.edges), b.at(s.query.At), b.at(s.key.At),
			b.at(s.nodes.values.At)}, []any{b.size, g.dkey.LD, each > 1})
		dquery, dkey := rows(b.placed(g.dquery)), b.placed(g.dkey)
		b.applySlopes(of.Query, n, rows(b.placed(s.nodes.read)), dquery, dquery, rows(b.placed(b.dnodes.values)),
			1)
		b.applySlopes(of.Key, nodes, b.placed(s.nodes.read), dkey, dkey, b.placed(b.dnodes.values), 1)
	}
	return func() {
		pairs, _, nodes, _ := b.sizes()
		ends, d := b.ends(), b.dnodes
		before := append([]any{b.at(b.dlogits), b.at(d.values.At), b.half(d), b.at(ends.At)}, b.layer(x.Score)...)
		b.launch(score, 128, 0, append(before, c.In[x.Operands]), []any{b.size, d.read.LD})
		b.addWeighted(x.Score, b.at(b.dlogits), b.wholes(b.placed(ends)), pairs)
		for k := len(x.Steps) - 1; k >= 0; k-- {
			step(k)
			if k == 0 {
				break
			}
			relu.Enqueue(cuda.Each(nodes*b.size), b.at(d.values.At), b.half(d), b.at(g.steps[k].nodes.values.At), nodes,
				b.size, d.read.LD)
		}
	}
}
