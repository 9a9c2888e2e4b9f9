package encoders

import (
	"cmp"
	"math"
	"slices"

	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/attention"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// vitEps is the epsilon of the vision transformer's layer norms, unless Eps says other.
const vitEps = 1e-6

// ViT is a vision transformer (Dosovitskiy et al. 2021) with pre-norm blocks, learned
// class tokens and positions and no dropout, as ALBEF uses it, or with the options below
// as the dual encoder of clip-mtob does.
type ViT struct {
	ImageOptions

	// Classes is m, the number of class tokens, each learned by itself and with a
	// position of its own; 0 means 1. They stand before the patches.
	Classes int
	// TokenBlocks is how many of the last blocks the class tokens after the first one
	// pass; 0 means all. Before them the first class token and the patches are alone.
	TokenBlocks int

	NoPatchBias bool // patches are embedded without a bias
	PreNorm     bool // a layer norm before the first block, norm_pre
	LayerScale  bool // what a block adds is scaled by channel, scale1 and scale2
	NormFirst   bool // with the pool mean: the mean of normalised patches, instead of the norm of the mean
	NoClass     bool // no class token; the pool is another then

	// Metric is that of the self-attention of the blocks. The attention of a pooling head has none.
	Metric AttentionMetric

	// kept are the patches that a step sees; of no rows: all.
	kept keptPatches
	// prompts is how many the tuning of a scope has, between registers and patches.
	prompts int

	// TorchStart starts dense layers from PyTorch's defaults, class tokens and positions
	// from N(0, 1/D), as clip-mtob's code does, instead of all from N(0, .02^2).
	TorchStart bool
}

// keptPatches are rows of class tokens and patches of images that a vision transformer keeps:
// count patches of each image.
type keptPatches struct {
	rows  *gorgonia.Node
	count int
}

// inner is the number of patches within the blocks.
func (v ViT) inner() int {
	if v.kept.rows != nil {
		return v.kept.count
	}
	return v.Patches()
}

// keeping returns v with the patches of n images that the context keeps.
func (v ViT) keeping(c *Context, n int) ViT {
	if c.Patches != nil {
		classes := v.Tokens() - v.Patches()
		if !v.NoClass {
			classes = v.classes()
		}
		v.kept.rows, v.kept.count = c.Patches(n, v.Patches()+classes, classes)
	}
	return v
}

// Tokens returns T, the number of output tokens per image: P+1, class token first, or P where
// there is none. The class tokens after the first one and registers are not among them.
func (v ViT) Tokens() int {
	if v.NoClass {
		return v.Patches()
	}
	return v.Patches() + 1
}

// prefix is the number of tokens before the patches within the blocks.
func (v ViT) prefix() int {
	if v.NoClass {
		return v.Registers + v.prompts
	}
	return v.classes() + v.Registers + v.prompts
}

// in is the scope of the blocks, with v as tuning has it there.
func (v ViT) in(s Scope) (ViT, Scope) {
	s = s.transformer(v.Depth)
	v.prompts = s.prompts()
	return v, s
}

// Forward encodes images (B, 3, Size, Size) into (B*T, D), normalised by the final
// layer norm.
func (v ViT) Forward(s Scope, images *gorgonia.Node) *gorgonia.Node {
	tokens, _ := v.Encode(s, images)
	return tokens
}

// Encode is Forward, tokens (B*T, D), with what stands for an image beside it: classes
// (B*m, D), all class tokens, the first of each image the same as in tokens, or what Pool
// says, (B, D).
func (v ViT) Encode(s Scope, images *gorgonia.Node) (tokens, classes *gorgonia.Node) {
	if v.kept.rows != nil {
		misuse("vit", images, "an image of which some patches are left out has no sequence of tokens to read")
	}
	v, s = v.in(s)
	x, y := v.encode(s, images, false) // (B*(P+prefix), D)
	t := v.Patches() + v.prefix()
	if v.queries() {
		classes, y = v.queryPool(s, s.tap.pooled(x, t), t, true)
	} else {
		classes = v.pooled(s, x, y)
	}
	if kept := v.Tokens() - v.Patches(); v.prefix() > kept {
		y = layout.SequenceRest(y, t, kept, v.prefix()-kept)
	}
	return y, classes
}

// Class is the classes of Encode for callers that read nothing else: (B*m, D). The last
// block computes no other query than those of class tokens, where they are what is read.
func (v ViT) Class(s Scope, images *gorgonia.Node) *gorgonia.Node {
	v, s = v.in(s)
	if Pool(v.Pool).byClass() {
		_, y := v.encode(s, images, true)
		return v.behindPool(s, y)
	}
	x, y := v.encode(s, images, false)
	if v.queries() {
		t := v.inner() + v.prefix()
		y, _ = v.queryPool(s, s.tap.pooled(x, t), t, false)
		return y
	}
	return v.pooled(s, x, y)
}

// queries says whether the pool is queryPool.
func (v ViT) queries() bool { return v.Pool == PoolAttention && v.options().PoolWidth > 0 }

// pooled returns what stands for an image: (B*m, D) class tokens, else (B, D). x and y are
// all tokens (B*(P+prefix), D) after the last block, and normalised.
func (v ViT) pooled(s Scope, x, y *gorgonia.Node) *gorgonia.Node {
	t, before := v.inner()+v.prefix(), v.prefix()
	if v.options().PoolAll {
		before = 0
	}
	switch {
	case Pool(v.Pool).byClass():
		return v.behindPool(s, leading(y, v.classes(), t))
	case v.Pool == PoolMean && v.NormFirst:
		return v.behindPool(s, nn.MeanTokens(s.tap.pooled(y, t), nil, t, before))
	case v.Pool == PoolMean:
		return norm(s, "norm", nn.MeanTokens(s.tap.pooled(x, t), nil, t, before), v.eps())
	}
	if before > 0 {
		y = layout.SequenceRest(y, t, 0, before)
	}
	return v.behindPool(s, v.attentionPool(s.In("pool"), s.tap.pooled(y, t-before), t-before))
}

// behindPool is what the pool gives, through the norm behind it where there is one.
func (v ViT) behindPool(s Scope, x *gorgonia.Node) *gorgonia.Node {
	if !v.options().PoolNorm {
		return x
	}
	return norm(s, "pool_norm", x, v.eps())
}

// attentionPool is the pooling head of SigLIP (Zhai et al. 2022, section 3.1: a probe that
// attends to all patches, then an MLP with a residual): (B, D) for tokens y (B*p, D).
func (v ViT) attentionPool(s Scope, y *gorgonia.Node, p int) *gorgonia.Node {
	start := v.starts()
	probe := s.Param("probe", v.tokenInit(), 1, v.Width)
	q := linearPart(s, "qkv", start.qkv, probe, 0, v.Width, 3*v.Width)      // (1, D)
	kv := linearPart(s, "qkv", start.qkv, y, v.Width, 2*v.Width, 3*v.Width) // (B*P, 2D)
	q = nn.RepeatRows(q, sequences("vit", y, p))                            // (B, D)
	h := attention.CrossAttention(attention.CrossArgs{Q: q, KV: kv, QueryLen: 1, KeyLen: p,
		Heads: defaultTo(v.options().PoolHeads, v.Heads), Keep: 1})
	h = linear(s, "proj", start.output, h, v.Width)
	m := v.ofPool().mlp(s.In("mlp"), norm(s, "norm", h, v.eps()))
	return arith.Add(h, m)
}

// encode returns all tokens of the images after the last block and normalised, (B*(P+prefix),
// D), or with class those of the m class tokens alone.
func (v ViT) encode(s Scope, images *gorgonia.Node, class bool) (x, y *gorgonia.Node) {
	v.check(images)
	t := v.inner() + v.prefix()
	s.given(images.Shape()[0])
	x = v.embed(s, images)  // (B*t, D)
	var late *gorgonia.Node // (B*(m-1), D) class tokens that are not in x yet
	if v.classes() > 1 && v.TokenBlocks > 0 && v.TokenBlocks < v.Depth {
		x, late = layout.SequenceRest(x, t, 1, v.Classes-1), layout.SequenceRows(x, t, 1, v.Classes-1)
		t -= v.Classes - 1
	}
	y = norm(s.Layer("blocks", 0), "norm1", x, v.eps())
	for i := range v.Depth {
		if late != nil && i == v.Depth-v.TokenBlocks {
			normed := norm(s.Layer("blocks", i), "norm1", late, v.eps())
			x, y = layout.InsertRows(x, late, t, v.Classes-1, 1), layout.InsertRows(y, normed, t, v.Classes-1, 1)
			t += v.Classes - 1
		}
		if prompts := s.Layer("blocks", i).prompt(i, v.Width); i > 0 && prompts != nil {
			l, at := t-v.prompts, t-v.inner()-v.prompts
			x, y = prompted(i, x, prompts, l, at), prompted(i, y, norm(s.Layer("blocks", i), "norm1", prompts, v.eps()),
				l, at)
		}
		s.tap.tokens(i, y, t)
		s.block(func() { x, y = v.block(s, i, x, y, t, class && i == v.Depth-1) })
	}
	return x, y
}

// embed returns class tokens, registers, prompts and patches, in this order, those that have positions with them.
func (v ViT) embed(s Scope, images *gorgonia.Node) *gorgonia.Node {
	block := s.Layer("blocks", 0)
	s = s.As(Traits{Front: true})
	x := nn.Patchify(images, v.Patch) // (B*P, 3*patch*patch)
	if v.NoPatchBias {
		x = linearNoBias(s, "patch_embed", v.dense(), x, v.Width)
	} else {
		x = linear(s, "patch_embed", v.dense(), x, v.Width) // (B*P, D)
	}
	m, t := 0, v.Patches()
	if !v.NoClass {
		m, t = v.classes(), t+v.classes()
		class := []int{v.Width}
		if m > 1 {
			class = []int{m, v.Width}
		}
		// (B*t, D)
		x = nn.PrependToken(x, s.As(Traits{Axes: 2,
			Settings: "model.head.topology to one with the class tokens"}).Param("cls_token", v.tokenInit(), class...),
			v.Patches())
	}
	if v.options().Positions {
		// (B*t, D)
		x = nn.AddPositions(x, s.As(Traits{Grid: true, Classes: m}).Param("pos_embed", v.tokenInit(), t, v.Width), t)
	}
	if v.kept.rows != nil {
		x, t = nn.GatherRows(x, v.kept.rows, 1), m+v.kept.count
	}
	if r := v.Registers; r > 0 {
		registers := nn.RepeatRows(s.Param("registers", v.tokenInit(), r, v.Width), images.Shape()[0]) // (B*R, D)
		x = layout.InsertRows(x, registers, t, r, m)
	}
	x = prompted(0, x, block.prompt(0, v.Width), t+v.Registers, m+v.Registers)
	if v.PreNorm {
		x = norm(s, "norm_pre", x, v.eps())
	}
	return x
}

func (v ViT) classes() int { return max(1, v.Classes) }

func (v ViT) eps() float32 { return float32(cmp.Or(v.Eps, vitEps)) }

// vitInit starts everything unless TorchStart says other.
var vitInit = TruncNormal(.02)

// tokenInit starts class tokens and positions.
func (v ViT) tokenInit() Init {
	if v.TorchStart {
		return Normal(1 / math.Sqrt(float64(v.Width)))
	}
	return vitInit
}

// dense starts the embedding of patches.
func (v ViT) dense() start {
	if v.TorchStart {
		return torchLinear
	}
	return from(vitInit)
}

// starts starts the parts of a block.
func (v ViT) starts() starts {
	if v.TorchStart {
		return torchStarts
	}
	return sameStarts(vitInit)
}

// check tells an image of another size, whose patches would pass for those of other
// images.
func (v ViT) check(images *gorgonia.Node) {
	if v.Patch < 1 || v.Size < v.Patch || v.Size%v.Patch != 0 {
		misuse("vit", images, "size must be a multiple of the patch (got %d and %d)", v.Size, v.Patch)
	}
	if v.Depth < 1 {
		misuse("vit", images, "want at least one block (got %d)", v.Depth)
	}
	if v.Classes < 0 || v.TokenBlocks < 0 || v.TokenBlocks > v.Depth {
		misuse("vit", images, "class tokens and their blocks must be at least 0, blocks at most %d (got %d and %d)",
			v.Depth, v.Classes, v.TokenBlocks)
	}
	if v.Registers < 0 || v.NoClass && (Pool(v.Pool).byClass() || v.classes() > 1) || !Pool(v.Pool).byClass() &&
		v.classes() > 1 {
		misuse("vit", images, "want at least 0 registers, a pool other than class without a class token, and one class token with such a pool (got %d, %q and %d)", v.Registers, v.Pool, v.classes())
	}
	if !slices.Contains([]string{"", PoolClass, PoolMean, PoolAttention}, v.Pool) {
		misuse("vit", images, "pool must be class, mean or attention (got %q)", v.Pool)
	}
	if s := images.Shape(); len(s) != 4 || s[1] != 3 || s[2] != v.Size || s[3] != v.Size {
		misuse("vit", images, "want images (B, 3, %d, %d)", v.Size, v.Size)
	}
}

// block is x + Attention(LN(x)), then x + MLP(LN(x)), for x (B*t, D) and y = LN(x). It
// returns the new x, or with class its class tokens alone, (B*m, D), and the layer norm
// that follows: the next block's first, or the final one. So each norm is made in one
// pass with the addition before it.
func (v ViT) block(s Scope, i int, x, y *gorgonia.Node, t int, class bool) (_, _ *gorgonia.Node) {
	b, start := s.Layer("blocks", i), v.starts()
	var h *gorgonia.Node
	if o := v.options(); class && o.plain() {
		m := v.classes()
		q := linearPart(b, "attn/qkv", start.qkv, leading(y, m, t), 0, v.Width, 3*v.Width) // (B*m, D)
		kv := linearPart(b, "attn/qkv", start.qkv, y, v.Width, 2*v.Width, 3*v.Width)       // (B*t, 2D)
		kv = v.Metric.fold(b.In("attn"), kv, 0, v.Width, v.Heads)
		h = attention.CrossAttention(attention.CrossArgs{Q: q, KV: kv, QueryLen: m, KeyLen: t, Heads: v.Heads, Keep: 1})
		x = leading(x, m, t)
	} else {
		qkv, bias := v.located(b.In("attn"), linear(b, "attn/qkv", start.qkv, y, 3*v.Width), t) // (B*t, 3D)
		qkv = v.Metric.fold(b.In("attn"), qkv, v.Width, v.Width, v.Heads)
		h = attention.SelfAttention(attention.SelfArgs{QKV: qkv, Bias: bias, Len: t, Heads: v.Heads, Keep: 1})
		s.tap.self(i, qkv, h, t)
		if class {
			h, x = leading(h, v.classes(), t), leading(x, v.classes(), t)
		}
	}
	if v.options().AttentionNorm {
		h = norm(b.In("attn"), "norm", h, v.eps())
	}
	h = b.In("attn").bottleneck(v.scaled(b, "scale1", linear(b, "attn/proj", start.output, h, v.Width)))
	x, y = addNorm(b, "norm2", h, x, nil, 1, v.eps())

	h = b.In("mlp").bottleneck(v.scaled(b, "scale2", v.mlp(b.In("mlp"), y)))
	if i+1 < v.Depth {
		return addNorm(s.Layer("blocks", i+1), "norm1", h, x, nil, 1, v.eps())
	}
	if !v.options().FinalNorm {
		x = arith.Add(x, h)
		return x, x
	}
	return addNorm(s, "norm", h, x, nil, 1, v.eps())
}

// mlp is the MLP of a block or of the pooling head, fc1 and fc2.
func (v ViT) mlp(s Scope, x *gorgonia.Node) *gorgonia.Node {
	start := v.starts().mlp
	h := v.activated(s, start, x)
	if v.options().MLPNorm {
		h = norm(s, "norm", h, v.eps())
	}
	return linear(s, "fc2", start, h, v.Width)
}

// scaleStart starts layer scales (Touvron et al. 2021, section 2).
const scaleStart = 1e-5

// scaled is what a block adds, scaled by channel where there is a layer scale.
func (v ViT) scaled(s Scope, name string, h *gorgonia.Node) *gorgonia.Node {
	if !v.LayerScale {
		return h
	}
	return nn.ScaleColumns(h, s.Param(name, Const(scaleStart), v.Width))
}
