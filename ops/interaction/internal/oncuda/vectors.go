package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

var vectorsSource = cuda.NewSource(files, "vectors", "cross.cu", "vectors.cu", "vectors_graph.cu", "vectors_filter.cu")

// Limits of a block of pairs on the CUDA device: nodes, padding too, or those of one pair; and images, where there are
// texts enough. A variable for tests.
var VectorsLimits = struct{ Nodes, Images int }{32 << 10, 8}

// vectorsWork is a step on the CUDA device, in blocks of pairs. Texts are the queries of cross attention, images the
// context. Words that take no part have nodes too, as how many there are is known on the device alone; kernels of pairs
// do not read them, and their gradients are 0.
//
// P pairs, W words of them, R = P + W nodes, S channels of a node.
type vectorsWork struct {
	*pairsWork
	how  *Vectors
	size int // S

	attended       cuda.Matrix  // weights, a row for each word and image, where products do not read those of pairs
	contexts       cuda.Matrix  // (W, C)
	folded         cuda.Matrix  // (W, C) contexts of the rows under the metric
	contextLengths cuda.Pointer // (W)
	// (W, C) and (P, C) that products read, of words and of wholes; then gradients of folded
	squares     [2]cuda.Matrix
	mapped      [2]roundedRows // (W, S) and (P, S) behind the layer, then gradients of that
	nodes       roundedRows    // (R, S)
	nodeLengths cuda.Pointer   // (R) before unit
	graph       graphWork
	filter      filterWork

	// Of the backward pass.
	dlogits   cuda.Pointer   // (P) of the scores
	dnodes    roundedRows    // (R, S)
	dsquares  [2]cuda.Matrix // (W, C) and (P, C)
	dcontexts cuda.Matrix    // (W, C) through their lengths, where there is a metric; products read them
	dweights  cuda.Pointer   // of the attention

	columns                        map[int]columnSums // of operands
	sumRows, sumWeighted, sumParts *cuda.Kernel
}

// prepare makes the step.
func (x *Vectors) prepare(c *exec.DeviceCall, back bool) cuda.Step {
	b := x.begin(c, back)
	if 4*max(b.slopesFloats(), b.filterFloats(), b.channels) > mostShared {
		return nil
	}
	b.lay()
	b.scratch()
	forward := b.forwardBlock()
	if !back {
		return b.blocks(forward)
	}
	backward := b.backwardBlock()
	b.sumRows, b.sumWeighted, b.sumParts = b.kernel("add_columns"), b.kernel("add_weighted"), b.kernel("sum_columns")
	blocks := b.blocks(func() {
		forward()
		backward()
	})
	return func() {
		for k := range x.Floats {
			cuda.Zero(b.gradient(k))
		}
		blocks()
		b.addParts()
	}
}

// begin begins a step.
func (x *Vectors) begin(c *exec.DeviceCall, back bool) *vectorsWork {
	pairs := &pairsWork{
		Sides: x.Sides, c: c, source: vectorsSource, backward: back, channels: c.In[0].Shape[1], product: cuda.ProductType(c),
		count: [2]int{c.In[vectorsImages].Shape[0], c.In[vectorsTexts].Shape[0]}, rows: make([]cuda.Matrix, x.Floats),
	}
	b := &vectorsWork{pairsWork: pairs, how: x, size: c.In[x.Local.Weight].Shape[0]}
	of := 1 + x.Sides[textSide].Len // nodes of a pair
	b.most[textSide] = min(b.count[textSide], max(1, VectorsLimits.Nodes/(of*VectorsLimits.Images)))
	b.most[imageSide] = min(b.count[imageSide], max(1, VectorsLimits.Nodes/(of*max(1, b.most[textSide]))))
	read := map[int]bool{0: true, 1: true, x.Attention: true, x.Similarity: true}
	for _, l := range x.products() {
		read[l.Weight] = true
	}
	for k := range x.Floats {
		if s := c.In[k].Shape; read[k] {
			b.parts = append(b.parts, cuda.Part{In: k, Rows: s[0], Cols: s[1], Type: b.product})
		}
	}
	b.room = cuda.NewRoom(c, b.parts...)
	return b
}

// products are the layers that are matrix products on the CUDA device: those with one result are made by kernels.
func (x *Vectors) products() []Layer {
	list := []Layer{x.Local, x.Global}
	for _, s := range x.Steps {
		list = append(list, s.Query, s.Key, s.Out)
	}
	return list
}

// lay asks for the memory of a block.
func (b *vectorsWork) lay() {
	texts, images := b.most[textSide], b.most[imageSide]
	words, tokens := texts*b.Sides[textSide].Len, b.Sides[imageSide].Len
	pairs, all, graph := texts*images, images*words, len(b.how.Steps) > 0
	b.ld = images * tokens
	b.products, b.weights = b.floats(words*b.ld), b.floats(words*b.ld)
	b.attended = b.rounded(words*images, tokens)
	b.contexts = b.floatRows(all, b.channels)
	if b.folded = b.contexts; b.metric() {
		b.folded = b.floatRows(all, b.channels)
	}
	for k, n := range []int{all, pairs} {
		b.squares[k], b.mapped[k] = b.read(n, b.channels), b.both(n, b.size, b.backward)
	}
	b.contextLengths, b.nodeLengths, b.nodes = b.floats(all), b.floats(pairs+all), b.both(pairs+all, b.size, graph)
	if b.backward {
		b.dproducts, b.dweights = b.read(words, b.ld), b.floats(words*b.ld)
		if b.metric() {
			b.dcontexts = b.read(all, b.channels)
		}
		b.dsquares[wordPart], b.dsquares[wholePart] = b.floatRows(all, b.channels), b.floatRows(pairs, b.channels)
		b.dnodes, b.dlogits = b.both(pairs+all, b.size, graph), b.floats(pairs)
		b.layColumns()
	}
	if graph {
		b.layGraph(pairs + all)
	} else {
		b.layFilter(pairs, pairs+all)
	}
}

// metric says whether contexts are compared under a metric.
func (b *vectorsWork) metric() bool { return b.how.Similarity != 0 }

// blocks returns the step that works on all blocks.
func (b *vectorsWork) blocks(work func()) cuda.Step {
	return func() {
		placed := b.factors.Place()
		for i, p := range b.parts {
			b.rows[p.In] = placed[i]
		}
		for i := 0; i < b.count[imageSide]; i += b.most[imageSide] {
			b.now[imageSide] = crossSpan{i, min(b.most[imageSide], b.count[imageSide]-i)}
			for j := 0; j < b.count[textSide]; j += b.most[textSide] {
				b.now[textSide] = crossSpan{j, min(b.most[textSide], b.count[textSide]-j)}
				work()
			}
		}
	}
}

// sizes returns P, W and R of the block, and the words of its texts.
func (b *vectorsWork) sizes() (pairs, words, nodes, rows int) {
	images, texts := b.now[imageSide].count, b.now[textSide].count
	rows = texts * b.Sides[textSide].Len
	return images * texts, images * rows, images*texts + images*rows, rows
}
