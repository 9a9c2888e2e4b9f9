package interaction

import (
	"fmt"

	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/ops/pairs"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// vectorsEps is added to lengths and to the sum of the gates.
const vectorsEps = 1e-8

// Layer are the weight (out, in) and the bias (out) of a linear layer; a nil bias is none.
type Layer struct{ Weight, Bias *gorgonia.Node }

// Reasoning is a step of reasoning over the graph of the similarity vectors of a pair, three
// layers (S, S), that of keys without a bias.
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
// where the published model has a batch norm of the logits of a. The score is sigmoid(Score(f)). A sequence without a
// token has the score 0 with all.
//
// Pairs are worked on in blocks, and the backward pass makes them again, so that memory does not grow with the number
// of pairs. Of the last step only n_0 is made. Products are in the precision of the engine, those of a pair's nodes
// with each other in float32.
func SimilarityVectors(images, texts Tokens, how Vectors) *gorgonia.Node {
	const kind = "similarity vectors"
	p, at := attended(kind, images, texts, false, imageSide, how.Attention, how.Similarity)
	p.Contexts.Wholes, p.Queries.Wholes = gorgonia.Nodes{how.Images}, gorgonia.Nodes{how.Texts}
	build(kind, how.check(images, texts))
	layer := func(of Layer) (at [2]int) { // its operands, -1 of a bias that is not there
		at, p.Shared = [2]int{len(p.Shared), -1}, append(p.Shared, of.Weight)
		if of.Bias != nil {
			at[1], p.Shared = len(p.Shared), append(p.Shared, of.Bias)
		}
		return at
	}
	local, global, score, gate := layer(how.Local), layer(how.Global), layer(how.Score), [2]int{}
	var steps [][2][2]int
	for _, s := range how.Steps {
		steps = append(steps, [2][2]int{layer(s.edges()), layer(s.Out)})
	}
	if how.Gate != (Layer{}) {
		gate = layer(how.Gate)
	}
	p.Vectors = texts.Rows.Shape()[1]
	return p.Scores(func(b *pairs.Block) pairs.Matrix {
		through := func(layer [2]int, x pairs.Features) pairs.Features { return b.Linear(x, layer[0], layer[1]) }
		_, v := at(b, similaritySite)
		words, plain := b.Rows(pairs.Queries, 0), b.Rows(pairs.Contexts, 0)
		weights := attention(b.Products(at(b, attentionSite)), Cross{Scale: how.Scale})
		inverse := b.SquaredNorms(b.Mix(weights, plain)).InverseRoot(vectorsEps)
		e := b.SquaredDifference(b.Mix(weights, v), inverse, words)
		whole := b.SquaredDifference(b.Repeat(b.Wholes(pairs.Contexts, 0)), pairs.Matrix{}, b.Wholes(pairs.Queries, 0))
		n := b.Unit(b.Join(through(global, whole), through(local, e)), vectorsEps)
		f := n
		for i, s := range steps {
			if i+1 == len(steps) {
				f = b.First(n)
			}
			f = through(s[1], b.Attend(through(s[0], f), n, n)).ReLU()
			n = f
		}
		if len(steps) == 0 {
			f = b.Unit(b.Gather(n, through(gate, n), vectorsEps), vectorsEps)
		}
		return b.Matrix(through(score, f)).Sigmoid(1)
	})
}

// edges returns the one layer by which nodes are compared with nodes: Query(n).Key(m) = (W_k^T W_q n + W_k^T b_q).m.
// The softmax sees no bias of keys.
func (r Reasoning) edges() Layer {
	size, key := r.Key.Weight.Shape()[1], layout.Transpose(r.Key.Weight)
	l := Layer{Weight: nn.Linear(key, layout.Transpose(r.Query.Weight), nil)}
	if b := r.Query.Bias; b != nil {
		l.Bias = nn.Linear(key, layout.Reshape(b, 1, size), nil)
	}
	return l
}

// check looks at the shapes.
func (v Vectors) check(images, texts Tokens) error {
	c := images.Rows.Shape()[1]
	local := v.Local.Weight.Shape()
	n, err := images.sequences()
	if err != nil {
		return err
	}
	m, err := texts.sequences()
	if err != nil {
		return err
	}
	if err := op.All(
		wants("whole images", v.Images, n, c), wants("whole texts", v.Texts, m, c),
		op.Need(v.Scale > 0, "the scale of the attention must be > 0 (got %g)", v.Scale),
		op.Need((len(v.Steps) > 0) != (v.Gate != Layer{}), "want steps of reasoning or a gate (got %d steps)", len(v.Steps)),
		op.Need(len(local) == 2 && local[0] > 0, "want the weight of words (S, C) (got %v)", local),
	); err != nil {
		return err
	}
	s := local[0]
	errs := []error{v.Local.check("words", s, c), v.Global.check("wholes", s, c), v.Score.check("the score", 1, s)}
	for i, r := range v.Steps {
		for _, l := range []Layer{r.Query, r.Key, r.Out} {
			errs = append(errs, l.check(fmt.Sprintf("step %d", i), s, s))
		}
		errs = append(errs, op.Need(r.Key.Bias == nil, "step %d: a softmax does not see a bias of keys", i))
	}
	if len(v.Steps) == 0 {
		errs = append(errs, v.Gate.check("the gate", 1, s))
	}
	return op.All(errs...)
}

// sequences returns how many there are.
func (q Tokens) sequences() (int, error) {
	rows := q.Rows.Shape()
	if len(rows) != 2 || q.Len <= 0 || rows[0]%q.Len != 0 {
		return 0, fmt.Errorf("want rows (R*%d, C) (got %v)", q.Len, rows)
	}
	return rows[0] / q.Len, nil
}

// check looks at the shapes of a layer.
func (l Layer) check(name string, out, in int) error {
	if err := wants("weight of "+name, l.Weight, out, in); err != nil || l.Bias == nil {
		return err
	}
	return wants("bias of "+name, l.Bias, out)
}

func wants(what string, n *gorgonia.Node, shape ...int) error {
	return op.WantShape([]tensor.Shape{n.Shape()}, 0, what, shape...)
}
