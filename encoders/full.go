package encoders

import (
	"cmp"

	"github.com/geoalign/geoalign/ops/attention"
)

// Full returns v with every default written out, for programs that write the tower in another form.
func (v ViT) Full() ViT {
	v.MLP, v.Classes, v.Eps = v.Hidden(), v.classes(), cmp.Or(v.Eps, vitEps)
	v.Activation, v.Pool = cmp.Or(v.Activation, "gelu"), cmp.Or(v.Pool, PoolClass)
	if v.Classes == 1 || v.TokenBlocks == 0 {
		v.TokenBlocks = v.Depth
	}
	return v
}

// Full returns b with every default written out, as that of ViT.
func (b BERT) Full() BERT {
	b.MLP, b.Classes, b.Eps, b.Activation = defaultTo(b.MLP, 4*b.Width), b.classes(), cmp.Or(b.Eps, bertEps),
		cmp.Or(b.Activation, "gelu")
	if b.Classes == 1 || b.TokenBlocks == 0 {
		b.TokenBlocks = b.Layers
	}
	return b
}

// Full returns p with every default written out, as that of ViT.
func (p PreNormText) Full() PreNormText {
	p.MLP, p.Activation = defaultTo(p.MLP, 4*p.Width), cmp.Or(p.Activation, "gelu")
	return p
}

// Bucket is the row of the table Relative of a key that lies after tokens behind its query.
func (b BERT) Bucket(after int) int { return attention.Bucket(after, b.Relative, farthest) }
