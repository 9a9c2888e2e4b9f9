package interaction

import (
	"fmt"

	"github.com/geoalign/geoalign/ops/interaction/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Layer are the weight (out, in) and the bias (out) of a linear layer; a nil bias is none.
type Layer struct{ Weight, Bias *gorgonia.Node }

// Reasoning is a step of reasoning over the graph of the similarity vectors of a pair, three
// layers (S, S).
type Reasoning struct{ Query, Key, Out Layer }

// Vectors says how similarity vectors of S channels are made and what becomes of them. Either
// Steps or Gate is there.
type Vectors struct {
	Scale float32 // lambda of the attention of words to images
	// Attention and Similarity are the images' rows (N*T, C) as the attention compares them and
	// as contexts are made of them, under a metric each; nil: as they are.
	Attention, Similarity *gorgonia.Node
	// Images and Texts are vectors of whole images (N, C), under the metric, and of whole texts
	// (M, C).
	Images, Texts *gorgonia.Node
	Local, Global Layer       // (S, C), of words and of wholes
	Steps         []Reasoning // similarity graph reasoning
	Gate          Layer       // (1, S), similarity attention filtration
	Score         Layer       // (1, S)
}

// SimilarityVectors returns the scores (N, M) of images x (N*T, C) and texts y (M*L, C) by vectors
// of similarity (SGRAF, Diao et al. 2021, "Similarity Reasoning and Filtration for Image-Text
// Matching", with the norms of the published code). A word w_l attends to the tokens v_t of an image as in
// CrossAttention, where the norm is over the words, with weights p_lt. With v~ the rows of
// Similarity, unit(z) = z/(|z| + 1e-8) and the squares of each channel, a pair has the nodes
//
//	e_l = sum_t p_lt v~_t / (|sum_t p_lt v_t| + 1e-8) - w_l
//	n_l = unit(Local(e_l^2))            for each word
//	n_0 = unit(Global((X - Y)^2))       for the wholes X and Y
//
// and with Steps each of them is followed by
//
//	n = ReLU(Out(softmax(Query(n) Key(n)^T) n)),  in the end f = n_0
//
// with Gate by
//
//	a = sigmoid(Gate(n)),  f = unit(sum_i a_i n_i / (sum_i a_i + 1e-8))
//
// The score is sigmoid(Score(f)). A sequence without a token has the score 0 with all.
//
// Pairs are worked on in blocks of about 1,024 nodes, padding left out, and the backward pass makes
// them again, so that memory does not grow with the number of pairs. Products are in the precision
// of the engine, those of a pair's nodes with each other in float32. On the CUDA device blocks have
// 32,768 nodes, those of padding too, and Gate and Score are in float32.
func SimilarityVectors(images, texts Tokens, how Vectors) *gorgonia.Node {
	in := []*gorgonia.Node{images.Rows, texts.Rows, how.Images, how.Texts}
	add := func(n *gorgonia.Node, or int) int {
		if n == nil {
			return or
		}
		in = append(in, n)
		return len(in) - 1
	}
	layer := func(of Layer) layer {
		in = append(in, of.Weight)
		return layer{len(in) - 1, add(of.Bias, 0)}
	}
	x := &vectors{scale: how.Scale, attention: add(how.Attention, 0), similarity: add(how.Similarity, 0)}
	x.layers = len(in)
	x.local, x.global, x.score = layer(how.Local), layer(how.Global), layer(how.Score)
	for _, s := range how.Steps {
		x.steps = append(x.steps, reasoning{layer(s.Query), layer(s.Key), layer(s.Out)})
	}
	if how.Gate != (Layer{}) {
		x.gate = layer(how.Gate)
	}
	x.floats = len(in)
	for k, q := range []Tokens{images, texts} {
		x.sides[k] = side{rows: k, lengths: add(q.Lengths, -1), weights: -1, places: -1, first: q.First, len: q.Len}
	}
	x.operands = len(in)
	return op.Apply(x.op().forward(), in...)
}

// Operands of vectors: rows of images and of texts, the wholes, rows of images under metrics, the
// weight and bias of each layer, lengths.
const (
	vectorsImages = 2
	vectorsTexts  = 3
)

// layer are the operands of a linear layer, 0 for one that there is not.
type layer struct{ weight, bias int }

// reasoning are the layers of a step.
type reasoning struct{ query, key, out layer }

// vectors describes the ops.
type vectors struct {
	sides                 [2]side // images, texts
	scale                 float32
	attention, similarity int // operands
	layers                int // the first operand that is of a layer
	local, global, score  layer
	gate                  layer
	steps                 []reasoning
	floats                int // operands that have gradients
	operands              int
}

// onCUDA is the op as its steps for the CUDA device know it.
func (x *vectors) onCUDA() *oncuda.Vectors {
	y := &oncuda.Vectors{
		Sides: sidesOnCUDA(x.sides), Scale: x.scale, Attention: x.attention, Similarity: x.similarity, Layers: x.layers,
		Local: x.local.onCUDA(), Global: x.global.onCUDA(), Score: x.score.onCUDA(), Gate: x.gate.onCUDA(),
		Floats: x.floats, Operands: x.operands,
	}
	for _, s := range x.steps {
		y.Steps = append(y.Steps, oncuda.Reasoning{
			Query: s.query.onCUDA(), Key: s.key.onCUDA(), Out: s.out.onCUDA(),
		})
	}
	return y
}

func (l layer) onCUDA() oncuda.Layer { return oncuda.Layer{Weight: l.weight, Bias: l.bias} }

func (x *vectors) args() string { return fmt.Sprintf("%+v", *x) }

func (x *vectors) shape(in []tensor.Shape) (tensor.Shape, error) {
	out := tensor.Shape{0, 0}
	for k, s := range x.sides {
		n, err := s.sequences(in, in[k])
		if err != nil {
			return nil, err
		}
		out[k] = n
	}
	for _, rows := range in[vectorsTexts+1 : x.layers] {
		if err := op.Need(rows.Eq(in[0]), "rows of images under a metric must have shape %v (got %v)", in[0],
			rows); err != nil {
			return nil, err
		}
	}
	c, local := in[0][1], in[x.local.weight]
	if err := op.All(
		op.Need(c == in[1][1], "images and texts must have as many channels (got %d and %d)", c, in[1][1]),
		op.WantShape(in, vectorsImages, "whole images", out[0], c),
		op.WantShape(in, vectorsTexts, "whole texts", out[1], c),
		op.Need(x.scale > 0, "the scale of the attention must be > 0 (got %g)", x.scale),
		op.Need((len(x.steps) > 0) != (x.gate != layer{}), "want steps of reasoning or a gate (got %d steps)",
			len(x.steps)),
		op.Need(len(local) == 2 && local[0] > 0, "want the weight of words (S, C) (got %v)", local),
	); err != nil {
		return nil, err
	}
	s := local[0]
	if err := op.All(x.local.check(in, "words", s, c), x.global.check(in, "wholes", s, c),
		x.score.check(in, "the score", 1, s)); err != nil {
		return nil, err
	}
	if len(x.steps) == 0 {
		return out, x.gate.check(in, "the gate", 1, s)
	}
	for i, r := range x.steps {
		name := fmt.Sprintf("step %d", i)
		if err := op.All(r.query.check(in, name, s, s), r.key.check(in, name, s, s),
			r.out.check(in, name, s, s)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// check looks at the shapes of a layer.
func (l layer) check(in []tensor.Shape, name string, out, inputs int) error {
	if err := op.WantShape(in, l.weight, "weight of "+name, out, inputs); err != nil || l.bias == 0 {
		return err
	}
	return op.WantShape(in, l.bias, "bias of "+name, out)
}

func (x *vectors) op() scored {
	return scored{
		kind: "similarity vectors", gradients: "similarity vectors doperands", args: x.args(), operands: x.operands,
		floats: first(x.floats), passes: 3,
		shape: x.shape, scratch: x.scratch, flops: x.flops, step: x.step, onCUDA: x.onCUDA().Step,
	}
}

// flops counts the products over channels of all nodes, padding too.
func (x *vectors) flops(in []tensor.Shape) int64 {
	n, m := in[vectorsImages][0], in[vectorsTexts][0]
	c, s := int64(in[0][1]), int64(in[x.local.weight][0])
	nodes, image := int64(n)*int64(m)*int64(1+x.sides[1].len), int64(x.sides[0].len)
	return 2 * nodes * (2*image*c + c*s + int64(len(x.steps))*(3*s*s+2*s*int64(1+x.sides[1].len)))
}
