package encoders

import (
	"cmp"
	"math"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/ops/attention"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// ImageBlock is a vision transformer by its options, of model.image.style "block": what published towers of images add
// to the styles, and leave out of them.
type ImageBlock struct {
	// a learned token before the patches
	ClassToken bool `toml:"class_token" fixed:"model"`
	// patches are embedded with a bias
	PatchBias bool `toml:"patch_bias" fixed:"model"`
	// a learned table of positions is added to class token and patches
	Positions bool `toml:"positions" fixed:"model"`
	// a norm before the first block
	FirstNorm bool `toml:"first_norm" fixed:"model"`
	// a norm behind the last block
	FinalNorm bool `toml:"final_norm" fixed:"model"`
	// a norm behind the pool
	PoolNorm bool `toml:"pool_norm" fixed:"model"`
	// the pools mean and attention read class token and registers too
	PoolAll bool `toml:"pool_all" when:"model.image.pool=mean|attention" fixed:"meaning"`
	// heads of the pool attention; 0: model.image.heads
	PoolHeads int `toml:"pool_heads" when:"model.image.pool=attention" fixed:"meaning" max:"1024"`
	// hidden width of its MLP; 0: model.image.mlp
	PoolMLP int `toml:"pool_mlp" when:"model.image.pool=attention" fixed:"model" max:"262144"`

	// the pool attention reads tokens through a norm, maps them to this width and has no MLP, as in CoCa; 0: SigLIP's
	PoolWidth int `toml:"pool_width" when:"model.image.pool=attention" fixed:"model" max:"65536"`

	// layer norms of queries and keys, head by head
	QKNorm bool `toml:"qk_norm" fixed:"model"`
	// a norm before the last layer of the attention
	AttentionNorm bool `toml:"attention_norm" fixed:"model"`
	// a norm before the last layer of the MLP
	MLPNorm bool `toml:"mlp_norm" fixed:"model"`
	// the MLP is gated: act(x G) * (x U), then one layer back (Shazeer 2020)
	Gated bool `toml:"gated" fixed:"model"`
	// what attention and MLP add is scaled by channel (Touvron et al. 2021)
	LayerScale bool `toml:"layer_scale" fixed:"model"`
	// scores have a learned bias by how a key lies to its query, of each head and block (BEiT, Bao et al. 2022)
	Relative bool `toml:"relative" fixed:"model"`

	// queries and keys are turned by row and column of a patch (Su et al. 2021, in two dimensions): empty (they are
	// not) | cells (by the number of the row and column, EVA-02) | centred (by the place from -1 to 1, DINOv3)
	Rotary string `toml:"rotary" fixed:"meaning"`
	// rotary: base of the wavelengths
	Theta float64 `toml:"theta" when:"rotary=cells|centred" fixed:"meaning" max:"1e12"`
	// rotary, cells: the grid is as wide as one of so many cells; 0: as it is
	Reference float64 `toml:"reference" when:"rotary=cells" fixed:"meaning" max:"65536"`
	// rotary: added to the number of row and column
	Offset float64 `toml:"offset" when:"rotary=cells|centred" fixed:"meaning" max:"65536"`
	// rotary: the first half of the channels is turned by columns, else by rows
	ColumnsFirst bool `toml:"columns_first" when:"rotary=cells|centred" fixed:"meaning"`
	// rotary: channels 2i and 2i+1 are turned together, else those of two halves
	Adjacent bool `toml:"adjacent" when:"rotary=cells|centred" fixed:"meaning"`
}

// Values of ImageBlock.Rotary.
const (
	RotaryCells   = "cells"
	RotaryCentred = "centred"
)

// Defaults implements section.Defaulter: those of style vit.
func (b *ImageBlock) Defaults() { *b = plainImageBlock }

var plainImageBlock = ImageBlock{ClassToken: true, PatchBias: true, Positions: true, FinalNorm: true, Theta: 1e4}

// Check implements section.Checked.
func (b *ImageBlock) Check(k *section.Checker) {
	i := section.Of[ImageOptions](k)
	k.NotNegative("pool_heads", "pool_mlp", "pool_width", "theta", "reference", "offset")
	if i.Style != StyleBlock {
		return
	}
	k.OneOfOrEmpty("rotary", RotaryCells, RotaryCentred)
	k.Require("class_token", b.ClassToken || i.Pooling() != PoolClass, `must be true with model.image.pool "class"`)
	heads := defaultTo(b.PoolHeads, i.Heads)
	k.Require("pool_heads", heads <= 0 || b.PoolHeads <= 0 && b.PoolWidth <= 0 || defaultTo(b.PoolWidth, i.Width)%heads == 0,
		"must divide pool_width, or model.image.width without it")
	k.Require("final_norm", b.PoolWidth <= 0 || !b.FinalNorm && b.PoolNorm, "must be false with pool_width, and pool_norm true")
	if b.Rotary != "" {
		k.Positive("theta")
		k.Require("rotary", i.Heads <= 0 || i.Width/i.Heads%4 == 0, "must be empty, or heads have a multiple of 4 channels",
			"a quarter of a head is turned by rows and by columns each, in pairs")
	}
	k.Require("positions", b.Positions || b.Rotary != "" || b.Relative, "must be true without rotary and relative",
		"nothing would say where a patch is")
}

// options are those of the tower, which are fixed where the style is not block.
func (v ViT) options() ImageBlock {
	if v.Style == StyleBlock {
		return v.Block
	}
	return plainImageBlock
}

// plain says whether attention reads queries and keys as the first layer makes them.
func (b ImageBlock) plain() bool { return !b.QKNorm && b.Rotary == "" && !b.Relative }

// angles are those of t tokens, of which the last P are patches.
func (v ViT) angles(t int) attention.Angles {
	o, g := v.options(), v.Grid()
	at := func(p int) float64 { return p64(float64(p) + o.Offset) }
	switch {
	case o.Rotary == RotaryCentred:
		at = func(p int) float64 {
			return p64(2 * math.Pi * p64(2*p64((float64(p)+.5+o.Offset)/float64(g))-1))
		}
	case o.Reference > 0:
		at = func(p int) float64 { return p64((float64(p) + o.Offset) / float64(g) * o.Reference) }
	}
	return attention.GridAngles(attention.GridArgs{Before: t - g*g, Grid: g, Quarter: v.Width / v.Heads / 4, Theta: o.Theta,
		At: at, ColumnsFirst: o.ColumnsFirst, Adjacent: o.Adjacent})
}

// p64 rounds as tables of float32 are, whose far places would be elsewhere otherwise.
func p64(x float64) float64 { return float64(float32(x)) }

// located is qkv (B*t, 3D) with queries and keys normalised and turned, and the bias of their scores, nil without.
func (v ViT) located(b Scope, qkv *gorgonia.Node, t int) (_, bias *gorgonia.Node) {
	o, e := v.options(), v.Width/v.Heads
	if o.QKNorm {
		for i, name := range []string{"q_norm", "k_norm"} {
			s := b.In(name)
			qkv = nn.GroupNorm(nn.GroupNormArgs{X: qkv, Gamma: s.Param("weight", Const(1), e), Beta: s.bias(Zeros, e),
				From: i * v.Width, Len: v.Width, Eps: v.eps()})
		}
	}
	if o.Rotary != "" {
		qkv = attention.Heads(attention.HeadsArgs{QKV: qkv, Heads: v.Heads, Shared: v.Heads, Len: t, Angles: v.angles(t)})
	}
	if o.Relative {
		bias = v.relative(b, t)
	}
	return qkv, bias
}

// relative is the bias of scores of a block.
func (v ViT) relative(b Scope, t int) *gorgonia.Node {
	g, rows := v.Grid(), 0
	if rows = (2*g - 1) * (2*g - 1); !v.NoClass {
		rows += 3
	}
	return attention.GridBias(b.Param("relative", vitInit, rows, v.Heads), g, t-g*g)
}

// activated is the first layer of an MLP with its activation.
func (v ViT) activated(s Scope, start start, x *gorgonia.Node) *gorgonia.Node {
	switch o := v.options(); {
	case v.Activation == SwiGLU:
		return nn.SwiGLU(linear(s, "fc1", start, x, 2*v.Hidden()))
	case o.Gated:
		return nn.Gated(linear(s, "fc1", start, x, 2*v.Hidden()), cmp.Or(v.Activation, "gelu"))
	case v.Activation == "relu" && v.Style == StyleBlock:
		return nn.ReLU(linear(s, "fc1", start, x, v.Hidden()))
	}
	return linearActivated(s, "fc1", start, x, v.Hidden(), v.Activation)
}

// ofPool is the tower whose layers the MLP of the pool attention has: those of a block that is not gated.
func (v ViT) ofPool() ViT {
	if o := &v.Block; v.Style == StyleBlock {
		if v.MLP = defaultTo(o.PoolMLP, v.MLP); o.Gated {
			v.Activation = "gelu"
		}
		o.Gated, o.MLPNorm = false, false
	}
	return v
}

// queryPool is the pool by attention of CoCa (Yu et al. 2022) as open_clip has it: a learned query of width E attends to
// the normalised tokens x (B*t, D), and a norm stands behind it: (B, E). places is what it gives of each token alone,
// (B*t, E), nil where nobody reads it.
func (v ViT) queryPool(s Scope, x *gorgonia.Node, t int, tokens bool) (class, places *gorgonia.Node) {
	o, start, in := v.options(), v.starts(), s.In("pool")
	e := o.PoolWidth
	x = norm(in, "token_norm", x, v.eps())
	q := linear(in, "q", start.output, norm(in, "query_norm", in.Param("probe", v.tokenInit(), 1, e), v.eps()), e) // (1, E)
	kv := linear(in, "kv", start.output, x, 2*e)                                                                   // (B*t, 2E)
	h := attention.CrossAttention(attention.CrossArgs{Q: nn.RepeatRows(q, sequences("vit", x, t)), KV: kv, QueryLen: 1,
		KeyLen: t, Heads: defaultTo(o.PoolHeads, v.Heads), Keep: 1})
	class = v.behindPool(s, linear(in, "proj", start.output, h, e))
	if tokens {
		places = v.behindPool(s, linear(in, "proj", start.output, linearPart(in, "kv", start.output, x, e, e, 2*e), e))
	}
	return class, places
}
