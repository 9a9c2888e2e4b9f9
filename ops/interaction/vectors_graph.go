package interaction

import (
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/op"
)

// vectorsGraph is the memory of the reasoning over the graph of the nodes of each pair.
type vectorsGraph struct {
	steps []graphStep
	depth int // the step that is worked on
	// Gradients, of the step that is worked on.
	dmixed, dquery, dkey []float32 // (R, S)
	dedges               []float32 // (1+words, 1+words) of each pair
}

// graphStep is what a step makes of its nodes.
type graphStep struct {
	nodes      []float32 // (R, S)
	query, key []float32 // (R, S)
	edges      []float32 // (1+words, 1+words) of each pair
	mixed      []float32 // (R, S) edges times nodes
	out        []float32 // (R, S)
}

func (b *vectorsBlock) layGraph(m *carve) {
	rows := func() []float32 { return m.take(b.capacity * b.size) }
	edges := func() []float32 { return m.take(b.capacity * (1 + b.sides[1].len)) }
	nodes := b.nodes
	for range b.steps {
		s := graphStep{nodes: nodes, query: rows(), key: rows(), edges: edges(), mixed: rows(), out: rows()}
		b.graph.steps, nodes = append(b.graph.steps, s), s.out
	}
	if b.back {
		b.graph.dmixed, b.graph.dquery, b.graph.dkey, b.graph.dedges = rows(), rows(), rows(), edges()
	}
}

// reason takes all steps.
func (b *vectorsBlock) reason(w *vectorsWork, pairs, nodes int) {
	for k, of := range b.steps {
		s := &b.graph.steps[k]
		b.graph.depth = k
		b.apply(of.query, nodes, s.nodes, s.query)
		b.apply(of.key, nodes, s.nodes, s.key)
		b.c.Engine.For(pairs, 1, w.edges)
		b.apply(of.out, nodes, s.mixed, s.out)
		b.c.Engine.For(nodes*b.size, op.ElementGrain, w.relu)
	}
}

// edges makes the edges of pairs and mixes their nodes.
func (b *vectorsBlock) edges(_, lo, hi int) {
	s, size := &b.graph.steps[b.graph.depth], b.size
	for i := lo; i < hi; i++ {
		at, n, edges := b.graphOf(i, s.edges)
		b.c.Engine.GemmSerial(false, true, n, n, size, 1, s.query[at:], size, s.key[at:], size, 0, edges, n)
		for r := range n {
			vector.Softmax(edges[r*n:][:n], edges[r*n:][:n])
		}
		b.c.Engine.GemmSerial(false, false, n, size, n, 1, edges, n, s.nodes[at:], size, 0, s.mixed[at:], size)
	}
}

// graphOf returns where the values of the nodes of pair i begin, how many nodes there are, and the
// edges between them.
func (b *vectorsBlock) graphOf(i int, of []float32) (at, n int, edges []float32) {
	p := b.pair(i)
	n = 1 + p.words
	return p.node * b.size, n, of[p.node*(1+b.sides[1].len):][:n*n]
}

func (b *vectorsBlock) relu(_, lo, hi int) {
	x := b.graph.steps[b.graph.depth].out[lo:hi]
	for i, v := range x {
		x[i] = max(v, 0)
	}
}

// endGraph takes the whole of each pair.
func (b *vectorsBlock) endGraph(_, lo, hi int) {
	last := b.graph.steps[len(b.steps)-1].out
	for i := lo; i < hi; i++ {
		copy(b.ends[i*b.size:][:b.size], last[b.pair(i).node*b.size:])
	}
}

// endGraphSlopes sets the gradients of the last nodes.
func (b *vectorsBlock) endGraphSlopes(_, lo, hi int) {
	for i := lo; i < hi; i++ {
		p := b.pair(i)
		d := b.dnodes[p.node*b.size:][:(1+p.words)*b.size]
		clear(d[copy(d, b.dends[i*b.size:][:b.size]):])
	}
}

// reasonSlopes turns the gradients of the last nodes into those of the first, and adds those of the
// layers.
func (b *vectorsBlock) reasonSlopes(w *vectorsWork, pairs, nodes int) {
	g := &b.graph
	for k := len(b.steps) - 1; k >= 0; k-- {
		of, s := b.steps[k], &g.steps[k]
		g.depth = k
		b.c.Engine.For(nodes*b.size, op.ElementGrain, w.drelu)
		b.applySlopes(of.out, nodes, s.mixed, b.dnodes, g.dmixed, 0)
		b.c.Engine.For(pairs, 1, w.dedges)
		b.applySlopes(of.query, nodes, s.nodes, g.dquery, b.dnodes, 1)
		b.applySlopes(of.key, nodes, s.nodes, g.dkey, b.dnodes, 1)
	}
}

func (b *vectorsBlock) reluSlopes(_, lo, hi int) {
	d := b.dnodes[lo:hi]
	for i, v := range b.graph.steps[b.graph.depth].out[lo:hi] {
		if v <= 0 {
			d[i] = 0
		}
	}
}

// edgeSlopes sets the gradients of queries and keys, and of nodes through the mix.
func (b *vectorsBlock) edgeSlopes(_, lo, hi int) {
	g, size, e := &b.graph, b.size, b.c.Engine
	s := &g.steps[g.depth]
	for i := lo; i < hi; i++ {
		at, n, edges := b.graphOf(i, s.edges)
		_, _, d := b.graphOf(i, g.dedges)
		e.GemmSerial(false, true, n, n, size, 1, g.dmixed[at:], size, s.nodes[at:], size, 0, d, n)
		for r := range n {
			vector.SoftmaxGradRow(d[r*n:][:n], edges[r*n:][:n], d[r*n:][:n])
		}
		e.GemmSerial(true, false, n, size, n, 1, edges, n, g.dmixed[at:], size, 0, b.dnodes[at:], size)
		e.GemmSerial(false, false, n, size, n, 1, d, n, s.key[at:], size, 0, g.dquery[at:], size)
		e.GemmSerial(true, false, n, size, n, 1, d, n, s.query[at:], size, 0, g.dkey[at:], size)
	}
}
