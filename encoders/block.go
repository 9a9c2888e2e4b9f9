package encoders

import (
	"cmp"
	"math"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/attention"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// Block is a transformer layer by its options, of model.text.style "block": what the layers of most published encoders
// of texts are made of.
type Block struct {
	// norms: layer (Ba et al. 2016) | rms (by the root of the mean square, Zhang and Sennrich 2019, without biases)
	Norm string `toml:"norm" fixed:"model"`
	// where they stand: pre (in front of attention and MLP) | post (behind the addition of what these give) | sandwich
	// (in front of them and behind, before the addition)
	Order string `toml:"order" fixed:"model"`
	// the first layer has a norm in front of its attention; false goes with pre
	FirstNorm bool `toml:"first_norm" when:"order=pre" fixed:"model"`
	// a norm behind the last layer
	FinalNorm bool `toml:"final_norm" fixed:"model"`
	// of queries and keys, head by head: empty (none) | layer | rms
	QKNorm string `toml:"qk_norm" fixed:"model"`

	// channels of a head; 0: width / heads
	HeadWidth int `toml:"head_width" fixed:"model" max:"65536"`
	// heads of keys and values, a divisor of heads: several heads of queries read one of them; 0: as many
	KeyHeads int `toml:"key_heads" fixed:"model" max:"1024"`
	// scores are q k times this; 0: 1 / sqrt(head width)
	Scale float64 `toml:"scale" fixed:"meaning" max:"1024"`
	// a word sees itself and those before it
	Causal bool `toml:"causal" fixed:"meaning"`
	// farthest distance of a word that attention reads; 0: no limit
	Window int `toml:"window" fixed:"meaning" max:"65536"`
	// with a window: every so many layers one reads all words; 0: none does
	GlobalEvery int `toml:"global_every" when:"window>0" fixed:"meaning" max:"128"`
	// which of so many layers that is, counted from 0
	GlobalAt int `toml:"global_at" when:"window>0" fixed:"meaning" max:"128"`

	// how places are told: learned (a table) | rotary (queries and keys are turned, Su et al. 2021) | alibi (scores
	// fall with the distance, Press et al. 2022) | buckets (a learned bias of scores by the distance, as in T5) |
	// disentangled (scores of words with embeddings of distances, He et al. 2021, as in DeBERTa) | none
	Places string `toml:"places" fixed:"model"`
	// rotary: base of the wavelengths
	Theta float64 `toml:"theta" when:"places=rotary" fixed:"meaning" max:"1e12"`
	// rotary: that of layers with a window; 0: theta
	LocalTheta float64 `toml:"local_theta" when:"places=rotary" fixed:"meaning" max:"1e12"`
	// rotary: places are divided by this in layers without a window
	Stretch float64 `toml:"stretch" when:"places=rotary" fixed:"meaning" max:"1e6"`
	// rotary: channels of a head that are turned, the first ones; 0: all
	Turned int `toml:"turned" when:"places=rotary" fixed:"meaning" max:"65536"`
	// rotary: channels 2i and 2i+1 are turned together, else those of two halves
	Adjacent bool `toml:"adjacent" when:"places=rotary" fixed:"meaning"`
	// buckets, disentangled: how many, a multiple of 4
	Buckets int `toml:"buckets" when:"places=buckets or places=disentangled" fixed:"model" max:"65536"`
	// buckets, disentangled: distance from which on all words share one; 0 with disentangled: all distances have their own
	Farthest int `toml:"farthest" when:"places=buckets or places=disentangled" fixed:"meaning" max:"65536"`
	// disentangled: a norm of the embeddings of distances
	RelativeNorm bool `toml:"relative_norm" when:"places=disentangled" fixed:"model"`

	// the MLP is gated: act(x G) * (x U), then one layer back (Shazeer 2020)
	Gated bool `toml:"gated" fixed:"model"`
	// biases of queries, keys and values
	QKVBias bool `toml:"qkv_bias" fixed:"model"`
	// of the layer behind the attention
	OutputBias bool `toml:"output_bias" fixed:"model"`
	// of the first layer of the MLP
	UpBias bool `toml:"up_bias" fixed:"model"`
	// of its last layer
	DownBias bool `toml:"down_bias" fixed:"model"`
	// of layer norms
	NormBias bool `toml:"norm_bias" when:"norm=layer" fixed:"model"`
	// layers have the parameters of so many, each of which stands for as many layers in a row (ALBERT, Lan et al. 2020);
	// 0: all have their own
	Shared int `toml:"shared" fixed:"model" max:"128"`

	// width of the embeddings of words, which a layer brings to that of the tower (ALBERT, ELECTRA); 0: that of the
	// tower, without such a layer
	EmbedWidth int `toml:"embed_width" fixed:"model" max:"65536"`
	// embeddings are multiplied by this; 0: 1
	EmbedScale float64 `toml:"embed_scale" fixed:"meaning" max:"65536"`
	// a norm behind the embeddings
	EmbedNorm bool `toml:"embed_norm" fixed:"model"`
	// rows of a table of types of tokens, of which the first is added to every word; 0: none
	Types int `toml:"types" fixed:"model" max:"1024"`
}

// Values of Block.
const (
	NormLayer     = "layer"
	NormRoot      = "rms"
	OrderPre      = "pre"
	OrderPost     = "post"
	OrderSandwich = "sandwich"
	PlacesLearned = "learned"
	PlacesRotary  = "rotary"
	PlacesLinear  = "alibi"
	PlacesBuckets = "buckets"
	PlacesApart   = "disentangled"
	PlacesNone    = "none"
)

// Defaults implements section.Defaulter.
func (b *Block) Defaults() {
	*b = Block{Norm: NormLayer, Order: OrderPre, FirstNorm: true, FinalNorm: true, Places: PlacesLearned, Theta: 1e4,
		Stretch: 1, Buckets: 32, Farthest: farthest, QKVBias: true, OutputBias: true, UpBias: true, DownBias: true,
		NormBias: true}
}

// Check implements section.Checked.
func (b *Block) Check(k *section.Checker) {
	t := section.Of[TextOptions](k)
	k.NotNegative("head_width", "key_heads", "scale", "window", "global_every", "global_at", "theta", "local_theta",
		"turned", "stretch", "buckets", "farthest",
		"shared", "embed_width", "embed_scale", "types")
	if t.Style != StyleBlock {
		return
	}
	k.OneOf("norm", NormLayer, NormRoot)
	k.OneOf("order", OrderPre, OrderPost, OrderSandwich)
	k.OneOfOrEmpty("qk_norm", NormLayer, NormRoot)
	k.OneOf("places", PlacesLearned, PlacesRotary, PlacesLinear, PlacesBuckets, PlacesApart, PlacesNone)
	k.Require("key_heads", b.KeyHeads <= 0 || t.Heads%b.KeyHeads == 0, "must divide model.text.heads")
	k.Require("global_at", b.GlobalEvery <= 0 || b.GlobalAt < b.GlobalEvery, "must be below global_every")
	k.Require("shared", b.Shared <= 0 || b.Shared <= t.Layers, "must be at most model.text.layers")
	switch b.Places {
	case PlacesRotary:
		k.Positive("theta", "stretch")
		if t.Heads > 0 {
			e := b.headWidth(t.Width, t.Heads)
			k.Require("turned", b.turned(e)%2 == 0 && b.turned(e) <= e,
				"must be even, and at most the channels of a head", "channels are turned in pairs")
		}
	case PlacesApart:
		k.Positive("buckets")
		k.Require("buckets", b.Buckets%4 == 0, "must be a multiple of 4")
		k.Require("farthest", b.Farthest == 0 || b.Farthest > b.Buckets/4+1, "must be above a quarter of buckets, or 0",
			"so many distances have a bucket of their own")
		k.Require("key_heads", b.KeyHeads == 0 || b.KeyHeads == t.Heads, "must be 0 with disentangled places")
		k.Require("window", b.Window == 0, "must be 0 with disentangled places")
	case PlacesBuckets:
		k.Positive("buckets")
		k.Require("buckets", b.Buckets%4 == 0, "must be a multiple of 4")
		k.Require("farthest", b.Farthest > b.Buckets/4, "must be above a quarter of buckets",
			"so many distances have a bucket of their own")
	}
}

func (b Block) headWidth(width, heads int) int { return defaultTo(b.HeadWidth, width/heads) }

func (b Block) turned(head int) int { return defaultTo(b.Turned, head) }

// layerOf returns which parameters layer i of n has.
func (b Block) layerOf(i, n int) int {
	if b.Shared == 0 {
		return i
	}
	return i * b.Shared / n
}

// local says whether attention of layer i reads a window.
func (b Block) local(i int) bool {
	return b.Window > 0 && (b.GlobalEvery == 0 || i%b.GlobalEvery != b.GlobalAt)
}

// weights counts those of the matrices of a layer.
func (b Block) weights(width, heads, mlp int) int64 {
	e, keys, parts := b.headWidth(width, heads), defaultTo(b.KeyHeads, heads), 2
	if b.Gated {
		parts = 3
	}
	return int64(width) * (int64(2*heads+2*keys)*int64(e) + int64(parts)*int64(mlp))
}

// norm is a norm of rows by its name.
func (b Block) norm(s Scope, name string, x *gorgonia.Node, eps float32) *gorgonia.Node {
	if b.Norm == NormLayer && b.NormBias {
		return norm(s, name, x, eps)
	}
	return groupNorm(s.In(name), b.Norm, x, 0, 0, columns(name, x), eps)
}

// groupNorm normalises groups of e columns, the n from the given one on, without a bias.
func groupNorm(s Scope, kind string, x *gorgonia.Node, from, n, e int, eps float32) *gorgonia.Node {
	y := nn.GroupNorm(nn.GroupNormArgs{X: x, Gamma: s.Param("weight", Const(1), e), From: from, Len: n, Eps: eps,
		Root: kind == NormRoot})
	if n > 0 { // of heads
		return y
	}
	return s.scaledShifted(y, 0, e, false)
}

// dense is a linear layer with a bias or without.
func dense(s Scope, name string, x *gorgonia.Node, out int, bias bool) *gorgonia.Node {
	if bias {
		return linear(s, name, from(bertInit), x, out)
	}
	return linearNoBias(s, name, from(bertInit), x, out)
}

// BlockText is a text transformer whose layers are those of Block.
type BlockText struct {
	TextOptions
	Vocab  int             // V
	Pad    int             // as in BERT
	Metric AttentionMetric // of self-attention
}

var _ TextEncoder = BlockText{}

func (b BlockText) classes() int { return 1 }
func (b BlockText) width() int   { return b.Width }
func (b BlockText) eps() float32 { return float32(b.Eps) }

// Text encodes texts into (R*L, D), or with at into the states at M places alone, (M, D). Tokens beyond a text's length
// are not attended to, unless Lengths is nil.
func (b BlockText) Text(c *Context, s Scope, a TextArgs, at *Places) *gorgonia.Node {
	if b.Heads < 1 {
		misuse("text", a.IDs, "want at least one head (got %d)", b.Heads)
	}
	s = s.transformer(b.Layers)
	if s.prompts() > 0 {
		misuse("text", a.IDs, "prompts have no place among those of model.text.block (got %d)", s.prompts())
	}
	c.given(a.IDs.Shape()[0], a.Len)
	x := b.embed(c, s, a) // (R*L, D)
	o := b.Block
	whole, near := b.bias(s, a, 0), b.bias(s, a, o.Window)
	distances := b.distances(s)
	for i := range b.Layers {
		layer, bias := s.Layer("layers", o.layerOf(i, b.Layers)), whole
		if o.local(i) {
			bias = near
		}
		s.block(func() {
			y := x
			if o.Order != OrderPost && (i > 0 || o.FirstNorm || o.Order == OrderSandwich) {
				y = o.norm(layer, "norm1", x, b.eps())
			}
			s.tap.tokens(i, y, a.Len)
			x = b.added(c, layer, "norm1", x, b.attend(c, layer.In("attention"), y, i, bias, distances, a))
			if y = x; o.Order != OrderPost {
				y = o.norm(layer, "norm2", x, b.eps())
			}
			x = b.added(c, layer, "norm2", x, b.feedForward(layer.In("ffn"), y))
		})
	}
	if o.FinalNorm {
		x = o.norm(s, "norm", x, b.eps())
	}
	if at != nil {
		return at.of(x)
	}
	return x
}

// TextClasses encodes texts as Text does, with their first tokens, (R, D), beside them. Without all, states is nil.
func (b BlockText) TextClasses(c *Context, s Scope, a TextArgs, all bool) (states, classes *gorgonia.Node) {
	states = b.Text(c, s, a, nil)
	classes = leading(states, 1, a.Len)
	if !all {
		states = nil
	}
	return states, classes
}

// added is x + dropout(h), with the norm that stands behind h, or behind the sum.
func (b BlockText) added(c *Context, layer Scope, name string, x, h *gorgonia.Node) *gorgonia.Node {
	o := b.Block
	if o.Order == OrderSandwich {
		h = o.norm(layer, name+"_out", h, b.eps())
	}
	x = arith.Add(x, c.dropout(h, b.Dropout))
	if o.Order == OrderPost {
		x = o.norm(layer, name, x, b.eps())
	}
	return x
}

// embed returns the embeddings of words with what is added to them: (R*L, D).
func (b BlockText) embed(c *Context, s Scope, a TextArgs) *gorgonia.Node {
	o, width := b.Block, defaultTo(b.Block.EmbedWidth, b.Width)
	s = s.In("embeddings").As(Traits{Front: true})
	x := nn.EmbedPadded(s.Param("word/weight", bertInit, b.Vocab, width), a.IDs, b.Pad)
	if o.EmbedScale != 0 && o.EmbedScale != 1 {
		x = arith.Combine([]float32{float32(o.EmbedScale)}, x)
	}
	if o.Types > 0 {
		x = nn.AddPositions(x, s.Param("token_type/weight", bertInit, o.Types, width), 1)
	}
	if o.Places == PlacesLearned {
		x = nn.AddPositions(x, s.Param("position/weight", bertInit, b.Positions, width), a.Len)
	}
	if o.EmbedNorm {
		x = o.norm(s, "norm", x, b.eps())
	}
	x = c.dropout(x, b.Dropout)
	if o.EmbedWidth > 0 {
		x = dense(s, "project", x, b.Width, true)
	}
	return x
}

// bias is what is added to the scores of attention within a window, 0: without one: (H, L, L), or nil.
func (b BlockText) bias(s Scope, a TextArgs, window int) (bias *gorgonia.Node) {
	o := b.Block
	if o.Places == PlacesBuckets {
		bias = attention.RelativeBias(s.As(Traits{Front: true}).Param("relative/weight", bertInit, o.Buckets, b.Heads),
			a.Len, a.Len, o.Farthest)
	}
	if d := (attention.DistanceArgs{Heads: b.Heads, Len: a.Len, Window: window,
		Linear: o.Places == PlacesLinear}); d.Linear || window > 0 && window < a.Len-1 {
		near := attention.DistanceBias(a.IDs, d)
		if bias == nil {
			return near
		}
		return arith.Add(bias, near)
	}
	return bias
}

// distances are the embeddings of distances, (N, D), nil where no attention reads them.
func (b BlockText) distances(s Scope) *gorgonia.Node {
	o := b.Block
	if o.Places != PlacesApart {
		return nil
	}
	s = s.As(Traits{Front: true})
	x := s.Param("relative/weight", bertInit, o.Buckets, b.Width)
	if o.RelativeNorm {
		x = o.norm(s, "relative_norm", x, b.eps())
	}
	return x
}

// angles are those of layer i for l places.
func (b BlockText) angles(i, l int) (a attention.Angles) {
	o := b.Block
	if o.Places != PlacesRotary {
		return a
	}
	theta, stretch := cmp.Or(o.Theta, 1e4), cmp.Or(o.Stretch, 1)
	if o.local(i) {
		if stretch = 1; o.LocalTheta > 0 {
			theta = o.LocalTheta
		}
	}
	return attention.TextAngles(l, o.turned(o.headWidth(b.Width, b.Heads))/2, theta, stretch, o.Adjacent)
}

// attend is the self-attention of layer i for states y (R*L, D), through its output layer.
func (b BlockText) attend(c *Context, s Scope, y *gorgonia.Node, i int, bias, distances *gorgonia.Node,
	a TextArgs) *gorgonia.Node {
	o, e := b.Block, b.Block.headWidth(b.Width, b.Heads)
	keys := defaultTo(o.KeyHeads, b.Heads)
	qkv := dense(s, "qkv", y, (b.Heads+2*keys)*e, o.QKVBias)
	if o.QKNorm != "" {
		qkv = groupNorm(s.In("q_norm"), o.QKNorm, qkv, 0, b.Heads*e, e, b.eps())
		qkv = groupNorm(s.In("k_norm"), o.QKNorm, qkv, b.Heads*e, keys*e, e, b.eps())
	}
	if distances != nil { // through the layer of queries, keys and values of words
		bias = attention.Disentangled(attention.DisentangledArgs{QKV: qkv, Len: a.Len, Heads: b.Heads,
			Distances: dense(s, "qkv", distances, 3*b.Heads*e, o.QKVBias), Farthest: o.Farthest,
			Scale: float32(cmp.Or(o.Scale, 1/math.Sqrt(float64(e))))})
	}
	if h := (attention.HeadsArgs{QKV: qkv, Heads: b.Heads, Shared: keys, Len: a.Len, Angles: b.angles(i, a.Len),
		Scale: float32(o.Scale * math.Sqrt(float64(e)))}); keys != b.Heads || h.Angles.Pairs > 0 || o.Scale != 0 {
		qkv = attention.Heads(h)
	}
	qkv = b.Metric.fold(s, qkv, b.Heads*e, b.Heads*e, b.Heads)
	bits := c.bits(sequences("attention", y, a.Len)*b.Heads*a.Len, a.Len, b.Dropout)
	h := attention.SelfAttention(attention.SelfArgs{QKV: qkv, Lengths: a.Lengths, Bits: bits, Bias: bias,
		Causal: o.Causal, Len: a.Len, Heads: b.Heads, Keep: keep(b.Dropout)})
	return s.bottleneck(dense(s, "output", h, b.Width, o.OutputBias))
}

// feedForward is the MLP of a layer for states y (R*L, D).
func (b BlockText) feedForward(s Scope, y *gorgonia.Node) *gorgonia.Node {
	o, hidden := b.Block, defaultTo(b.MLP, 4*b.Width)
	switch {
	case o.Gated:
		y = nn.Gated(dense(s, "intermediate", y, 2*hidden, o.UpBias), b.Activation)
	case b.Activation == "relu":
		y = nn.ReLU(dense(s, "intermediate", y, hidden, o.UpBias))
	case o.UpBias:
		y = linearActivated(s, "intermediate", from(bertInit), y, hidden, b.Activation)
	default:
		y = nn.Activated(dense(s, "intermediate", y, hidden, false), b.Activation)
	}
	return s.bottleneck(dense(s, "output", y, b.Width, o.DownBias))
}
