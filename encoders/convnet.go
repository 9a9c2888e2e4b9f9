package encoders

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/conv"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// ConvNet is a network of convolutions by a list of its layers: EfficientNet (Tan and Le 2019), MobileNetV3 (Howard et
// al. 2019) and ConvNeXt (Liu et al. 2022) are some.
type ConvNet struct {
	// layers, first to last, each a kind and its sizes: "conv k3 s2 c32" (convolution, batch norm, activation) | "ds k3
	// s1 c16" (depthwise and pointwise) | "ir k5 s2 e96 c24 se8" (expanded to e channels, depthwise, pointwise) |
	// "rb k3 s2 e128 c256 g32 se8" (a residual bottleneck as of ResNeXt and RegNet: to e channels, a convolution of g groups,
	// to c channels, added to its input or a convolution of it) | "ra ..." (as rb, with means of s x s places in the place
	// of a stride, as of CLIP) | "pool k3 s2" (the largest of each window) | "mean k2" (the mean of each, side by side) |
	// "patch k4 c96" (convolution of patches and layer norm) | "cx k7 e384 c96" (a block of ConvNeXt) | "down c192"
	// (layer norm and convolution of 2 x 2). k is the kernel, s the stride, se the channels of squeeze and excitation; an
	// activation behind them is that of the layer alone
	Blocks []string `toml:"blocks" fixed:"model"`
	// relu | relu6 | silu | hardswish | gelu | gelu_tanh
	Activation string `toml:"activation" fixed:"meaning"`
	// of squeeze and excitation: sigmoid | hardsigmoid, with which relu stands before it in the place of activation
	Gate string `toml:"gate" fixed:"meaning"`
	// around images: empty (as many on all sides) | same (as TensorFlow, more behind where a stride asks for an odd
	// number)
	Padding string `toml:"padding" fixed:"meaning"`
	// of batch norms, or of layer norms where there are none
	Eps float64 `toml:"eps" fixed:"meaning" max:"0.1"`
	// a layer norm behind the mean of the last places
	FinalNorm bool `toml:"final_norm" fixed:"model"`
	// its epsilon; 0: eps
	FinalEps float64 `toml:"final_eps" when:"final_norm=true" fixed:"meaning" max:"0.1"`
	// what a block of ConvNeXt adds is scaled by channel
	LayerScale bool `toml:"layer_scale" fixed:"model"`
	// channels of the MLP of such a block are scaled by their share of the responses of an image (ConvNeXt V2, Woo et
	// al. 2023)
	ResponseNorm bool `toml:"response_norm" fixed:"model"`
	// heads of the pool by attention of CLIP (Radford et al. 2021, section 2.4), in which the mean of the last places
	// attends to itself and them, all with learned positions; 0: the mean of the places
	PoolHeads int `toml:"pool_heads" fixed:"meaning" max:"1024"`
	// width of the layer behind it; 0: none
	PoolWidth int `toml:"pool_width" fixed:"model" max:"65536"`

	// Size is the side of an image.
	Size int `toml:"-"`
}

// Defaults implements section.Defaulter.
func (n *ConvNet) Defaults() { *n = ConvNet{Activation: "relu", Gate: "sigmoid", Eps: BatchNormEps} }

// Check implements section.Checked.
func (n *ConvNet) Check(k *section.Checker) {
	k.NotNegative("eps", "final_eps", "pool_heads", "pool_width")
	image := section.Of[ImageOptions](k)
	if image.Style != StyleConvNet {
		return
	}
	k.OneOf("activation", convActivations...)
	k.OneOf("gate", "sigmoid", "hardsigmoid")
	k.OneOfOrEmpty("padding", "same")
	k.Positive("eps")
	_, err := n.layers()
	k.Require("blocks", err == nil, fmt.Sprintf("must be a list of layers: %v", err))
	k.Require("blocks", err != nil || image.Size < 1 || image.Grid() > 0, "must leave at least one place of an image",
		"raise model.image.size")
	k.Require("blocks", err != nil || image.convNet().even(), "must take means of whole windows alone",
		"the side of what mean and ra halve must be a multiple of k and s: set another model.image.size")
	k.Require("pool_heads", err != nil || n.PoolHeads <= 0 || n.Channels()%n.PoolHeads == 0,
		"must divide the channels of the last layer")
	k.Require("pool_width", n.PoolWidth <= 0 || n.PoolHeads != 0, "must be 0 without pool_heads")
	k.Require("final_norm", !n.FinalNorm || n.PoolHeads == 0, "must be false with pool_heads")
	if k.Has(section.BatchNorms) {
		oneBatch(k, `batch norms of model.image.style "convnet"`)
	}
}

var convActivations = []string{"relu", "relu6", "silu", "hardswish", "gelu", "gelu_tanh"}

// convLayer is a layer of Blocks.
type convLayer struct {
	kind                     string
	kernel, stride           int
	expanded, channels, gate int // gate: channels of squeeze and excitation
	groups                   int // of the convolution of a residual bottleneck
	activation               string
}

// convKinds are the kinds of layers with the sizes that they need.
var convKinds = map[string]string{"conv": "ksc", "ds": "ksc", "ir": "ksec", "rb": "ksec", "ra": "ksec", "pool": "ks",
	"mean": "k", "patch": "kc",
	"cx": "kec", "down": "c"}

// layers reads Blocks.
func (n ConvNet) layers() (list []convLayer, err error) {
	if len(n.Blocks) == 0 || len(n.Blocks) > 256 {
		return nil, fmt.Errorf("want 1 to 256 (got %d)", len(n.Blocks))
	}
	for _, text := range n.Blocks {
		words := strings.Fields(text)
		if len(words) == 0 || convKinds[words[0]] == "" {
			return nil, fmt.Errorf("%q is of no kind: conv, ds, ir, rb, ra, pool, mean, patch, cx and down are", text)
		}
		l := convLayer{kind: words[0], activation: n.Activation, stride: 1, groups: 1}
		needs := convKinds[l.kind]
		for _, word := range words[1:] {
			if slices.Contains(convActivations, word) {
				l.activation = word
				continue
			}
			name := strings.TrimRight(word, "0123456789")
			v, err := strconv.Atoi(word[len(name):])
			into := map[string]*int{"k": &l.kernel, "s": &l.stride, "e": &l.expanded, "c": &l.channels,
				"se": &l.gate, "g": &l.groups}[name]
			if into == nil || err != nil || v < 1 || v > 1<<16 {
				return nil, fmt.Errorf("%q of %q is no size nor activation", word, text)
			}
			*into = v
			needs = strings.Replace(needs, name, "", 1)
		}
		if needs != "" || l.kernel > 31 || l.stride > 8 {
			return nil, fmt.Errorf("%q lacks a size of %s, or has a kernel above 31 or a stride above 8", text, convKinds[l.kind])
		}
		switch l.kind {
		case "patch":
			l.stride = l.kernel
		case "down":
			l.kernel, l.stride = 2, 2
		case "pool", "mean":
			if l.kind == "mean" {
				l.stride = l.kernel
			}
			if len(list) == 0 {
				return nil, fmt.Errorf("%q is the first, and channels are those of the layer before it", text)
			}
			l.channels = list[len(list)-1].channels
		}
		if l.groups > 1 && (!l.residual() || l.expanded%l.groups != 0) {
			return nil, fmt.Errorf("%q has %d groups, which divide the channels e of rb and ra alone", text, l.groups)
		}
		list = append(list, l)
	}
	return list, nil
}

// whole says whether the windows of a layer lie side by side, without a border.
func (l convLayer) whole() bool { return l.kind == "patch" || l.kind == "down" || l.kind == "mean" }

// residual says whether a layer is a residual bottleneck.
func (l convLayer) residual() bool { return l.kind == "rb" || l.kind == "ra" }

// halved is the side of what comes out of a layer.
func (n ConvNet) halved(l convLayer, side int) int {
	if l.whole() {
		return side / l.stride
	}
	return (side + l.stride - 1) / l.stride
}

// side is that of the places of the last layer, 0 where there are none.
func (n ConvNet) side() int {
	list, err := n.layers()
	if err != nil {
		return 0
	}
	side := n.Size
	for _, l := range list {
		side = n.halved(l, side)
	}
	return side
}

// even says whether the layers that take means of places have no places over.
func (n ConvNet) even() bool {
	list, _ := n.layers()
	side := n.Size
	for _, l := range list {
		if (l.kind == "mean" || l.kind == "ra") && side%l.stride != 0 {
			return false
		}
		side = n.halved(l, side)
	}
	return true
}

// Places returns P, the places of the last layer.
func (n ConvNet) Places() int { return n.side() * n.side() }

// Channels returns D, those of the last layer.
func (n ConvNet) Channels() int {
	list, err := n.layers()
	if err != nil {
		return 0
	}
	return list[len(list)-1].channels
}

// Width returns the channels of a token.
func (n ConvNet) Width() int { return cmp.Or(n.PoolWidth, n.Channels()) }

// batchNorms says whether there are any.
func (n ConvNet) batchNorms() bool {
	list, _ := n.layers()
	return slices.ContainsFunc(list, func(l convLayer) bool { return slices.Contains([]string{"conv", "ds", "ir", "rb", "ra"}, l.kind) })
}

// Sizes counts the weights of the convolutions, the values of an image that the backward pass reads, and those of the
// largest layer.
func (n ConvNet) Sizes() (weights, kept int64, widest float64) {
	list, _ := n.layers()
	side, in := n.Size, 3
	for _, l := range list {
		out := n.halved(l, side)
		k2, inner := int64(l.kernel*l.kernel), in
		switch l.kind {
		case "conv", "patch", "down":
			weights += int64(in) * int64(l.channels) * k2
		case "pool", "mean":
		case "rb", "ra":
			inner = l.expanded
			weights += int64(inner) * (int64(in) + int64(inner/l.groups)*k2 + int64(l.channels) + 2*int64(l.gate))
			if l.stride != 1 || in != l.channels {
				weights += int64(in) * int64(l.channels)
			}
		default:
			if l.kind == "ir" {
				inner = l.expanded
				weights += int64(in) * int64(inner)
			}
			weights += int64(inner)*k2 + int64(inner)*int64(l.channels) + 2*int64(l.gate)*int64(inner)
			if l.kind == "cx" {
				inner = l.expanded
				weights += int64(inner) * int64(l.channels)
			}
		}
		values := int64(side)*int64(side)*int64(inner) + int64(out)*int64(out)*int64(max(inner, l.channels))
		kept += values
		widest = math.Max(widest, float64(values))
		side, in = out, l.channels
	}
	if n.PoolHeads > 0 {
		d := int64(n.Channels())
		weights += 3*d*d + d*int64(n.PoolWidth)
	}
	return weights, kept, widest
}

// Forward encodes x (B*S*S, 3), rows of places, to the places of the last layer: (B*P, D).
func (n ConvNet) Forward(c *Context, s Scope, x *gorgonia.Node) *gorgonia.Node {
	list, err := n.layers()
	if err != nil {
		misuse("convnet", x, "%v", err)
	}
	if shape := x.Shape(); n.Size < 1 || len(shape) != 2 || shape[1] != 3 || shape[0]%(n.Size*n.Size) != 0 {
		misuse("convnet", x, "want rows of places (B*%d*%d, 3)", n.Size, n.Size)
	}
	side := n.Size
	for i, l := range list {
		s.block(func() { x = n.layer(c, s.Layer("layers", i), l, x, side) })
		side = n.halved(l, side)
	}
	return x
}

// layer passes x (B*side*side, C) through a layer.
func (n ConvNet) layer(c *Context, s Scope, l convLayer, x *gorgonia.Node, side int) *gorgonia.Node {
	in, out := columns("convnet", x), n.halved(l, side)
	y := x
	switch l.kind {
	case "conv":
		return n.act(l, n.conv(c, s, "conv", l, x, side, l.channels))
	case "pool":
		_, g := n.bordered(l, x, side)
		return conv.MaxPool(x, g)
	case "mean":
		return meanPlaces(x, side, l.kernel)
	case "rb", "ra":
		return n.residual(c, s, l, x, side)
	case "patch":
		return norm(s, "norm", n.biased(s, "conv", x, side, l), float32(n.Eps))
	case "down":
		return n.biased(s, "conv", norm(s, "norm", x, float32(n.Eps)), side, l)
	case "cx":
		y = n.depthwise(s, l, y, side)
		y = nn.AddPositions(y, layout.Reshape(s.In("dw").bias(Zeros, in), 1, in), 1)
		y = norm(s, "norm", y, float32(n.Eps))
		y = linearActivated(s, "fc1", from(vitInit), y, l.expanded, l.activation)
		if n.ResponseNorm {
			g := s.In("response_norm")
			scaled := nn.ScaleColumns(conv.Responses(y, side*side), g.Param("weight", Zeros, l.expanded))
			y = nn.AddPositions(arith.Add(y, scaled), layout.Reshape(g.bias(Zeros, l.expanded), 1, l.expanded), 1)
		}
		y = linear(s, "fc2", from(vitInit), y, in)
		if n.LayerScale {
			y = nn.ScaleColumns(y, s.Param("scale", Const(1e-6), in))
		}
		return arith.Add(x, y)
	case "ir":
		one := convLayer{kernel: 1, stride: 1}
		y = n.act(l, n.conv(c, s, "expand", one, y, side, l.expanded))
	}
	y = n.act(l, n.normed(c, s, "dw", n.depthwise(s, l, y, side)))
	if l.gate > 0 {
		y = n.excited(s.In("se"), l, y, out*out)
	}
	y = n.conv(c, s, "project", convLayer{kernel: 1, stride: 1}, y, out, l.channels)
	if l.stride == 1 && in == l.channels {
		return arith.Add(x, y)
	}
	return y
}

// act is the activation of a layer.
func (n ConvNet) act(l convLayer, x *gorgonia.Node) *gorgonia.Node {
	switch l.activation {
	case "relu":
		return nn.ReLU(x)
	case "relu6", "hardswish":
		return nn.Bounded(x, l.activation)
	}
	return nn.Activated(x, l.activation)
}

// bordered is x with the border of a convolution, and its geometry.
func (n ConvNet) bordered(l convLayer, x *gorgonia.Node, side int) (*gorgonia.Node, conv.Geometry) {
	g := conv.Geometry{Height: side, Width: side, Kernel: l.kernel, Stride: l.stride, Pad: l.kernel / 2}
	if l.whole() {
		g.Pad = 0
	}
	if n.Padding != "same" || l.whole() {
		return x, g
	}
	total := max(0, (n.halved(l, side)-1)*l.stride+l.kernel-side)
	if g.Pad = total / 2; total%2 == 0 {
		return x, g
	}
	x = conv.Border(x, side, side, total/2, total-total/2)
	g.Height, g.Width, g.Pad = side+total, side+total, 0
	return x, g
}

// conv is a convolution with its batch norm.
func (n ConvNet) conv(c *Context, s Scope, name string, l convLayer, x *gorgonia.Node, side, out int) *gorgonia.Node {
	in := columns("convnet", x)
	x, g := n.bordered(l, x, side)
	w := s.In(name).Param("weight", fanOut(out*l.kernel*l.kernel), out, in, l.kernel, l.kernel)
	b := BatchNorm{Eps: float32(n.Eps)}
	if c.Statistics == nil {
		return b.folded(s.In(name+"_norm"), x, w, g)
	}
	return b.Of(c, s.In(name+"_norm"), conv.Conv(x, w, g))
}

// normed is the batch norm of a depthwise convolution.
func (n ConvNet) normed(c *Context, s Scope, name string, x *gorgonia.Node) *gorgonia.Node {
	return BatchNorm{Eps: float32(n.Eps)}.Of(c, s.In(name+"_norm"), x)
}

// depthwise is that convolution of a layer.
func (n ConvNet) depthwise(s Scope, l convLayer, x *gorgonia.Node, side int) *gorgonia.Node {
	d := columns("convnet", x)
	x, g := n.bordered(l, x, side)
	return conv.Depthwise(x, s.In("dw").Param("weight", fanOut(l.kernel*l.kernel), d, 1, l.kernel, l.kernel), g)
}

// biased is a convolution with a bias.
func (n ConvNet) biased(s Scope, name string, x *gorgonia.Node, side int, l convLayer) *gorgonia.Node {
	in, g := columns("convnet", x), conv.Geometry{Height: side, Width: side, Kernel: l.kernel, Stride: l.stride}
	s = s.In(name)
	y := conv.Conv(x, s.Param("weight", vitInit, l.channels, in, l.kernel, l.kernel), g)
	return nn.AddPositions(y, layout.Reshape(s.bias(Zeros, l.channels), 1, l.channels), 1)
}

// excited is squeeze and excitation of channels (Hu et al. 2018) of images of p places.
func (n ConvNet) excited(s Scope, l convLayer, x *gorgonia.Node, p int) *gorgonia.Node {
	d, inner := columns("convnet", x), l
	if n.Gate == "hardsigmoid" {
		inner.activation = "relu"
	}
	y := linear(s, "reduce", torchLinear, nn.MeanTokens(x, nil, p, 0), l.gate) // (B, se)
	y = nn.Bounded(linear(s, "expand", torchLinear, n.act(inner, y), d), n.Gate)
	return nn.ScaleSequences(x, y, p)
}
