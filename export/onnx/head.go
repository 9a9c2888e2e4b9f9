package onnx

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/space"
)

// Features adds the input name of stored features (B, D), whose first axis is called rows, centred where the tower
// centres: (B, 1, D).
func (g *Graph) Features(name, rows, scope string, t encoders.FeatureTower) string {
	x := g.input(name, float32Type, rows, t.Dim)
	if t.Center {
		x = g.unit(g.plus(x, g.param(scope+"/shift", t.Dim)))
	}
	return g.unsqueeze(x, 1)
}

// Head adds a head, with the parameters below name, over what stands for the rows, x (B, m, D): (B, C).
func (g *Graph) Head(name string, h encoders.Head, x string) string {
	switch h := h.(type) {
	case encoders.Projection:
		if !h.Identity {
			x = g.linear(name, x)
		}
		if h.Activation != "" {
			x = g.activated(h.Activation, x)
		}
		return g.in(h.Space, x)
	case encoders.Dense:
		for i, l := range h.Layers {
			if x = g.linear(fmt.Sprintf("%s/dense/%02d", name, i), x); l.Activation != "" {
				x = g.activated(l.Activation, x)
			}
		}
		return g.in(h.Space, x)
	case encoders.MLP:
		return g.layers(name, h, x)
	}
	g.fail("no head is made of a %T", h)
	return x
}

// in gives rows (B, m, C/m), or (B, 1, C), the norms of a space: (B, C).
func (g *Graph) in(s space.Space, x string) string {
	if s.Euclid {
		return g.reshape(x, 0, s.Dim)
	}
	return g.reshape(g.unit(g.reshape(x, 0, s.Groups(), s.SphereDim())), 0, s.Dim)
}

// layers is an MLP.
func (g *Graph) layers(name string, m encoders.MLP, x string) string {
	activation := m.Activation
	if activation == "" {
		activation = "gelu"
	}
	if g.has(name + "/shared/weight") { // of a tower of another width
		x = g.linear(name+"/shared", x)
	}
	for i := range m.Layers {
		fc := fmt.Sprintf("%s/fc%d", name, i+1)
		y := g.linear(fc, x)
		if m.LayerNorm {
			y = g.norm(fmt.Sprintf("%s/norm%d", name, i+1), y, 1e-5)
		}
		y = g.activated(activation, y)
		if m.Residual && g.width(fc+"/weight") == m.Hidden {
			y = g.plus(x, y)
		}
		x = y
	}
	return g.in(m.Space, g.linear(fmt.Sprintf("%s/fc%d", name, m.Layers+1), x))
}

// Logits adds the scores of every image with every text, scale times the product of their features, plus bias: (B, B).
func (g *Graph) Logits(image, text string, scale, bias float32) string {
	s := g.times(g.op("MatMul", on(image, g.transpose(text, 1, 0))), g.number(scale))
	if bias != 0 {
		s = g.plus(s, g.number(bias))
	}
	return s
}

// Fold multiplies rows x (B, C) by a matrix (C, C).
func (g *Graph) Fold(x string, matrix []float32) string {
	c := int(math.Sqrt(float64(len(matrix))))
	return g.op("MatMul", on(x, g.add(constant{name: "fold", shape: []int{c, c},
		read: func(dst []float32) error { copy(dst, matrix); return nil }})))
}
