package interaction

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/interaction/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// WordPatch says how words and patches look at each other.
type WordPatch struct {
	Scale       float32 // of the products that the attention is the softmax of; 1 in ViPMM
	Context     float32 // tau_1, temperature of the softmax of the attention
	Temperature float32 // tau of the cosines
	Sum         bool    // the cosines' exponentials are summed as printed, in the place of their means
}

// WordPatchScores returns the logarithms (N, M) of the alignment phi_loc of images x (N*T, C) with texts
// y (M*L, C) by their patches P_j and words S_i (ViPMM, equations 8 to 11). With products
// D_ij = S_i.P_j,
//
//	attn  = softmax_j(scale D_ij)           over the patches
//	attn' = softmax_i(scale D_ij)           over the words
//	S'_j  = sum_i softmax_i(attn_ij/tau_1) S_i    the text as patch j sees it
//	P'_i  = sum_j softmax_j(attn'_ij/tau_1) P_j   the image as word i sees it
//	phi   = mean_i exp(cos(S_i, P'_i)/tau) + mean_j exp(cos(P_j, S'_j)/tau)
//
// The printed scores pair P'^(j) with S' and S'^(i) with P', which have no such rows; each patch is
// compared with its own summary of the text here, and each word with its own of the image. The
// means stand for the printed sums, which grow with the length of a text; Sum has them. A token or a
// summary of length 0 has the cosine 0 and no gradient. A pair with a sequence without a token has
// the result 0.
//
// No S' and no P' is made: products with them are sums of D, and their lengths come from the products of
// the tokens of a side with each other. Pairs are worked on in blocks, and the backward pass makes them
// again, so that memory does not grow with the number of pairs. Products over channels are in the
// precision of the engine.
func WordPatchScores(images, texts Tokens, how WordPatch) *gorgonia.Node {
	x := &wordPatch{WordPatch: how, cross: cross{scale: how.Scale, query: textSide}}
	in := x.take(images, texts, nil, nil, 0)
	for k, q := range []Tokens{images, texts} {
		x.most[k] = max(wordPatchRows, q.Len)
		x.sequences[k] = x.most[k]
	}
	return op.Apply(x.op().forward(), in...)
}

// The sides of a pair.
const (
	imageSide = iota
	textSide
)

// wordPatch describes the ops. The operands are those of cross attention, with texts as the queries.
type wordPatch struct {
	cross
	WordPatch
}

// onCUDA is the op as its steps for the CUDA device know it.
func (x *wordPatch) onCUDA() *oncuda.WordPatch {
	return &oncuda.WordPatch{Cross: *x.cross.onCUDA(), Context: x.Context, Temperature: x.Temperature, Sum: x.Sum}
}

func (x *wordPatch) args() string { return fmt.Sprintf("%+v", *x) }

func (x *wordPatch) shape(in []tensor.Shape) (tensor.Shape, error) {
	out, err := x.cross.shape(in)
	if err != nil {
		return nil, err
	}
	return out, op.All(
		op.Need(x.Context > 0, "the temperature of the summaries must be > 0 (got %g)", x.Context),
		op.Need(x.Temperature > 0, "the temperature of the cosines must be > 0 (got %g)", x.Temperature))
}

func (x *wordPatch) op() scored {
	return scored{
		kind: "word patch scores", gradients: "word patch scores drows", args: x.args(), operands: x.operands,
		floats: first(x.rows),
		shape:  x.shape, scratch: x.scratch, step: x.step, onCUDA: x.onCUDA().Step,
		flops:  func(in []tensor.Shape) int64 { return x.flops(in) + x.mixes(in) },
		slopes: func(in []tensor.Shape) int64 { return 3*x.flops(in) + 2*x.mixes(in) },
	}
}

// mixes counts the products of the weights of all pairs with those of the tokens of a side with each other.
func (x *wordPatch) mixes(in []tensor.Shape) int64 {
	return 2 * int64(in[0][0]) * int64(in[1][0]) * int64(x.sides[imageSide].len+x.sides[textSide].len)
}

func (x *wordPatch) scratch(in []tensor.Shape, threads int, backward bool) int {
	return x.floats(in[0][1], threads, backward)
}

// step works on blocks: it makes the products, the attention of both sides, and the scores, in the backward
// pass with the gradients.
func (x *wordPatch) step(c *exec.Call, backward bool) (exec.Step, error) {
	m := &carve{memory: c.Scratch}
	b := &wordPatchBlock{how: x, crossBlock: x.block(c, m, backward)}
	b.lay(m, c.Engine.Threads())
	prepare, attend, mix, score, mixSlopes, addGrams := b.prepare, b.attend, b.mix, b.score, b.mixSlopes, b.addGrams
	return b.run(
		func(images int) { c.Engine.For(images, 1, prepare) },
		func(images int) {
			texts := b.span[textSide].to - b.span[textSide].from
			b.multiply()
			c.Engine.For(texts, 1, attend)
			c.Engine.For(images, 1, mix)
			c.Engine.For(texts, 1, score)
			if backward {
				c.Engine.For(images, 1, mixSlopes)
				b.addProducts()
			}
		},
		func(images int) { c.Engine.For(images, 1, addGrams) }), nil
}
