package encoders

import (
	"math"

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
	Size  int // pixels of a side
	Patch int // pixels of a patch's side
	Depth int // blocks
	Width int // D
	Heads int
	MLP   int // hidden width of a block's MLP; 0 means 4*Width

	// Classes is m, the number of class tokens, each learned by itself and with a
	// position of its own; 0 means 1. They stand before the patches.
	Classes int
	// TokenBlocks is how many of the last blocks the class tokens after the first one
	// pass; 0 means all. Before them the first class token and the patches are alone.
	TokenBlocks int

	NoPatchBias bool    // patches are embedded without a bias
	PreNorm     bool    // a layer norm before the first block, norm_pre
	Eps         float32 // of layer norms; 0 means 1e-6
	// TorchStart starts dense layers from PyTorch's defaults, class tokens and positions
	// from N(0, 1/D), as clip-mtob's code does, instead of all from N(0, .02^2).
	TorchStart bool
}

// Patches returns P, the number of patches.
func (v ViT) Patches() int { return (v.Size / v.Patch) * (v.Size / v.Patch) }

// Tokens returns T = P+1, the number of output tokens per image, class token first. The
// class tokens after the first one are not among them.
func (v ViT) Tokens() int { return v.Patches() + 1 }

// Forward encodes images (B, 3, Size, Size) into (B*T, D), normalised by the final
// layer norm.
func (v ViT) Forward(s Scope, images *gorgonia.Node) *gorgonia.Node {
	tokens, _ := v.Encode(s, images)
	return tokens
}

// Encode is Forward, tokens (B*T, D), with all class tokens beside it: classes (B*m, D),
// the first of each image the same as in tokens.
func (v ViT) Encode(s Scope, images *gorgonia.Node) (tokens, classes *gorgonia.Node) {
	y := v.encode(s, images, false) // (B*(P+m), D)
	m, t := v.classes(), v.Patches()+v.classes()
	classes = leading(y, m, t)
	if m > 1 {
		y = layout.SequenceRest(y, t, 1, m-1)
	}
	return y, classes
}

// Class is the classes of Encode for callers that read nothing else: (B*m, D). The last
// block computes no other query.
func (v ViT) Class(s Scope, images *gorgonia.Node) *gorgonia.Node {
	return v.encode(s, images, true)
}

// encode returns all tokens of the images, (B*(P+m), D), or with class those of the m
// class tokens alone.
func (v ViT) encode(s Scope, images *gorgonia.Node, class bool) *gorgonia.Node {
	v.check(images)
	t := v.Patches() + v.classes()
	x := v.embed(s, images) // (B*t, D)
	var late *gorgonia.Node // (B*(m-1), D) class tokens that are not in x yet
	if v.classes() > 1 && v.TokenBlocks > 0 && v.TokenBlocks < v.Depth {
		x, late = layout.SequenceRest(x, t, 1, v.Classes-1), layout.SequenceRows(x, t, 1, v.Classes-1)
		t = v.Tokens()
	}
	y := norm(s.Layer("blocks", 0), "norm1", x, v.eps())
	for i := range v.Depth {
		if late != nil && i == v.Depth-v.TokenBlocks {
			normed := norm(s.Layer("blocks", i), "norm1", late, v.eps())
			x, y = layout.InsertRows(x, late, t, v.Classes-1, 1), layout.InsertRows(y, normed, t, v.Classes-1, 1)
			t += v.Classes - 1
		}
		s.block(func() { x, y = v.block(s, i, x, y, t, class && i == v.Depth-1) })
	}
	return y
}

// embed returns class tokens and patches with their positions, class tokens first.
func (v ViT) embed(s Scope, images *gorgonia.Node) *gorgonia.Node {
	t := v.Patches() + v.classes()
	x := nn.Patchify(images, v.Patch) // (B*P, 3*patch*patch)
	if v.NoPatchBias {
		weight, _ := v.dense()(columns("vit", x))
		x = nn.Linear(x, s.Param("patch_embed/weight", weight, v.Width, columns("vit", x)), nil)
	} else {
		x = linear(s, "patch_embed", v.dense(), x, v.Width) // (B*P, D)
	}
	class := []int{v.Width}
	if v.classes() > 1 {
		class = []int{v.Classes, v.Width}
	}
	x = nn.PrependToken(x, s.As(Traits{Axes: 2, Settings: "model.head.topology to one with the class tokens"}).Param("cls_token", v.tokenInit(), class...), v.Patches()) // (B*t, D)
	x = nn.AddPositions(x, s.As(Traits{Classes: v.classes()}).Param("pos_embed", v.tokenInit(), t, v.Width), t)                                                          // (B*t, D)
	if v.PreNorm {
		x = norm(s, "norm_pre", x, v.eps())
	}
	return x
}

func (v ViT) classes() int { return max(1, v.Classes) }

func (v ViT) eps() float32 {
	if v.Eps > 0 {
		return v.Eps
	}
	return vitEps
}

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
		misuse("vit", images, "class tokens and their blocks must be at least 0, blocks at most %d (got %d and %d)", v.Depth, v.Classes, v.TokenBlocks)
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
	if class {
		m := v.classes()
		q := linearPart(b, "attn/qkv", start.qkv, leading(y, m, t), 0, v.Width, 3*v.Width) // (B*m, D)
		kv := linearPart(b, "attn/qkv", start.qkv, y, v.Width, 2*v.Width, 3*v.Width)       // (B*t, 2D)
		h = attention.CrossAttention(attention.CrossArgs{Q: q, KV: kv, QueryLen: m, KeyLen: t, Heads: v.Heads, Keep: 1})
		x = leading(x, m, t)
	} else {
		qkv := linear(b, "attn/qkv", start.qkv, y, 3*v.Width) // (B*t, 3D)
		h = attention.SelfAttention(attention.SelfArgs{QKV: qkv, Len: t, Heads: v.Heads, Keep: 1})
	}
	h = linear(b, "attn/proj", start.output, h, v.Width)
	x, y = addNorm(b, "norm2", h, x, nil, 1, v.eps())

	h = linearGELU(b, "mlp/fc1", start.mlp, y, defaultTo(v.MLP, 4*v.Width))
	h = linear(b, "mlp/fc2", start.mlp, h, v.Width)
	if i+1 < v.Depth {
		return addNorm(s.Layer("blocks", i+1), "norm1", h, x, nil, 1, v.eps())
	}
	return addNorm(s, "norm", h, x, nil, 1, v.eps())
}
