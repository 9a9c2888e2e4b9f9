package encoders

import (
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/conv"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// residual is a bottleneck (He et al. 2016, with the stride as in version 1.5; Xie et al. 2017 for groups; Radosavovic et
// al. 2020 for squeeze and excitation). With means in the place of its stride both ways take them before the last
// convolution, as in CLIP.
func (n ConvNet) residual(c *Context, s Scope, l convLayer, x *gorgonia.Node, side int) *gorgonia.Node {
	in, one, stride := columns("convnet", x), convLayer{kernel: 1, stride: 1}, l.stride
	if l.kind == "ra" {
		l.stride = 1
	}
	out := n.halved(l, side)
	y := n.act(l, n.conv(c, s, "conv1", one, x, side, l.expanded))
	if l.groups == 1 {
		y = n.conv(c, s, "conv2", l, y, side, l.expanded)
	} else {
		z, g := n.bordered(l, y, side)
		w := s.In("conv2").Param("weight", fanOut(l.expanded*l.kernel*l.kernel), l.expanded, l.expanded/l.groups, l.kernel,
			l.kernel)
		y = n.normed(c, s, "conv2", conv.Grouped(z, w, l.groups, g))
	}
	y = n.act(l, y)
	if l.gate > 0 {
		y = n.excited(s.In("se"), l, y, out*out)
	}
	if l.stride != stride {
		x, y, side = meanPlaces(x, side, stride), meanPlaces(y, side, stride), side/stride
		out = side
	}
	y = n.conv(c, s, "conv3", one, y, out, l.channels)
	if stride != 1 || in != l.channels {
		x = n.conv(c, s, "down", convLayer{kernel: 1, stride: l.stride}, x, side, l.channels)
	}
	return n.act(l, arith.Add(x, y))
}

// meanPlaces is the mean of windows of k x k places that lie side by side, of x (B*side*side, C): (B*P, C).
func meanPlaces(x *gorgonia.Node, side, k int) *gorgonia.Node {
	if k == 1 {
		return x
	}
	c, out := columns("mean", x), side/k
	y := nn.MeanTokens(x, nil, k, 0) // (B*side*out, C), of each row of an image
	y = nn.MeanTokens(layout.Reshape(y, y.Shape()[0]/out, out*c), nil, k, 0)
	return layout.Reshape(y, y.Shape()[0]*out, c)
}
