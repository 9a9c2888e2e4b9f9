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
	return v.encode(s, images, v.Depth)
}

// Class is Forward for callers that read the class tokens alone: (B, D). The last
// block computes no other query.
func (v ViT) Class(s Scope, images *gorgonia.Node) *gorgonia.Node {
	return v.encode(s, images, v.Depth-1)
}

// encode runs the first blocks over all tokens and the others over class tokens.
func (v ViT) encode(s Scope, images *gorgonia.Node, all int) *gorgonia.Node {
	v.check(images)
	init := TruncNormal(.02)
	t := v.Tokens()
	x := ops.Patchify(images, v.Patch)                                 // (B*P, 3*patch*patch)
	x = linear(s, "patch_embed", init, Zeros, x, v.Width)              // (B*P, D)
	x = ops.PrependToken(x, s.Param("cls_token", init, v.Width), t-1)  // (B*T, D)
	x = ops.AddPositions(x, s.Param("pos_embed", init, t, v.Width), t) // (B*T, D)
	for i := range v.Depth {
		s.block(func() { x = v.block(s.Layer("blocks", i), init, x, i >= all) })
	}
	return norm(s, "norm", x, vitEps)
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
	if s := images.Shape(); len(s) != 4 || s[1] != 3 || s[2] != v.Size || s[3] != v.Size {
		misuse("vit", images, "want images (B, 3, %d, %d)", v.Size, v.Size)
	}
}

// block is x + Attention(LN(x)), then x + MLP(LN(x)): (B*T, D), or with class the
// class tokens alone, (B, D).
func (v ViT) block(s Scope, init Init, x *gorgonia.Node, class bool) *gorgonia.Node {
	h := norm(s, "norm1", x, vitEps)
	if class {
		t := v.Tokens()
		n := sequences("vit", x, t)
		q := linearPart(s, "attn/qkv", init, Zeros, ops.StridedRows(h, 0, t, n), 0, v.Width, 3*v.Width) // (B, D)
		kv := linearPart(s, "attn/qkv", init, Zeros, h, v.Width, 2*v.Width, 3*v.Width)                  // (B*T, 2D)
		h = ops.CrossAttention(q, kv, nil, nil, nil, 1, t, v.Heads, 1)
		x = ops.StridedRows(x, 0, t, n)
	} else {
		qkv := linear(s, "attn/qkv", init, Zeros, h, 3*v.Width) // (B*T, 3D)
		h = ops.SelfAttention(qkv, nil, nil, v.Tokens(), v.Heads, 1)
	}
	h = linear(s, "attn/proj", init, Zeros, h, v.Width)
	x = ops.Add(x, h)

	h = norm(s, "norm2", x, vitEps)
	h = linearGELU(s, "mlp/fc1", init, Zeros, h, defaultTo(v.MLP, 4*v.Width))
	h = linear(s, "mlp/fc2", init, Zeros, h, v.Width)
	return ops.Add(x, h)
}
