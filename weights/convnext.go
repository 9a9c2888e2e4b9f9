package weights

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// nextNames are the names of ConvNeXt, with # for a stage and % for a block.
type nextNames struct{ stem, stemNorm, downNorm, down, block, dw, norm, fc1, fc2, scale, responses, last string }

var (
	nextHF = nextNames{"embeddings.patch_embeddings", "embeddings.layernorm", "encoder.stages.#.downsampling_layer.0",
		"encoder.stages.#.downsampling_layer.1", "encoder.stages.#.layers.%.", "dwconv", "layernorm", "pwconv1", "pwconv2",
		"layer_scale_parameter", "grn", "layernorm"}
	nextTimm = nextNames{"stem.0", "stem.1", "stages.#.downsample.0", "stages.#.downsample.1", "stages.#.blocks.%.",
		"conv_dw", "norm", "mlp.fc1", "mlp.fc2", "gamma", "mlp.grn", "head.norm"}
)

// planNext reads ConvNeXt below a prefix.
func planNext(f *File, n nextNames, prefix string) *convPlan {
	p := &convPlan{file: f}
	pair := func(ours, theirs string, make *shaping) {
		p.is(ours+"/weight", prefix+theirs+".weight", make)
		p.is(ours+"/bias", prefix+theirs+".bias", nil)
	}
	pair("conv", n.stem, nil)
	pair("norm", n.stemNorm, nil)
	p.add("patch k%d c%d", p.at(prefix+n.stem+".weight", 2), p.at(prefix+n.stem+".weight", 0))
	for stage := 0; ; stage++ {
		at := func(name string, block int) string {
			return strings.NewReplacer("#", strconv.Itoa(stage), "%", strconv.Itoa(block)).Replace(name)
		}
		if down := at(n.down, 0); p.shape(prefix+down+".weight") != nil {
			pair("norm", at(n.downNorm, 0), nil)
			pair("conv", down, nil)
			p.add("down c%d", p.at(prefix+down+".weight", 0))
		}
		block := 0
		for ; p.shape(prefix+at(n.block, block)+n.dw+".weight") != nil; block++ {
			b := at(n.block, block)
			dw, fc1 := p.at(prefix+b+n.dw+".weight", 2), p.shape(prefix+b+n.fc1+".weight")
			if len(fc1) < 2 {
				p.err = fmt.Errorf("%s has shape %v, want a matrix", b+n.fc1, fc1)
				return p
			}
			pair("dw", b+n.dw, nil)
			pair("norm", b+n.norm, nil)
			pair("fc1", b+n.fc1, pointwise)
			pair("fc2", b+n.fc2, pointwise)
			if p.shape(prefix+b+n.scale) != nil {
				p.is("scale", prefix+b+n.scale, nil)
			}
			if p.shape(prefix+b+n.responses+".weight") != nil {
				p.is("response_norm/weight", prefix+b+n.responses+".weight", responses)
				p.is("response_norm/bias", prefix+b+n.responses+".bias", responses)
			}
			p.add("cx k%d e%d c%d", dw, fc1[0], p.at(prefix+b+n.dw+".weight", 0))
		}
		if block == 0 {
			break
		}
	}
	if p.shape(prefix+n.last+".weight") != nil {
		for _, which := range []string{"weight", "bias"} {
			p.rules = append(p.rules, rule{"image/norm/" + which, prefix + n.last + "." + which, nil})
		}
	}
	return p
}

// responses is a vector that is stored as (1, 1, 1, D).
var responses = &shaping{joinVector, func(p Param, names []string, _ Naming) []Param {
	return p.as(names[0], 1, 1, 1, p.Shape[0])
}}

// nextOut are the parts of a network of layers patch, cx and down under the names of Hugging Face.
func nextOut(layers []string) []part {
	p, n, stage, block, may := &convPlan{}, nextHF, 0, 0, []rule{}
	pair := func(ours, theirs string, make *shaping) {
		name := strings.NewReplacer("#", strconv.Itoa(stage), "%", strconv.Itoa(block)).Replace(theirs)
		p.is(ours+"/weight", name+".weight", make)
		p.is(ours+"/bias", name+".bias", nil)
	}
	for _, layer := range layers {
		switch kind, _, _ := strings.Cut(layer, " "); kind {
		case "patch":
			pair("conv", n.stem, nil)
			pair("norm", n.stemNorm, nil)
		case "down":
			stage, block = stage+1, 0
			pair("norm", n.downNorm, nil)
			pair("conv", n.down, nil)
		case "cx":
			pair("dw", n.block+n.dw, nil)
			pair("norm", n.block+n.norm, nil)
			pair("fc1", n.block+n.fc1, pointwise)
			pair("fc2", n.block+n.fc2, pointwise)
			all := len(p.rules)
			pair("response_norm", n.block+n.responses, responses)
			p.rules[all].make, p.rules[all+1].make = responses, responses
			may, p.rules = append(may, p.rules[all:]...), p.rules[:all]
			at := strings.NewReplacer("#", strconv.Itoa(stage), "%", strconv.Itoa(block)).Replace(n.block + n.scale)
			may = append(may, rule{fmt.Sprintf("image/layers/%02d/scale", len(p.blocks)), at, nil})
			block++
		}
		p.add("%s", layer)
	}
	return []part{{prefixes: []string{""}, needs: append(p.rules, rule{"image/norm/*", n.last + ".*", nil}), may: may}}
}

// convNeXt is ConvNeXt (Liu et al. 2022) and ConvNeXt V2 (Woo et al. 2023) of Hugging Face and timm.
var convNeXt = family{
	name:     "convnext",
	types:    []string{"convnext", "convnextv2", "timm"},
	find:     func(f *File) []part { return planNextOf(f).parts() },
	out:      nextOut,
	within:   []string{"encoder.stages.", "convnext.encoder.stages.", "convnextv2.encoder.stages.", "stages."},
	unneeded: []string{"classifier.*", "head.fc.*"},
	describe: func(d *description) error {
		o := convFacts{"gelu", "sigmoid", "", 1e-6, 224, 0, false, preprocess{imageNetMean, imageNetStd, resizeCrop, "bicubic", 0.875}}
		if strings.Contains(d.config.Architecture, "xxlarge") {
			o.eps = 1e-5
		}
		if _, first := d.file.Lookup("norm_pre.weight"); first {
			return errors.New("its last norm stands before the mean of places (norm_pre), and one behind it is read")
		}
		if _, timm := d.file.Lookup("stem.0.weight"); timm && d.values["image/layers/00/conv/weight"].shape[2]%2 != 0 {
			return errors.New("its first convolution is of patches that overlap, and patches side by side are read")
		}
		if err := d.plainTimm(); err != nil {
			return err
		}
		act, err := activation("hidden_act", d.config.HiddenAct, "gelu")
		if err != nil {
			return err
		}
		o.activation = act
		if d.config.Eps > 0 { // of the last norm alone
			d.set("model.image.convnet.final_eps", d.config.Eps)
		}
		return d.convNet(planNextOf(d.file), o)
	},
}

// planNextOf reads ConvNeXt by the names that a file has.
func planNextOf(f *File) *convPlan {
	for _, prefix := range []string{"convnext.", "convnextv2.", ""} {
		if _, ok := f.tensors[prefix+nextHF.stem+".weight"]; ok {
			return planNext(f, nextHF, prefix)
		}
	}
	return planNext(f, nextTimm, "")
}
