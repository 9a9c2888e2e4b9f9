package onnx

import (
	"fmt"

	"github.com/geoalign/geoalign/encoders"
)

// Image adds a vision transformer over the input pixel_values (B, 3, S, S), with the parameters below name: what stands
// for an image, (B, m, D).
func (g *Graph) Image(name string, v encoders.ViT) string {
	v = v.Full()
	pixels := g.input("pixel_values", float32Type, "images", 3, v.Size, v.Size)
	first := v.Classes
	if v.NoClass {
		first = 0
	}
	x := g.patches(name, v, pixels) // (B, P, D)
	table := g.param(name + "/pos_embed")
	x = g.plus(x, g.slice(table, 0, first, last))
	var before []string
	if first > 0 {
		class := g.plus(g.param(name+"/cls_token", first, v.Width), g.slice(table, 0, 0, first))
		before = append(before, g.repeated(g.unsqueeze(class, 0), pixels, first, v.Width))
	}
	if v.Registers > 0 {
		before = append(before, g.repeated(g.param(name+"/registers", 1, v.Registers, v.Width), pixels, v.Registers,
			v.Width))
	}
	if len(before) > 0 {
		x = g.concat(1, append(before, x)...)
	}
	if v.PreNorm {
		x = g.norm(name+"/norm_pre", x, v.Eps)
	}
	late := "" // class tokens that are not in x yet
	if v.TokenBlocks < v.Depth {
		x, late = g.without(x, first)
	}
	for i := range v.Depth {
		if i == v.Depth-v.TokenBlocks && late != "" {
			x = g.with(x, late)
		}
		x = g.block(fmt.Sprintf("%s/blocks/%02d", name, i), v, x)
	}
	return g.pooled(name, v, x, first, first+v.Registers)
}

// without takes the class tokens after the first one out of x, and with puts them back.
func (g *Graph) without(x string, classes int) (rest, late string) {
	return g.concat(1, g.slice(x, 1, 0, 1), g.slice(x, 1, classes, last)), g.slice(x, 1, 1, classes)
}

func (g *Graph) with(x, late string) string {
	return g.concat(1, g.slice(x, 1, 0, 1), late, g.slice(x, 1, 1, last))
}

// patches embeds the patches of images: (B, P, D).
func (g *Graph) patches(name string, v encoders.ViT, pixels string) string {
	in := on(pixels, g.param(name+"/patch_embed/weight", v.Width, 3, v.Patch, v.Patch))
	if !v.NoPatchBias {
		in = append(in, g.param(name+"/patch_embed/bias"))
	}
	// (B, D, rows, columns)
	x := g.op("Conv", in, ints("kernel_shape", v.Patch, v.Patch), ints("strides", v.Patch, v.Patch))
	return g.transpose(g.reshape(x, 0, 0, -1), 0, 2, 1)
}

// block is x + Attention(LN(x)), then x + MLP(LN(x)).
func (g *Graph) block(b string, v encoders.ViT, x string) string {
	scaled := func(name, h string) string {
		if v.LayerScale {
			return g.times(h, g.param(b+"/"+name))
		}
		return h
	}
	h := g.attention(b+"/attn/qkv", b+"/attn/proj", g.norm(b+"/norm1", x, v.Eps), "", v.Width, v.Heads)
	x = g.plus(x, scaled("scale1", h))
	h = g.mlp(b+"/mlp/fc1", b+"/mlp/fc2", v.Activation, g.norm(b+"/norm2", x, v.Eps))
	return g.plus(x, scaled("scale2", h))
}

// pooled is what stands for an image of tokens x after the last block, of which classes and registers come first.
func (g *Graph) pooled(name string, v encoders.ViT, x string, classes, before int) string {
	g.states = x
	if v.Pool == encoders.PoolMean && !v.NormFirst {
		return g.norm(name+"/norm", g.mean(g.slice(x, 1, before, last)), v.Eps)
	}
	y := g.norm(name+"/norm", x, v.Eps)
	g.states = y
	switch v.Pool {
	case encoders.PoolMean:
		return g.mean(g.slice(y, 1, before, last))
	case encoders.PoolAttention:
		return g.attentionPool(name+"/pool", v, g.slice(y, 1, before, last))
	}
	return g.slice(y, 1, 0, classes)
}

// attentionPool is SigLIP's head: a probe that attends to patches y (B, P, D), then an MLP with a residual.
func (g *Graph) attentionPool(name string, v encoders.ViT, y string) string {
	probe := g.repeated(g.param(name+"/probe", 1, 1, v.Width), y, 1, v.Width)
	q, _, _ := g.split(name+"/qkv", probe, v.Heads)
	_, k, values := g.split(name+"/qkv", y, v.Heads)
	h := g.linear(name+"/proj", g.attend(q, k, values, "", v.Width, v.Heads))
	return g.plus(h, g.mlp(name+"/mlp/fc1", name+"/mlp/fc2", v.Activation, g.norm(name+"/norm", h, v.Eps)))
}
