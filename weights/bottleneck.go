package weights

import (
	"fmt"
	"strings"
)

// bottleNames are the names of the convolutions of a residual bottleneck and of their norms, and of the two layers of
// squeeze and excitation.
type bottleNames struct {
	conv1, norm1, conv2, norm2, conv3, norm3, down, downNorm, reduce, excite string
}

// bottleneck adds a block with its stride, false where there is none of the names.
func (p *convPlan) bottleneck(n bottleNames, stride int) bool {
	if p.shape(n.conv1+".weight") == nil || p.shape(n.conv3+".weight") == nil {
		return false
	}
	p.normed("conv1", n.conv1, n.norm1)
	p.normed("conv2", n.conv2, n.norm2)
	p.normed("conv3", n.conv3, n.norm3)
	in, inner, out := p.at(n.conv1+".weight", 1), p.at(n.conv2+".weight", 0), p.at(n.conv3+".weight", 0)
	if down := p.shape(n.down + ".weight"); stride != 1 || in != out {
		if down == nil && p.err == nil {
			p.err = fmt.Errorf("it has no %s.weight: blocks whose input passes another layer than a convolution of one place are not read", n.down)
		}
		p.normed("down", n.down, n.downNorm)
	}
	end := ""
	if group := p.at(n.conv2+".weight", 1); group > 0 && group != inner {
		end = fmt.Sprintf(" g%d", inner/group)
	}
	if p.shape(n.reduce+".weight") != nil {
		end += fmt.Sprintf(" se%d", p.at(n.reduce+".weight", 0))
		p.is("se/reduce/weight", n.reduce+".weight", pointwise)
		p.is("se/reduce/bias", n.reduce+".bias", nil)
		p.is("se/expand/weight", n.excite+".weight", pointwise)
		p.is("se/expand/bias", n.excite+".bias", nil)
	}
	kind := "rb"
	if p.means && stride > 1 {
		kind = "ra"
	}
	p.add("%s k%d s%d e%d c%d%s", kind, p.at(n.conv2+".weight", 2), stride, inner, out, end)
	return true
}

// planResNet reads residual networks of torchvision and timm that no ResNet of encoders is: ResNet-152, wide ones and
// ResNeXt. Others give none.
func planResNet(f *File) *convPlan {
	p := &convPlan{file: f}
	s := p.shape("conv1.weight")
	if len(s) != 4 || s[2] != 7 || p.shape("layer1.0.conv3.weight") == nil || p.shape("bn2.weight") != nil ||
		p.shape("attnpool.c_proj.weight") != nil {
		return p
	}
	width, plain := p.at("conv1.weight", 0), true
	p.whole("conv1", "bn1", 2)
	p.add("pool k3 s2")
	var blocks [4]int
	for stage := range 4 {
		for i := 0; ; i++ {
			b, stride := fmt.Sprintf("layer%d.%d.", stage+1, i), 1
			if stage > 0 && i == 0 {
				stride = 2
			}
			if !p.bottleneck(bottleNames{b + "conv1", b + "bn1", b + "conv2", b + "bn2", b + "conv3", b + "bn3", b + "downsample.0", b + "downsample.1", "", ""}, stride) {
				break
			}
			inner := p.at(b+"conv2.weight", 0)
			plain = plain && inner == width<<stage && p.at(b+"conv2.weight", 1) == inner
			blocks[stage]++
		}
	}
	if plain && resNetDepth(blocks, true) > 0 || p.err != nil && plain {
		return &convPlan{file: f}
	}
	return p
}

// residual is such networks.
var residual = family{
	name:     "resnext",
	types:    []string{"timm"},
	find:     func(f *File) []part { return planResNet(f).parts() },
	below:    "layer1.",
	within:   []string{"layer1.", "layer2.", "layer3.", "layer4."},
	unneeded: []string{"fc.*", "*.num_batches_tracked"},
	describe: func(d *description) error {
		if err := d.timmResNet(); err != nil {
			return err
		}
		return d.convNet(planResNet(d.file), convFacts{"relu", "sigmoid", "", 1e-5, 224, 0, false, preprocess{imageNetMean, imageNetStd, resizeCrop, "bilinear", 0.875}})
	},
}

// planModified reads the residual network of CLIP (Radford et al. 2021, section 2.4), of open_clip with or without the
// text tower beside it, or of timm.
func planModified(f *File) *convPlan {
	p := &convPlan{file: f, means: true}
	stem := func(format, norm string) {
		for i := 1; i <= 3; i++ {
			p.whole(fmt.Sprintf(format, i), fmt.Sprintf(norm, i), max(1, 3-i))
		}
		p.add("mean k2")
	}
	for _, prefix := range []string{"visual.", ""} {
		if p.shape(prefix+"conv3.weight") == nil || p.shape(prefix+"attnpool.q_proj.weight") == nil {
			continue
		}
		stem(prefix+"conv%d", prefix+"bn%d")
		p.stages(func(stage, i int) bottleNames {
			b := fmt.Sprintf("%slayer%d.%d.", prefix, stage+1, i)
			return bottleNames{b + "conv1", b + "bn1", b + "conv2", b + "bn2", b + "conv3", b + "bn3", b + "downsample.0", b + "downsample.1", "", ""}
		}, 1)
		p.attends(prefix+"attnpool.", "positional_embedding", "{q,k,v}_proj", "c_proj")
		return p
	}
	if p.shape("stem.conv3.conv.weight") == nil || p.shape("stages.0.0.conv1_1x1.conv.weight") == nil {
		return p
	}
	stem("stem.conv%d.conv", "stem.conv%d.bn")
	p.stages(func(stage, i int) bottleNames {
		b := fmt.Sprintf("stages.%d.%d.", stage, i)
		return bottleNames{b + "conv1_1x1.conv", b + "conv1_1x1.bn", b + "conv2_kxk.conv", b + "conv2_kxk.bn", b + "conv3_1x1.conv", b + "conv3_1x1.bn", b + "shortcut.conv.conv", b + "shortcut.conv.bn", "", ""}
	}, 1)
	p.attends("head.", "pos_embed", "{q,k,v}", "proj")
	return p
}

// attends are the rules of a pool by attention below a prefix, where it is there.
func (p *convPlan) attends(prefix, positions, qkv, proj string) {
	if p.shape(prefix+positions) == nil {
		return
	}
	pool := func(ours, theirs string) { p.rules = append(p.rules, rule{"image/pool/" + ours, prefix + theirs, nil}) }
	pool("pos_embed", positions)
	for _, which := range []string{"weight", "bias"} {
		pool("qkv/"+which, qkv+"."+which)
		if p.shape(prefix+proj+".weight") != nil {
			pool("proj/"+which, proj+"."+which)
		}
	}
}

// clipResNet is that network, alone or as the image tower of a dual encoder of open_clip.
var clipResNet = family{
	name:  "clip_resnet",
	types: []string{"open_clip", "timm"},
	find: func(f *File) []part {
		if list := planModified(f).parts(); list != nil {
			return openCLIPParts(f, list...)
		}
		return nil
	},
	within: []string{"visual.layer1.", "visual.layer2.", "visual.layer3.", "visual.layer4.", "layer1.", "layer2.", "layer3.",
		"layer4.", "stages.0.", "stages.1.", "stages.2.", "stages.3."},
	unneeded: append([]string{"*.num_batches_tracked", "head.fc.*"}, openCLIPUnneeded...),
	describe: func(d *description) error {
		p := planModified(d.file)
		arch := d.config.Architecture
		if _, timm := d.file.Lookup("stem.conv1.conv.weight"); timm && !(strings.HasPrefix(arch, "resnet") && strings.Contains(arch, "_clip")) {
			return fmt.Errorf("%s has the architecture %q, and of timm's networks with three convolutions before the stages resnet..._clip is read", d.path, arch)
		}
		o := convFacts{"relu", "sigmoid", "", 1e-5, 224, 0, false, preprocess{clipMean, clipStd, resizeCrop, "bicubic", 0}}
		if d.has("image/pool/pos_embed") {
			width, err := d.size("image/pool/pos_embed", 1)
			if err != nil {
				return err
			}
			grid, head := root(d.values["image/pool/pos_embed"].shape[0]-1), 64
			if d.openCLIP != nil && d.openCLIP.Model.Vision.HeadWidth > 0 {
				head = d.openCLIP.Model.Vision.HeadWidth
			}
			o.size, o.heads, o.fixed = 32*grid, max(1, width/head), true
		}
		if err := d.plainTimm(); err != nil {
			return err
		}
		return d.openCLIPTowers(func() error { return d.convNet(p, o) })
	},
}

// planRegNet reads RegNet of timm, or of Hugging Face below a prefix.
func planRegNet(f *File) *convPlan {
	p := &convPlan{file: f}
	if p.shape("stem.conv.weight") != nil {
		p.whole("stem.conv", "stem.bn", 2)
		p.stages(func(stage, i int) bottleNames {
			b := fmt.Sprintf("s%d.b%d.", stage+1, i+1)
			return bottleNames{b + "conv1.conv", b + "conv1.bn", b + "conv2.conv", b + "conv2.bn", b + "conv3.conv", b + "conv3.bn", b + "downsample.conv", b + "downsample.bn", b + "se.fc1", b + "se.fc2"}
		}, 2)
		return p
	}
	for _, prefix := range []string{"regnet.", ""} {
		if p.shape(prefix+"embedder.embedder.convolution.weight") == nil {
			continue
		}
		p.whole(prefix+"embedder.embedder.convolution", prefix+"embedder.embedder.normalization", 2)
		p.stages(func(stage, i int) bottleNames {
			b := fmt.Sprintf("%sencoder.stages.%d.layers.%d.", prefix, stage, i)
			at, third := func(k int, name string) string { return fmt.Sprintf("%slayer.%d.%s", b, k, name) }, 2
			if p.shape(at(3, "convolution.weight")) != nil { // behind squeeze and excitation
				third = 3
			}
			return bottleNames{at(0, "convolution"), at(0, "normalization"), at(1, "convolution"), at(1, "normalization"), at(third, "convolution"), at(third, "normalization"), b + "shortcut.convolution", b + "shortcut.normalization",
				at(2, "attention.0"), at(2, "attention.2")}
		}, 2)
		return p
	}
	return p
}

// stages adds four stages of blocks, the first of each with a stride of 2, but that of the first stage with a given one.
func (p *convPlan) stages(name func(stage, i int) bottleNames, first int) {
	for stage := range 4 {
		for i := 0; p.bottleneck(name(stage, i), max(1, first-i)); i++ {
		}
		first = 2
	}
}

// regNet is RegNet (Radosavovic et al. 2020) of timm and Hugging Face.
var regNet = family{
	name:     "regnet",
	types:    []string{"timm", "regnet"},
	find:     func(f *File) []part { return planRegNet(f).parts() },
	within:   []string{"s1.", "s2.", "s3.", "s4.", "s1.b", "s2.b", "s3.b", "s4.b", "encoder.stages.", "regnet.encoder.stages."},
	unneeded: []string{"head.*", "classifier.*", "*.num_batches_tracked"},
	describe: func(d *description) error {
		if a := d.config.Architecture; a != "" && !strings.HasPrefix(a, "regnetx_") && !strings.HasPrefix(a, "regnety_") {
			return fmt.Errorf("%s has the architecture %q, and regnetx_ and regnety_ are read", d.path, a)
		}
		if act := d.config.HiddenAct; act != "" && act != "relu" {
			return fmt.Errorf("%s has hidden_act %q, and relu is read", d.path, act)
		}
		k := d.keys()
		if first, said := keyOf[bool](k, "true or false", "downsample_in_first_stage"); said && !first {
			return fmt.Errorf("%s has downsample_in_first_stage = false, and true is read", d.path)
		}
		if k.err != nil {
			return k.err
		}
		if err := d.plainTimm(); err != nil {
			return err
		}
		return d.convNet(planRegNet(d.file), convFacts{"relu", "sigmoid", "", 1e-5, 224, 0, false, preprocess{imageNetMean, imageNetStd, resizeCrop, "bicubic", 0.875}})
	},
}
