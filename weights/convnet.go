package weights

import (
	"fmt"
	"strconv"
	"strings"
)

// convPlan is a network of convolutions as it is found in a file: the layers of model.image.convnet, and the rules of
// their parameters.
type convPlan struct {
	file   *File
	blocks []string
	rules  []rule
	means  bool  // strides of bottlenecks are means of places
	err    error // the first
}

// shape is that of a tensor, nil where it is not there.
func (p *convPlan) shape(name string) []int {
	t, ok := p.file.tensors[name]
	if !ok {
		return nil
	}
	if len(t.Shape) == 0 {
		return []int{0, 0, 0, 0}
	}
	return t.Shape
}

// at is an axis of a convolution's weight.
func (p *convPlan) at(name string, axis int) int {
	s := p.shape(name)
	if len(s) != 4 {
		if p.err == nil {
			p.err = fmt.Errorf("%s has shape %v, want that of a convolution", name, s)
		}
		return 1
	}
	return s[axis]
}

// is adds a rule for a parameter of the layer that is added next.
func (p *convPlan) is(ours, theirs string, make *shaping) {
	p.rules = append(p.rules, rule{fmt.Sprintf("image/layers/%02d/%s", len(p.blocks), ours), theirs, make})
}

// normed are the rules of a convolution with a batch norm.
func (p *convPlan) normed(ours, conv, norm string) {
	p.is(ours+"/weight", conv+".weight", nil)
	for _, name := range []string{"weight", "bias", "running_mean", "running_var"} {
		p.is(ours+"_norm/"+name, norm+"."+name, nil)
	}
}

// whole adds a convolution with a batch norm and an activation.
func (p *convPlan) whole(conv, norm string, stride int) {
	p.normed("conv", conv, norm)
	p.add("conv k%d s%d c%d", p.at(conv+".weight", 2), stride, p.at(conv+".weight", 0))
}

func (p *convPlan) add(format string, args ...any) {
	p.blocks = append(p.blocks, fmt.Sprintf(format, args...))
}

// mobileNames are the names of the parts of an inverted residual, or of a depthwise separable convolution, which has no
// expansion.
type mobileNames struct{ expand, expandNorm, dw, dwNorm, reduce, excite, project, projectNorm string }

// mobile adds such a layer.
func (p *convPlan) mobile(n mobileNames, stride int, activation string) {
	kind, size := "ds", ""
	if p.shape(n.expand+".weight") != nil {
		kind, size = "ir", fmt.Sprintf(" e%d", p.at(n.expand+".weight", 0))
		p.normed("expand", n.expand, n.expandNorm)
	}
	p.normed("dw", n.dw, n.dwNorm)
	p.normed("project", n.project, n.projectNorm)
	end := ""
	if p.shape(n.reduce+".weight") != nil {
		end = fmt.Sprintf(" se%d", p.at(n.reduce+".weight", 0))
		p.is("se/reduce/weight", n.reduce+".weight", pointwise)
		p.is("se/reduce/bias", n.reduce+".bias", nil)
		p.is("se/expand/weight", n.excite+".weight", pointwise)
		p.is("se/expand/bias", n.excite+".bias", nil)
	}
	if activation != "" {
		end += " " + activation
	}
	p.add("%s k%d s%d%s c%d%s", kind, p.at(n.dw+".weight", 2), stride, size, p.at(n.project+".weight", 0), end)
}

// efficientStrides are those of the stages of EfficientNet, of their first blocks.
var efficientStrides = []int{1, 2, 2, 2, 1, 2, 1}

// planEfficient reads EfficientNet as the packages efficientnet_pytorch and efficientnet_lite_pytorch name it. A stage
// begins where the number of channels changes.
func planEfficient(f *File) *convPlan {
	p := &convPlan{file: f}
	p.whole("_conv_stem", "_bn0", 2)
	stage, last := -1, 0
	for i := 0; p.shape(fmt.Sprintf("_blocks.%d._depthwise_conv.weight", i)) != nil; i++ {
		b := fmt.Sprintf("_blocks.%d.", i)
		stride := 1
		if out := p.at(b+"_project_conv.weight", 0); out != last {
			if stage, last = stage+1, out; stage >= len(efficientStrides) {
				p.err = fmt.Errorf("it has more than %d stages", len(efficientStrides))
				return p
			}
			stride = efficientStrides[stage]
		}
		p.mobile(mobileNames{b + "_expand_conv", b + "_bn0", b + "_depthwise_conv", b + "_bn1", b + "_se_reduce",
			b + "_se_expand", b + "_project_conv", b + "_bn2"}, stride, "")
	}
	p.whole("_conv_head", "_bn1", 1)
	return p
}

// planTimmMobile reads networks of timm's efficientnet.py and mobilenetv3.py, with the strides of their stages.
// relus is how many of the first stages have ReLU.
func planTimmMobile(f *File, strides []int, relus int, head bool) *convPlan {
	p := &convPlan{file: f}
	p.whole("conv_stem", "bn1", 2)
	for stage := range strides {
		for i := 0; ; i++ {
			b, stride, act := fmt.Sprintf("blocks.%d.%d.", stage, i), 1, ""
			if i == 0 {
				stride = strides[stage]
			}
			if stage < relus {
				act = "relu"
			}
			switch {
			case p.shape(b+"conv.weight") != nil:
				p.whole(b+"conv", b+"bn1", stride)
				continue
			case p.shape(b+"conv_pwl.weight") != nil:
				p.mobile(mobileNames{b + "conv_pw", b + "bn1", b + "conv_dw", b + "bn2", b + "se.conv_reduce",
					b + "se.conv_expand", b + "conv_pwl", b + "bn3"}, stride, act)
				continue
			case p.shape(b+"conv_dw.weight") != nil:
				p.mobile(mobileNames{"", "", b + "conv_dw", b + "bn1", b + "se.conv_reduce", b + "se.conv_expand",
					b + "conv_pw", b + "bn2"}, stride, act)
				continue
			}
			break
		}
	}
	if head {
		p.whole("conv_head", "bn2", 1)
	}
	return p
}

// parts are those of a plan.
func (p *convPlan) parts() []part {
	if p.err != nil || len(p.blocks) < 3 {
		return nil
	}
	return []part{{prefixes: []string{""}, needs: p.rules}}
}

// convFacts are what no tensor of a network of convolutions shows.
type convFacts struct {
	activation, gate, padding string
	eps                       float64
	size                      int  // of images
	heads                     int  // of the pool by attention; 0: the mean
	fixed                     bool // no other size of images has as many positions
	preprocess                preprocess
}

// convNet sets the keys of [model.image] of a plan.
func (d *description) convNet(p *convPlan, o convFacts) error {
	if p.err != nil {
		return p.err
	}
	prepared, side, err := d.prepared(o.preprocess)
	if err != nil {
		return err
	}
	if pretrained := d.config.Pretrained; side == 0 && pretrained != nil && len(pretrained.Shape) == 3 {
		side = pretrained.Shape[2]
	}
	switch {
	case side == 0:
		side = o.size
		d.assume("model.image.size")
	case o.fixed && side != o.size:
		return fmt.Errorf("the files ask for images of %d pixels, and the pool by attention has positions of %d", side, o.size)
	}
	list := make([]string, len(p.blocks))
	for i, b := range p.blocks {
		list[i] = strconv.Quote(b)
	}
	d.set("model.image.style", "convnet")
	d.set("model.image.size", side)
	d.settings = append(d.settings, Setting{Key: "model.image.convnet.blocks", Value: "[" + strings.Join(list, ", ") + "]"})
	d.set("model.image.convnet.activation", o.activation)
	d.set("model.image.convnet.gate", o.gate)
	d.set("model.image.convnet.padding", o.padding)
	d.set("model.image.convnet.eps", o.eps)
	d.set("model.image.convnet.final_norm", d.has("image/norm/weight"))
	d.set("model.image.convnet.layer_scale", len(p.blocks) > 1 && d.has("image/layers/01/scale"))
	if d.has("image/layers/01/response_norm/weight") {
		d.set("model.image.convnet.response_norm", true)
	}
	if o.heads > 0 {
		d.set("model.image.convnet.pool_heads", o.heads)
		if width, err := d.size("image/pool/proj/weight", 0); err == nil {
			d.set("model.image.convnet.pool_width", width)
		}
	}
	d.prepareImages(prepared)
	return nil
}

// efficientNet is EfficientNet and EfficientNet-Lite (Tan and Le 2019) of efficientnet_pytorch and its kin. Lite has no
// squeeze and excitation, and ReLU6.
var efficientNet = family{
	name:     "efficientnet",
	find:     func(f *File) []part { return planEfficient(f).parts() },
	below:    "_conv_stem.",
	within:   []string{"_blocks."},
	unneeded: []string{"_fc.*", "*.num_batches_tracked"},
	describe: func(d *description) error {
		p := planEfficient(d.file)
		o := convFacts{"relu6", "sigmoid", "same", 1e-3, 224, 0, false, preprocess{half, half, resizeCrop, "bicubic", 0.875}}
		if d.has("image/layers/01/se/reduce/weight") {
			o.activation, o.preprocess.mean, o.preprocess.std = "silu", imageNetMean, imageNetStd
		}
		return d.convNet(p, o)
	},
}

// timmStrides are the strides of the stages of architectures of timm, by how their names begin behind tf_.
var timmStrides = []struct {
	name    string
	strides []int
	relus   int // of so many of the first stages
}{
	{"mobilenetv3_large", []int{1, 2, 2, 2, 1, 2, 1}, 3}, {"mobilenetv3_small", []int{2, 2, 2, 1, 2, 1}, 2},
	{"efficientnet_lite", efficientStrides, 0}, {"efficientnet_b", efficientStrides, 0},
}

// planTimm is the network that config.json names; nil where it names none of these.
func (d *description) planTimm() (p *convPlan, mobile bool) {
	return planTimmOf(d.file, d.config.Architecture)
}

func planTimmOf(f *File, architecture string) (p *convPlan, mobile bool) {
	name := strings.TrimPrefix(architecture, "tf_")
	for _, a := range timmStrides {
		if architecture != "" && strings.HasPrefix(name, a.name) || architecture == "" && a.name == "efficientnet_lite" {
			mobile = a.relus > 0
			return planTimmMobile(f, a.strides, a.relus, !mobile), mobile
		}
	}
	return nil, false
}

// timmMobile is MobileNetV3 and EfficientNet of timm.
var timmMobile = family{
	name:  "timm-mobile",
	types: []string{"timm"},
	below: "conv_stem.",
	findFor: func(f *File, x *facts) []part {
		if p, _ := planTimmOf(f, x.config.Architecture); p != nil {
			return p.parts()
		}
		return nil
	},
	within:   []string{"blocks."},
	unneeded: []string{"classifier.*", "conv_head.*", "*.num_batches_tracked", "norm_head.*"},
	describe: func(d *description) error {
		p, mobile := d.planTimm()
		architecture := d.config.Architecture
		o := convFacts{"silu", "sigmoid", "", 1e-5, 224, 0, false, preprocess{imageNetMean, imageNetStd, resizeCrop, "bicubic", 0.875}}
		if strings.HasPrefix(architecture, "tf_") {
			o.padding, o.eps = "same", 1e-3
		}
		if strings.Contains(architecture, "lite") || architecture == "" {
			o.activation = "relu6"
		}
		if mobile {
			o.activation, o.gate = "hardswish", "hardsigmoid"
		}
		if strings.Contains(architecture, "minimal") {
			return fmt.Errorf("%s has the architecture %q, whose activations are others: mobilenetv3_large, mobilenetv3_small, efficientnet_b and efficientnet_lite are read", d.path, architecture)
		}
		if architecture == "" {
			d.note("no file says which network it is: it is read as efficientnet_lite, with ReLU6 and the borders of PyTorch")
		}
		if err := d.plainTimm(); err != nil {
			return err
		}
		return d.convNet(p, o)
	},
}
