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
	y := norm(s.Layer("blocks", 0), "norm1", x, vitEps)
	for i := range v.Depth {
		s.block(func() { x, y = v.block(s, i, init, x, y, i >= all) })
	}
	return y
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

// block is x + Attention(LN(x)), then x + MLP(LN(x)), for x (B*T, D) and y = LN(x). It
// returns the new x, or with class its class tokens alone, (B, D), and the layer norm
// that follows: the next block's first, or the final one. So each norm is made in one
// pass with the addition before it.
func (v ViT) block(s Scope, i int, init Init, x, y *gorgonia.Node, class bool) (_, _ *gorgonia.Node) {
	b := s.Layer("blocks", i)
	var h *gorgonia.Node
	if class {
		t := v.Tokens()
		n := sequences("vit", x, t)
		q := linearPart(b, "attn/qkv", init, Zeros, ops.StridedRows(y, 0, t, n), 0, v.Width, 3*v.Width) // (B, D)
		kv := linearPart(b, "attn/qkv", init, Zeros, y, v.Width, 2*v.Width, 3*v.Width)                  // (B*T, 2D)
		h = ops.CrossAttention(q, kv, nil, nil, nil, 1, t, v.Heads, 1)
		x = ops.StridedRows(x, 0, t, n)
	} else {
		qkv := linear(b, "attn/qkv", init, Zeros, y, 3*v.Width) // (B*T, 3D)
		h = ops.SelfAttention(qkv, nil, nil, v.Tokens(), v.Heads, 1)
	}
	h = linear(b, "attn/proj", init, Zeros, h, v.Width)
	x, y = addNorm(b, "norm2", h, x, nil, 1, vitEps)

	h = linearGELU(b, "mlp/fc1", init, Zeros, y, defaultTo(v.MLP, 4*v.Width))
	h = linear(b, "mlp/fc2", init, Zeros, h, v.Width)
	if i+1 < v.Depth {
		return addNorm(s.Layer("blocks", i+1), "norm1", h, x, nil, 1, vitEps)
	}
	return addNorm(s, "norm", h, x, nil, 1, vitEps)
}
