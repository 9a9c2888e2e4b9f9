package encoders

import (
	"slices"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// TextOptions is the text tower and the fusion layers above it.
type TextOptions struct {
	// structure: empty (that of model.system) | bert (post-norm, eps 1e-12) | roberta (bert with eps 1e-5 and no token
	// types) | mpnet (roberta with a bias of attention by distance) | clip (pre-norm, a word sees those before it, eps
	// 1e-5, quick_gelu) | coca (clip with gelu and a learned token behind all places of a text, which stands for it and
	// sees its words and the first place of padding; CoCa of open_clip) | siglip (pre-norm, padding is read like words, eps 1e-6, gelu_tanh) | gru (gated recurrent
	// units over embeddings of words, of model.text.gru) | block (layers by the options of model.text.block)
	Style string `toml:"style" fixed:"meaning"`
	// text layers; 0 with style block: words alone, as in StaticEmbedding and model2vec
	Layers int `toml:"layers" fixed:"model" max:"128"`
	// layers with cross-attention to the image
	FusionLayers int `toml:"fusion_layers" when:"fused pairs or fusion_layers=0" fixed:"model" max:"128"`
	// width of a token, a multiple of heads; of gru that of a state
	Width int `toml:"width" fixed:"model" max:"65536"`
	// attention heads
	Heads int `toml:"heads" when:"style!=gru" fixed:"meaning" max:"1024"`
	// hidden width of a layer's MLP; 0: 4 x width
	MLP int `toml:"mlp" when:"style!=gru" fixed:"model" max:"262144"`
	// of a layer's MLP: empty (that of style) | gelu | gelu_tanh | quick_gelu; of block also silu, and relu where it is
	// not gated
	Activation string `toml:"activation" when:"style!=gru" fixed:"meaning"`
	// as model.image.eps; 0: that of style, 1e-12 without one, 1e-5 in model.system "clip"
	Eps float64 `toml:"eps" when:"style!=gru" fixed:"meaning" max:"0.1"`
	// what stands for a text: empty (that of style) | class (the first token) | pooler (the first token through a
	// linear layer and tanh, as BERT has it) | mean (of the words that are no padding) | end (the last token that is
	// no padding; of siglip the last place, of gru the last state of each direction) | first_last (the mean of the
	// words over the first and the last layer, as in SimCSE) | weighted_mean (of the words that are no padding, each
	// weighed by its number, as in SGPT) | max (the largest value of each channel over the words)
	// | gpo (the generalised pooling operator of VSE-infinity: learned weights for the sorted values) | esa (external
	// space attention: a mean of each channel under weights of that channel)
	Pool string `toml:"pool" when:"features" fixed:"meaning"`
	// size of the position table, at least data.tokens
	Positions int `toml:"positions" when:"style!=gru" fixed:"model" max:"65536"`
	// as model.image.freeze; fusion layers are trained all the same
	Freeze bool `toml:"freeze" when:"steps" fixed:"run"`
	// of hidden states and attention probabilities; of gru of embeddings and of what further layers read
	Dropout float64 `toml:"dropout"`
	GRU     GRU     `toml:"gru" when:"style=gru"`
	Block   Block   `toml:"block" when:"style=block"`
}

// Defaults implements section.Defaulter.
func (t *TextOptions) Defaults() {
	*t = TextOptions{Layers: 6, FusionLayers: 6, Width: 768, Heads: 12, Positions: 512, Dropout: 0.1}
}

// Gives implements section.Giver.
func (t *TextOptions) Gives() []section.Fact {
	list := []section.Fact{section.WordAttention}
	if t.Style == StyleGRU {
		list[0] = section.Recurrent
	}
	if t.Dropout > 0 {
		list = append(list, section.TowerDropout)
	}
	return list
}

// Check implements section.Checked.
func (t *TextOptions) Check(k *section.Checker) {
	k.Positive("width")
	k.NotNegative("mlp", "fusion_layers")
	if t.Style == StyleBlock { // without layers it is a table of words
		k.NotNegative("layers")
	} else {
		k.Positive("layers")
	}
	if t.Style != StyleGRU {
		k.Positive("heads", "positions")
		k.Require("width", t.Heads <= 0 || t.Width%t.Heads == 0 || t.Style == StyleBlock && t.Block.HeadWidth > 0,
			"must be a multiple of model.text.heads")
	}
	k.BelowOne("dropout")
	k.NotNegative("eps")
	k.OneOfOrEmpty("style", StyleBERT, StyleRoBERTa, StyleMPNet, StyleCLIP, StyleCoCa, StyleSigLIP,
		StyleGRU, StyleBlock)
	activations := []string{"gelu", "gelu_tanh", "quick_gelu"}
	if t.Style == StyleBlock {
		if activations = append(activations, "silu"); !t.Block.Gated {
			activations = append(activations, "relu")
		}
	}
	k.OneOfOrEmpty("activation", activations...)
	k.OneOfOrEmpty("pool", "class", "pooler", "mean", "first_last", "end", "weighted_mean", "max", "gpo", "esa")
	class, bert := t.Pooling() == "class", t.MasksWords() || t.Style == StyleMPNet
	k.Require("positions", t.Style != StyleCoCa || k.Number("data.tokens") < float64(t.Positions),
		`must be more than data.tokens with model.text.style "coca"`, "its token stands behind all places of a text")
	k.Require("pool", t.Style != StyleCoCa || class, `must be class with model.text.style "coca"`,
		"its token behind the words is what stands for a text")
	k.Require("pool", !t.PreNorm() || !class || t.Style == StyleCoCa,
		"must be mean, end, max, gpo or esa with a pre-norm style, whose first token stands for nothing")
	k.Require("pool", t.Style != StyleGRU || !class,
		"must be mean, end, max, gpo or esa with model.text.style \"gru\", whose first state has seen one word")
	k.Require("pool", t.Pool != PoolFirstLast || bert,
		"must be class, mean, end, max, gpo or esa with a model.text.style other than bert, roberta and mpnet",
		"first_last reads the states behind the first layer of these")
	k.Require("pool", t.Pool != PoolFirstLast || t.Layers > 0, "must be another without layers",
		"first_last reads the states behind two of them")
	k.Require("pool", t.Pool != PoolPooler || bert || t.Style == StyleBlock,
		"must not be pooler with a model.text.style other than bert, roberta, mpnet and block",
		"they have no first token that stands for a text")
	k.Require("fusion_layers", t.FusionLayers == 0 || k.Has(section.Fusion) || !k.Has(section.Words), "must be 0",
		k.Named()+" has no fusion layers")
	k.Require("fusion_layers", t.FusionLayers > 0 || !k.Has(section.FusedPairs) || !k.Has(section.Fusion),
		"must be > 0", "objective.itm and objective.mlm read the fusion layers")
	k.Require("style", !k.Has(section.Fusion) || t.FusionLayers == 0 || t.MasksWords(),
		"must be bert or roberta with fusion layers, which matching and masked language modelling read",
		"set model.text.fusion_layers, objective.itm.weight and objective.mlm.weight to 0, or choose another style")
	head := section.Of[HeadOptions](k)
	k.Training("freeze", !t.Freeze || !section.Of[ImageOptions](k).Freeze || head.Identity != "both" ||
		t.FusionLayers > 0, "must be false where no other part is trained",
		"model.head.identity = \"both\" leaves nothing to train beside the towers")
	if space, err := head.Space(); err == nil && space.Tokens && k.Has(section.Words) {
		k.Require("style", t.MasksWords(), "must be bert or roberta with several class tokens", oneClassCure)
		k.Require("pool", class, "must be class with several class tokens", oneClassCure)
	}
}

// Tower returns the tower of a style.
func (t TextOptions) Tower(a TowerArgs) TextTower {
	return TextTower{
		Encoder: t.Encoder(a), Tokens: a.Tokens, Pool: Pool(t.Pooling()), Padding: t.Style == StyleSigLIP,
		Begin: a.Begin, End: a.End,
	}
}

// Encoder returns the text encoder of a style, with the fusion layers.
func (t TextOptions) Encoder(a TowerArgs) TextEncoder {
	torch := a.System == "clip"
	t.Eps = t.LayerNormEps(a.System)
	switch {
	case t.Style == StyleGRU:
		g := t.Recurrent()
		g.Vocab, g.Dropout = a.Vocab, t.Dropout
		return g
	case t.Style == StyleBlock:
		t.Activation = StyleActivation(t.Style, t.Activation)
		return BlockText{TextOptions: t, Vocab: a.Vocab, Pad: a.Pad, Metric: a.Metric.at(AttendText)}
	case t.PreNorm():
		t.Activation = StyleActivation(t.Style, t.Activation)
		return PreNormText{TextOptions: t, Vocab: a.Vocab, Causal: t.Style != StyleSigLIP, Behind: t.Style == StyleCoCa,
			TorchStart: torch, Metric: a.Metric.at(AttendText)}
	}
	b := BERT{TextOptions: t, Vocab: a.Vocab, Pad: a.Pad, Classes: a.Space.Classes(), TokenBlocks: a.TokenBlocks,
		TorchStart: torch, Metric: a.Metric.at(AttendText), FusionMetric: a.Metric.at(AttendFusion)}
	mtob := t.Style == "" && torch // clip-mtob's
	b.NoTokenType, b.FinalNorm = mtob || t.Style == StyleRoBERTa || t.Style == StyleMPNet, mtob
	if t.Style == StyleMPNet {
		b.Relative = mpnetBuckets
	}
	return b
}

// mpnetBuckets are those of MPNet's bias by distance.
const mpnetBuckets = 32

// PreNorm says whether the layers of a style have their norms first.
func (t TextOptions) PreNorm() bool {
	return t.Style == StyleCLIP || t.Style == StyleCoCa || t.Style == StyleSigLIP
}

// MasksWords says whether a style is of the layers that masked language modelling and fusion
// are made of.
func (t TextOptions) MasksWords() bool {
	return slices.Contains([]string{"", StyleBERT, StyleRoBERTa}, t.Style)
}

// Pooling returns what stands for a text: class, pooler, mean, end, max, gpo or esa.
func (t TextOptions) Pooling() string {
	switch {
	case t.Pool != "":
		return t.Pool
	case t.PreNorm() && t.Style != StyleCoCa || t.Style == StyleGRU:
		return "end"
	}
	return "class"
}

// ReadsClass says whether the first token stands for a text.
func (t TextOptions) ReadsClass() bool {
	return t.Style != StyleCoCa && (t.Pooling() == "class" || t.Pooling() == "pooler")
}

// LayerNormEps returns the epsilon of the layer norms in a system, what 0 stands for included.
func (t TextOptions) LayerNormEps(system string) float64 {
	switch {
	case t.Eps != 0:
		return t.Eps
	case t.Style == StyleSigLIP:
		return vitEps
	case t.Style == StyleRoBERTa, t.Style == StyleMPNet, t.Style == StyleCLIP, t.Style == StyleCoCa, t.Style == "" && system == "clip":
		return torchEps
	}
	return bertEps
}

// Recurrent returns the recurrent units of the style.
func (t TextOptions) Recurrent() GRU {
	g := t.GRU
	g.Layers, g.Width = t.Layers, t.Width
	return g
}

// Weights counts the weights of the matrices of the tower, without those of words and of fusion layers.
func (t TextOptions) Weights() int64 {
	if t.Style == StyleGRU {
		return t.Recurrent().Weights()
	}
	if b := t.Block; t.Style == StyleBlock {
		n := t.BlockWeights() * int64(defaultTo(b.Shared, t.Layers))
		if b.Places == PlacesLearned {
			n += int64(t.Positions) * int64(defaultTo(b.EmbedWidth, t.Width))
		}
		return n
	}
	return t.BlockWeights()*int64(t.Layers) + int64(t.Positions)*int64(t.Width)
}

// BlockWeights counts the weights of the matrices of a layer without cross-attention.
func (t TextOptions) BlockWeights() int64 {
	if t.Style == StyleBlock && t.Heads > 0 {
		return t.Block.weights(t.Width, t.Heads, defaultTo(t.MLP, 4*t.Width))
	}
	return int64(t.Width) * (4*int64(t.Width) + 2*int64(defaultTo(t.MLP, 4*t.Width)))
}

// TextEncoder is a transformer over token ids.
type TextEncoder interface {
	// Text encodes R texts into (R*L, D), or with at into the states at M places alone, (M, D).
	Text(c *Context, s Scope, a TextArgs, at *Places) *gorgonia.Node
	// TextClasses encodes R texts with m class tokens: classes (R*m, D), and with all also
	// states (R*L, D).
	TextClasses(c *Context, s Scope, a TextArgs, all bool) (states, classes *gorgonia.Node)
	classes() int
	width() int
}

// TextTower is a text transformer as a tower.
type TextTower struct {
	Encoder TextEncoder
	Tokens  int // L, token places of a text
	// Pool says what stands for a text; empty: its class tokens. The others are of one token.
	Pool Pool
	// Padding: padding is read like words, as SigLIP does, and the last place of a text is the
	// last of its places. Lengths are those of its words all the same.
	Padding bool
	// Segments: a token has one of two types, as the column batch.Segments says; else all have the first.
	Segments bool
	// Begin and End are the tokens that stand around the words of every text, such as [CLS].
	Begin, End int
}

var _ Shorter = TextTower{}

// Columns are the ids of a text, (L), how many of them are no padding, and their types with Segments.
func (t TextTower) Columns() []batch.Column {
	list := []batch.Column{
		{Name: batch.Tokens, Shape: []int{t.Tokens}, Type: batch.Int32},
		{Name: batch.Lengths, Type: batch.Int32},
	}
	if t.Segments {
		list = append(list, batch.Column{Name: batch.Segments, Shape: []int{t.Tokens}, Type: batch.Int32})
	}
	return list
}

// Shortens says whether padding is not read and nothing stands behind it.
func (t TextTower) Shortens() bool { return !t.Padding && !t.behind() }

// behind says whether what stands for a text is a token behind all places.
func (t TextTower) behind() bool {
	p, ok := t.Encoder.(PreNormText)
	return ok && p.Behind
}

// Shorter returns the tower with l places.
func (t TextTower) Shorter(l int) Tower {
	t.Tokens = l
	return t
}

// Classes returns m.
func (t TextTower) Classes() int { return t.Encoder.classes() }

// Shape returns the tokens of a row and their width.
func (t TextTower) Shape() (length, width int) { return t.Tokens, t.Encoder.width() }

// FirstIsClass says whether the first token of a text is all that stands for it.
func (t TextTower) FirstIsClass() bool { return t.Pool.byClass() && t.Classes() == 1 && !t.behind() }

// Encode encodes R texts. With tokens alone a text has one class token, whatever Classes
// says; without tokens the last layer computes no query but those of what is read.
func (t TextTower) Encode(c *Context, s Scope, in Inputs, want Want) Sequence {
	q := Sequence{Lengths: in[batch.Lengths], Len: t.Tokens, Width: t.Encoder.width(), Begin: t.Begin, End: t.End}
	a := TextArgs{IDs: in[batch.Tokens], Lengths: q.Lengths, Len: t.Tokens}
	if t.Segments {
		if _, ok := t.Encoder.(BERT); !ok {
			misuse("text", a.IDs, "types of tokens are those of BERT")
		}
		a.Segments = in[batch.Segments]
	}
	if t.Padding {
		a.Lengths = nil
	}
	switch {
	case !want.Classes:
		q.Tokens = t.Encoder.Text(c, s, a, nil)
	case t.Pool.byClass():
		q.Tokens, q.Classes = t.Encoder.TextClasses(c, s, a, want.Tokens)
	case t.Pool == PoolPooler:
		q.Tokens, q.Classes = t.Encoder.TextClasses(c, s, a, want.Tokens)
		q.Classes = nn.Tanh(linear(s, "pooler", from(bertInit), q.Classes, q.Width)) // (R, D)
	case t.Pool == PoolMean:
		q.Tokens = t.Encoder.Text(c, s, a, nil)
		q.Classes = meanWords(s.tap.pooled(q.Tokens, q.Len), q.Lengths, q.Len)
	case t.Pool == PoolFirstLast:
		b, ok := t.Encoder.(BERT)
		if !ok {
			misuse("text", a.IDs, "pool %q reads layers of BERT", t.Pool)
		}
		var first *gorgonia.Node
		first, q.Tokens = b.firstLast(c, s, a)
		q.Classes = meanWords(arith.Combine([]float32{.5, .5}, first, s.tap.pooled(q.Tokens, q.Len)), q.Lengths, q.Len)
	case t.Pool == PoolWeighted || t.Pool == PoolMax || t.Pool == PoolGPO || t.Pool == PoolESA:
		q.Tokens = t.Encoder.Text(c, s, a, nil)
		q.Classes = t.Pool.of(s, s.tap.pooled(q.Tokens, q.Len), q.Lengths, q.Len)
	case t.Pool == PoolEnd && t.recurrent():
		q.Tokens, q.Classes = t.Encoder.(GRU).ends(c, s, a)
	case t.Pool == PoolEnd && want.Tokens:
		q.Tokens = t.Encoder.Text(c, s, a, nil)
		q.Classes = t.last(a).of(q.Tokens)
	case t.Pool == PoolEnd:
		q.Classes = t.Encoder.Text(c, s, a, t.last(a))
	default:
		misuse("text", a.IDs, "pool must be class, pooler, mean, first_last, weighted_mean, max, gpo, esa or end (got %q)", t.Pool)
	}
	if t.Classes() > 1 && !t.Pool.byClass() {
		misuse("text", a.IDs, "pool %q goes with one class token (got %d)", t.Pool, t.Classes())
	}
	if !want.Tokens {
		q.Tokens = nil
	}
	return q
}

// recurrent says whether the last states of a text are more than the state at one place.
func (t TextTower) recurrent() bool {
	_, ok := t.Encoder.(GRU)
	return ok
}

// last are the last places of texts.
func (t TextTower) last(a TextArgs) *Places {
	lengths := a.Lengths
	if lengths == nil {
		lengths = layout.FullLengths(a.IDs, a.Len)
	}
	return lastPlaces(lengths, a.Len)
}
