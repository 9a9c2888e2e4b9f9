package onnx

import (
	"github.com/geoalign/geoalign/encoders"
)

// ResNet adds a residual network over the input pixel_values (B, 3, S, S), with the parameters below name: the mean of
// the places of its last layer, (B, 1, D).
func (g *Graph) ResNet(name string, r encoders.ResNet) string {
	// (B, C, rows, columns)
	x := g.convolved(name, r.Stem(), g.input("pixel_values", float32Type, "images", 3, r.Size, r.Size), "")
	if !r.SmallStem {
		x = g.op("MaxPool", on(x), ints("kernel_shape", 3, 3), ints("strides", 2, 2), ints("pads", 1, 1, 1, 1))
	}
	for i := range 4 {
		for _, b := range r.Stage(i) {
			y, last := x, len(b.Layers)-1
			for _, l := range b.Layers[:last] {
				y = g.convolved(name, l, y, "")
			}
			if b.Down != nil {
				x = g.convolved(name, *b.Down, x, "")
			}
			x = g.convolved(name, b.Layers[last], y, x)
		}
	}
	return g.mean(g.transpose(g.reshape(x, 0, 0, -1), 0, 2, 1))
}

// convolved is a convolution of x with its batch norm, what is added to it, empty for nothing, and ReLU.
func (g *Graph) convolved(name string, l encoders.ResNetLayer, x, add string) string {
	k, s, p := l.Geometry.Kernel, l.Geometry.Stride, l.Geometry.Pad
	x = g.op("Conv", on(x, g.param(name+"/"+l.Conv+"/weight")), ints("kernel_shape", k, k), ints("strides", s, s),
		ints("pads", p, p, p, p))
	norm := name + "/" + l.Norm + "/"
	x = g.op("BatchNormalization", on(x, g.param(norm+"weight"), g.param(norm+"bias"), g.param(norm+"running_mean"),
		g.param(norm+"running_var")),
		attribute{"epsilon", float32(encoders.BatchNormEps)})
	if add != "" {
		x = g.plus(x, add)
	}
	if l.ReLU {
		x = g.activated("relu", x)
	}
	return x
}
