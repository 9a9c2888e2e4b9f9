package objectives

import (
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/attention"
	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/ops/interaction"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/ops/similarity"
	"gorgonia.org/gorgonia"
)

// TextSwap is the hinge loss of pairs whose text is swapped for another one of the batch, by the scores of features and
// of what attention across the modalities makes of them (ViPMM, equations 16 to 19): the mean over the pairs that are
// swapped.
//
// With the features x and y of a pair, of length 1, and what attention across the
// modalities makes of each, F_x of the text as the image sees it and F_y of the image as the text does,
//
//	F_x = softmax(Y X^T / sqrt(d)) X        F_y = softmax(X Y^T / sqrt(d)) Y
//	g   = x.y + alpha f_x.f_y               g' = x'.y + alpha f'_x.f_y
//	L   = max(0, M - g + g')
//
// the mean over the pairs that are swapped, 0 of none. X are the words of the text and Y the patches of the image, in
// the shared space, and f_x and f_y the means of F_x over the patches and of F_y over the words: of single vectors, as
// X and Y are introduced, the softmax is 1, and of the two matrices the printed product F_x^T F_y has no shape. With
// attention "batch" X and Y are instead the features of all texts and images of the batch, and f_x and f_y a pair's
// rows of F_x and F_y.
type TextSwap struct {
	// of the loss in the total, 1 in ViPMM; 0: off
	section.Weighted
	ofTokens
	// by which a pair shall be nearer than a swapped one; ViPMM does not say its value
	Margin float64 `toml:"margin"`
	// weight of the score after attention; ViPMM does not say its value
	Alpha float64 `toml:"alpha"`
	// that the text of a pair is swapped; ViPMM does not say its value
	Probability float64 `toml:"probability"`
	// local (between the words of a text and the patches of an image) | batch (among the features of the batch)
	Attention string `toml:"attention"`
	// a swapped pair has attention of its own on both sides, where ViPMM keeps that of the right pair on one
	Recompute bool `toml:"recompute"`
	// a second term swaps images instead of texts
	Images bool `toml:"images"`
}

var _ Preparer = (*TextSwap)(nil)

// Defaults implements section.Defaulter.
func (l *TextSwap) Defaults() {
	*l = TextSwap{Margin: 0.2, Alpha: 0.5, Probability: 0.5, Attention: "local"}
}

// Check implements section.Checked.
func (l *TextSwap) Check(k *section.Checker) {
	checkTokens(k, l)
	k.Require("margin", l.Margin > 0 && l.Margin <= 1e4, "must be above 0 and at most 10000",
		"0.2 is what cosines are trained with")
	k.Between(0, 1e4, "alpha")
	k.Share("probability")
	k.Require("probability", l.Probability > 0 || !l.On(), "must be above 0 and at most 1",
		"to leave the loss out set objective.text_swap.weight = 0")
	k.OneOf("attention", "local", "batch")
}

// Build implements Loss.
func (l *TextSwap) Build(s *Step) []Part {
	s = s.Whole()
	var a attended
	if l.Attention == "batch" {
		a = batchAttended{s.unit(s.Online.Text.Features), s.unit(s.Online.Image.Features)}
	} else {
		a = localAttended{wholeTokens(s.tokensOf("text_swap", s.Online.Text)),
			wholeTokens(s.tokensOf("text_swap", s.Online.Image))}
	}
	x, y := s.unit(s.Online.Text.Features), s.unit(s.Online.Image.Features) // (B, C)
	fx, fy := a.text(nil, nil), a.image(nil, nil)                           // (B, C)
	matched := l.score(x, y, fx, fy)                                        // (B)
	part := Part{Name: "text_swap", Weight: l.Weight, Chance: l.Margin}

	swap, has := s.partners("text_swap texts", Partners{Prob: l.Probability}) // (B)
	otherFy := fy
	if l.Recompute {
		otherFy = a.image(swap, nil)
	}
	g := l.score(nn.GatherRows(x, swap, 1), y, a.text(swap, nil), otherFy)
	part.Node = contrast.Margin(matched, g, has, l.Margin)
	if l.Images {
		swap, has := s.partners("text_swap images", Partners{Prob: l.Probability})
		otherFx := fx
		if l.Recompute {
			otherFx = a.text(nil, swap)
		}
		g := l.score(x, nn.GatherRows(y, swap, 1), otherFx, a.image(nil, swap))
		part.Node = arith.WeightedSum([]float32{1, 1}, part.Node, contrast.Margin(matched, g, has, l.Margin))
		part.Chance *= 2
	}
	return []Part{part}
}

// score returns g (B).
func (l *TextSwap) score(x, y, fx, fy *gorgonia.Node) *gorgonia.Node {
	return arith.Combine([]float32{1, float32(l.Alpha)}, similarity.RowProducts(x, y), similarity.RowProducts(fx, fy))
}

// attended are features (B, C) after attention across the modalities of pairs, whose texts and images are those that
// texts and images (B) int32 name; nil: the pair's own.
type attended interface {
	text(texts, images *gorgonia.Node) *gorgonia.Node  // f_x
	image(texts, images *gorgonia.Node) *gorgonia.Node // f_y
}

// batchAttended has attention among the features (B, C) of a batch.
type batchAttended struct{ x, y *gorgonia.Node }

func (a batchAttended) text(texts, images *gorgonia.Node) *gorgonia.Node {
	return attendAll(taken(a.y, images), taken(a.x, texts))
}

func (a batchAttended) image(texts, images *gorgonia.Node) *gorgonia.Node {
	return attendAll(taken(a.x, texts), taken(a.y, images))
}

// taken returns the rows that index names.
func taken(x, index *gorgonia.Node) *gorgonia.Node {
	if index == nil {
		return x
	}
	return nn.GatherRows(x, index, 1)
}

// attendAll returns softmax(q k^T / sqrt(C)) k for rows (B, C).
func attendAll(q, k *gorgonia.Node) *gorgonia.Node {
	n := q.Shape()[0]
	return attention.CrossAttention(attention.CrossArgs{Q: q, KV: layout.ConcatColumns(k, k), QueryLen: n, KeyLen: n,
		Heads: 1, Keep: 1})
}

// localAttended has attention between the words of a text and the patches of an image.
type localAttended struct{ x, y interaction.Tokens }

func (a localAttended) text(texts, images *gorgonia.Node) *gorgonia.Node {
	return attendTokens(a.y, images, a.x, texts)
}

func (a localAttended) image(texts, images *gorgonia.Node) *gorgonia.Node {
	return attendTokens(a.x, texts, a.y, images)
}

// wholeTokens are tokens of which the first ones take part.
func wholeTokens(q interaction.Tokens) interaction.Tokens {
	if q.First == 0 {
		return q
	}
	n := q.Len - q.First
	to := interaction.Tokens{Rows: layout.SequenceRows(q.Rows, q.Len, q.First, n), Len: n}
	if q.Lengths != nil {
		to.Lengths = layout.AtLeastInt(layout.AddInt(q.Lengths, -q.First), 0)
	}
	return to
}

// attendTokens returns the mean (B, C) over the tokens of the queries of softmax(q k^T / sqrt(C)) k, for the sequences
// of queries and of keys that indices (B) name, nil: their own. Of no queries or keys it is 0.
func attendTokens(q interaction.Tokens, queries *gorgonia.Node, k interaction.Tokens,
	keys *gorgonia.Node) *gorgonia.Node {
	lengths := func(t interaction.Tokens, index *gorgonia.Node) *gorgonia.Node {
		if t.Lengths == nil || index == nil {
			return t.Lengths
		}
		return layout.GatherInts(t.Lengths, index)
	}
	rows := q.Rows
	if queries != nil {
		rows = nn.GatherRows(rows, queries, q.Len)
	}
	f := attention.CrossAttention(attention.CrossArgs{
		Q: rows, KV: layout.ConcatColumns(k.Rows, k.Rows), Index: keys, Lengths: lengths(k, keys), QueryLen: q.Len,
		KeyLen: k.Len, Heads: 1, Keep: 1,
	}) // (B*Len, C)
	return nn.MeanTokens(f, lengths(q, queries), q.Len, 0)
}
