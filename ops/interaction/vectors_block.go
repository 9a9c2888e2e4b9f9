package interaction

import (
	"math"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/tensor"
)

const (
	vectorsNodes  = 1024 // nodes of a block: enough for products at full speed
	vectorsAcross = 8    // most images of a block
	vectorsEps    = 1e-8 // added to lengths and to the sum of the gates
)

// vectorsBlock is a block of pairs, some images with some texts. The nodes of a pair follow each
// other, the whole first and then the words; pairs of an image follow each other too.
//
// P pairs, W words of all pairs, R = P + W nodes, T tokens of an image, S channels of a node.
type vectorsBlock struct {
	*vectors
	c              *exec.Call
	back           bool
	n, m           int // images and texts in all
	channels, size int // C, S
	capacity       int // most nodes
	across         int // images

	fromImage, toImage, fromText, toText int
	starts                               []int // of each text, and in the end: the words before it

	// Of words and of wholes.
	differences [2][]float32 // e (W, C) and (P, C), in the backward pass gradients
	squares     [2][]float32 // the same squared, in the backward pass gradients
	mapped      [2][]float32 // (W, S) and (P, S) behind the layer, then gradients of that
	contexts    []float32    // (W) lengths of contexts
	along       []float32    // (W) what the gradient through those is of contexts
	attended    []float32    // memory of attending, of each pair

	nodes, lengths []float32 // (R, S) n, and (R) the lengths before unit
	dnodes         []float32 // (R, S)
	graph          vectorsGraph
	filter         vectorsFilter
	ends, dends    []float32 // (P, S) f
	logits         []float32 // (P), then gradients

	product *gemm.Product   // on all threads
	serial  []*gemm.Product // on one
}

// capacityFor returns the most nodes of a block, and its most images.
func (x *vectors) capacityFor(images int) (nodes, across int) {
	most := 1 + x.sides[1].len - x.sides[1].first // of a pair
	nodes = max(vectorsNodes, most)
	return nodes, max(1, min(vectorsAcross, images, nodes/most))
}

// scratch is the memory of a block.
func (x *vectors) scratch(in []tensor.Shape, _ int, back bool) int {
	b := x.block(in[0], in[x.local.weight], in[vectorsImages][0], back)
	var m carve
	b.lay(&m)
	return m.used
}

// block is a block without memory.
func (x *vectors) block(rows, local tensor.Shape, images int, back bool) *vectorsBlock {
	b := &vectorsBlock{vectors: x, back: back, n: images, channels: rows[1], size: local[0]}
	b.capacity, b.across = x.capacityFor(images)
	return b
}

// lay gives a block its memory.
func (b *vectorsBlock) lay(m *carve) {
	r, s := b.capacity, b.size
	for k := range b.squares { // there are at most as many words, and as many pairs, as nodes
		b.differences[k], b.squares[k], b.mapped[k] = m.take(r*b.channels), m.take(r*b.channels), m.take(r*s)
	}
	b.contexts, b.attended = m.take(r), m.take(r*attendingFloats(0, b.sides[0].len))
	b.nodes, b.lengths, b.ends, b.logits = m.take(r*s), m.take(r), m.take(r*s), m.take(r)
	if len(b.steps) > 0 {
		b.layGraph(m)
	} else {
		b.layFilter(m)
	}
	if b.back {
		b.along, b.dnodes, b.dends = m.take(r), m.take(r*s), m.take(r*s)
	}
}

func (x *vectors) step(c *exec.Call, back bool) (exec.Step, error) {
	b := x.block(c.In[0].Shape, c.In[x.local.weight].Shape, c.In[vectorsImages].Dim(0), back)
	b.c, b.m = c, c.In[vectorsTexts].Dim(0)
	b.lay(&carve{memory: c.Scratch})
	b.starts = make([]int, b.capacity+1)
	b.product = op.Product(c, false, true)
	for range c.Engine.Threads() {
		b.serial = append(b.serial, op.Product(c, false, true))
	}
	w := b.work()
	return func() error {
		for _, s := range b.sides {
			if err := s.check(c); err != nil {
				return err
			}
		}
		if back {
			for k := range b.floats {
				clear(b.gradient(k))
			}
		}
		for b.toImage = 0; b.toImage < b.n; {
			b.fromImage, b.toImage = b.toImage, min(b.n, b.toImage+b.across)
			for b.toText = 0; b.toText < b.m; {
				b.takeTexts()
				b.run(&w)
			}
		}
		return nil
	}, nil
}

// vectorsWork are the parts of a block that several threads work on: on pairs, but relu on values of
// nodes and sides on images and texts.
type vectorsWork struct {
	compare, unite, edges, relu, end             func(worker, lo, hi int)
	dend, drelu, dedges, dunite, dcompare, sides func(worker, lo, hi int)
}

func (b *vectorsBlock) work() vectorsWork {
	w := vectorsWork{
		compare: b.compare, unite: b.unite, edges: b.edges, relu: b.relu, end: b.endGraph,
		dend: b.endGraphSlopes, drelu: b.reluSlopes, dedges: b.edgeSlopes, dunite: b.uniteSlopes,
		dcompare: b.compareSlopes, sides: b.addToSides,
	}
	if len(b.steps) == 0 {
		w.end, w.dend = b.endFilter, b.endFilterSlopes
	}
	return w
}

// takeTexts takes as many texts from toText on as a block holds.
func (b *vectorsBlock) takeTexts() {
	b.fromText = b.toText
	room, words := b.capacity/b.across, 0
	for ; b.toText < b.m; b.toText++ {
		lo, hi := b.sides[1].span(b.c, b.toText)
		at := b.toText - b.fromText
		if words+hi-lo+at+1 > room {
			break
		}
		b.starts[at] = words
		words += hi - lo
		b.starts[at+1] = words
	}
}

// texts returns how many texts the block has, and words of them.
func (b *vectorsBlock) texts() (n, words int) {
	n = b.toText - b.fromText
	return n, b.starts[n]
}

// pairs returns P, W and R of the block.
func (b *vectorsBlock) pairs() (pairs, words, nodes int) {
	n, w := b.texts()
	images := b.toImage - b.fromImage
	return images * n, images * w, images * (n + w)
}

// vectorsPair is a pair of a block.
type vectorsPair struct {
	image, text int // of all
	word, words int // where its words begin among those of the block, and how many there are
	node        int // where its nodes begin
	empty       bool
}

// pair returns pair i of the block.
func (b *vectorsBlock) pair(i int) vectorsPair {
	n, w := b.texts()
	image, text := i/n, i%n
	p := vectorsPair{image: b.fromImage + image, text: b.fromText + text, word: image*w + b.starts[text],
		words: b.starts[text+1] - b.starts[text]}
	p.node = p.word + i
	lo, hi := b.sides[0].span(b.c, p.image)
	p.empty = lo == hi || p.words == 0
	return p
}

// rowsOf returns the rows of the tokens of an image or text that take part, and how many there are.
func (b *vectorsBlock) rowsOf(of []float32, side, i int) (rows []float32, n int) {
	s := b.sides[side]
	lo, hi := s.span(b.c, i)
	return of[(i*s.len+lo)*b.channels:][:(hi-lo)*b.channels], hi - lo
}

// gradient returns where the gradient of an operand goes.
func (b *vectorsBlock) gradient(operand int) []float32 {
	if operand == 0 {
		return b.c.Out.F32
	}
	return b.c.Aux[operand-1].F32
}

// run works on the pairs of a block.
func (b *vectorsBlock) run(w *vectorsWork) {
	pairs, words, nodes := b.pairs()
	e := b.c.Engine
	e.For(pairs, 1, w.compare)
	b.apply(b.local, words, b.squares[wordPart], b.mapped[wordPart])
	b.apply(b.global, pairs, b.squares[wholePart], b.mapped[wholePart])
	e.For(pairs, 1, w.unite)
	if len(b.steps) > 0 {
		b.reason(w, pairs, nodes)
	} else {
		b.gates(nodes)
	}
	e.For(pairs, 1, w.end)
	b.apply(b.score, pairs, b.ends, b.logits)
	if !b.back {
		b.setScores(pairs)
		return
	}
	b.scoreSlopes(pairs)
	b.applySlopes(b.score, pairs, b.ends, b.logits, b.dends, 0)
	e.For(pairs, 1, w.dend)
	if len(b.steps) > 0 {
		b.reasonSlopes(w, pairs, nodes)
	} else {
		b.gateSlopes(nodes)
	}
	e.For(pairs, 1, w.dunite)
	b.applySlopes(b.local, words, b.squares[wordPart], b.mapped[wordPart], b.squares[wordPart], 0)
	b.applySlopes(b.global, pairs, b.squares[wholePart], b.mapped[wholePart], b.squares[wholePart], 0)
	e.For(pairs, 1, w.dcompare)
	e.For(b.toImage-b.fromImage+b.toText-b.fromText, 1, w.sides)
}

// setScores sets the scores of the block.
func (b *vectorsBlock) setScores(pairs int) {
	for i, v := range b.logits[:pairs] {
		p := b.pair(i)
		if v = sigmoid(v); p.empty {
			v = 0
		}
		b.c.Out.F32[p.image*b.m+p.text] = v
	}
}

// scoreSlopes turns logits into their gradients.
func (b *vectorsBlock) scoreSlopes(pairs int) {
	dy := b.c.In[b.operands].F32
	for i, v := range b.logits[:pairs] {
		p := b.pair(i)
		if v = sigmoid(v); p.empty {
			b.logits[i] = 0
		} else {
			b.logits[i] = dy[p.image*b.m+p.text] * v * (1 - v)
		}
	}
}

func sigmoid(x float32) float32 { return float32(1 / (1 + math.Exp(-float64(x)))) }

// apply sets y (rows, out) to those of a layer for x (rows, in).
func (b *vectorsBlock) apply(l layer, rows int, x, y []float32) {
	w := b.c.In[l.weight].Shape
	p := b.product
	if p.TransA, p.TransB, p.Beta = false, true, 0; l.bias > 0 {
		p.Bias = b.c.In[l.bias].F32
	}
	p.M, p.N, p.K = rows, w[0], w[1]
	p.A, p.B = gemm.Matrix{F32: x, LD: w[1]}, op.Matrix(b.c, l.weight, 0, w[1])
	p.C, p.LDC = y, w[0]
	b.c.Engine.Multiply(p)
	p.Bias = nil
}

// applySlopes adds the gradients of a layer from x and dy, and then sets dx, which may lie where x
// does, to dy W + beta dx.
func (b *vectorsBlock) applySlopes(l layer, rows int, x, dy, dx []float32, beta float32) {
	w := b.c.In[l.weight].Shape
	p := b.product
	p.TransA, p.TransB, p.Beta = true, false, 1
	p.M, p.N, p.K = w[0], w[1], rows
	p.A, p.B = gemm.Matrix{F32: dy, LD: w[0]}, gemm.Matrix{F32: x, LD: w[1]}
	p.C, p.LDC = b.gradient(l.weight), w[1]
	b.c.Engine.Multiply(p)
	if l.bias > 0 {
		vector.SumRows(b.gradient(l.bias), dy[:rows*w[0]])
	}
	p.TransA, p.Beta = false, beta
	p.M, p.N, p.K = rows, w[1], w[0]
	p.B = op.Matrix(b.c, l.weight, 0, w[1])
	p.C = dx
	b.c.Engine.Multiply(p)
}

// carve gives parts of memory away.
type carve struct {
	memory []float32
	used   int
}

func (m *carve) take(n int) []float32 {
	m.used += n
	if m.memory == nil {
		return nil
	}
	return m.memory[m.used-n : m.used : m.used]
}
