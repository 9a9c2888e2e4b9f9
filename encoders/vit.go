package encoders

import (
	"github.com/geoalign/geoalign/ops"
	"gorgonia.org/gorgonia"
)

// vitEps is the epsilon of the vision transformer's layer norms.
const vitEps = 1e-6

// ViT is a vision transformer (Dosovitskiy et al. 2021) with pre-norm blocks, one
// class token, learned positions and no dropout, as ALBEF uses it.
type ViT struct {
	Size  int // pixels of a side
	Patch int // pixels of a patch's side
	Depth int // blocks
	Width int // D
	Heads int
	MLP   int // hidden width of a block's MLP; 0 means 4*Width
}

// Patches returns P, the number of patches.
func (v ViT) Patches() int { return (v.Size / v.Patch) * (v.Size / v.Patch) }

// Tokens returns T = P+1, the number of output tokens per image, class token first.
func (v ViT) Tokens() int { return v.Patches() + 1 }

// Forward encodes images (B, 3, Size, Size) into (B*T, D), normalised by the final
// layer norm.
func (v ViT) Forward(s Scope, images *gorgonia.Node) *gorgonia.Node {
	v.check(images)
	init := TruncNormal(.02)
	t := v.Tokens()
	x := ops.Patchify(images, v.Patch)                                 // (B*P, 3*patch*patch)
	x = linear(s, "patch_embed", init, Zeros, x, v.Width)              // (B*P, D)
	x = ops.PrependToken(x, s.Param("cls_token", init, v.Width), t-1)  // (B*T, D)
	x = ops.AddPositions(x, s.Param("pos_embed", init, t, v.Width), t) // (B*T, D)
	for i := range v.Depth {
		x = v.block(s.Layer("blocks", i), init, x)
	}
	return norm(s, "norm", x, vitEps)
}

// check tells an image of another size, whose patches would pass for those of other
// images.
func (v ViT) check(images *gorgonia.Node) {
	if v.Patch < 1 || v.Size < v.Patch || v.Size%v.Patch != 0 {
		misuse("vit", images, "size must be a multiple of the patch (got %d and %d)", v.Size, v.Patch)
	}
	if s := images.Shape(); len(s) != 4 || s[1] != 3 || s[2] != v.Size || s[3] != v.Size {
		misuse("vit", images, "want images (B, 3, %d, %d)", v.Size, v.Size)
	}
}

// block is x + Attention(LN(x)), then x + MLP(LN(x)).
func (v ViT) block(s Scope, init Init, x *gorgonia.Node) *gorgonia.Node {
	h := norm(s, "norm1", x, vitEps)
	qkv := linear(s, "attn/qkv", init, Zeros, h, 3*v.Width) // (B*T, 3D)
	h = ops.SelfAttention(qkv, nil, nil, v.Tokens(), v.Heads, 1)
	h = linear(s, "attn/proj", init, Zeros, h, v.Width)
	x = ops.Add(x, h)

	h = norm(s, "norm2", x, vitEps)
	h = ops.GELU(linear(s, "mlp/fc1", init, Zeros, h, defaultTo(v.MLP, 4*v.Width)))
	h = linear(s, "mlp/fc2", init, Zeros, h, v.Width)
	return ops.Add(x, h)
}
