package weights

import (
	"fmt"
	"strings"

	"github.com/geoalign/geoalign/encoders"
)

// resNet is residual networks of torchvision and of timm, which have the same names, and of the checkpoints of MoCo and
// SwAV.
var resNet = family{
	name:     "resnet",
	types:    []string{"timm"},
	parts:    torchParts,
	findFor:  func(f *File, _ *facts) []part { return theirs(f) },
	unneeded: []string{"encoder_k.*", "queue", "queue_ptr", "projection_head.*", "prototypes.*"},
	describe: func(d *description) error {
		for _, name := range []string{"attnpool.c_proj.weight", "bn2.weight"} {
			if _, ok := d.file.Lookup(name); ok {
				return fmt.Errorf("it has %s: a stem of several convolutions and a pool by attention are read of CLIP's networks alone, which have both", name)
			}
		}
		if err := d.timmResNet(); err != nil {
			return err
		}
		// Resized to 256 and cut to 224, as torchvision's reference training evaluates.
		return d.resNet(preprocess{imageNetMean, imageNetStd, resizeCrop, "bilinear", 0.875})
	},
}

// theirs are the parts of a residual network, none where it is one of family resnext.
func theirs(f *File) []part {
	if planResNet(f).parts() != nil {
		return nil
	}
	return torchParts
}

// timmResNet refuses networks of timm that have the tensors of others and compute something else.
func (d *description) timmResNet() error {
	args := d.config.Args
	for _, part := range []string{"resnetblur", "resnetaa"} {
		if strings.HasPrefix(d.config.Architecture, part) {
			args.Blur = part
		}
	}
	_, stem := d.file.Lookup("maxpool.0.weight")
	switch act, said := args.Activation.(string); {
	case args.Blur != nil:
		return fmt.Errorf("%s has architecture = %q and aa_layer = %v: networks that blur before they leave out places are not read", d.path, d.config.Architecture, args.Blur)
	case args.Stride != 0 && args.Stride != 32:
		return fmt.Errorf("%s has output_stride = %d in model_args: networks with dilation in the place of strides are not read", d.path, args.Stride)
	case args.NoStem || stem:
		return fmt.Errorf("it has a convolution in the place of the pool before the stages (replace_stem_pool), which is not read")
	case said && act != "relu":
		return fmt.Errorf("%s has act_layer %q in model_args: the networks here have relu", d.path, act)
	}
	if args.Pool != "" && args.Pool != "avg" {
		d.note("an image is pooled by %q (global_pool in model_args), and here it is the mean of the places", args.Pool)
	}
	return nil
}

// resNetHF is residual networks of Hugging Face.
var resNetHF = family{
	name:     "resnet_hf",
	types:    []string{"resnet"},
	parts:    resNetParts(hfStem, hfStage, "", "resnet."),
	unneeded: []string{"classifier.*"},
	describe: func(d *description) error {
		if d.config.BottleneckFirst {
			return fmt.Errorf("%s has downsample_in_bottleneck = true: blocks whose first convolution has the stride are not read, only those of version 1.5", d.path)
		}
		if act := d.config.HiddenAct; act != "" && act != "relu" {
			return fmt.Errorf("%s has hidden_act = %q: the networks here have relu", d.path, act)
		}
		if d.config.FirstStage {
			return fmt.Errorf("%s has downsample_in_first_stage = true: a first stage with a stride is not read",
				d.path)
		}
		return d.resNet(preprocess{imageNetMean, imageNetStd, resizeCrop, "bicubic", 0.875})
	},
}

var torchParts = resNetParts(torchStem, torchStage, "", "encoder_q.", "encoder.", "backbone.")

// resNetNames are the names of a convolution and its batch norm, with # for the number of a block.
type resNetNames struct{ conv, norm string }

// torchStem and torchStage are torchvision's names of the stem, and of the convolutions of a block of stage i: three
// and that of its input.
var torchStem = resNetNames{"conv1", "bn1"}

func torchStage(i int) (convs []resNetNames) {
	block := fmt.Sprintf("layer%d.#.", i+1)
	for k := 1; k <= 3; k++ {
		convs = append(convs, resNetNames{fmt.Sprintf("%sconv%d", block, k), fmt.Sprintf("%sbn%d", block, k)})
	}
	return append(convs, resNetNames{block + "downsample.0", block + "downsample.1"})
}

// hfStem and hfStage are those of Hugging Face.
var hfStem = resNetNames{"embedder.embedder.convolution", "embedder.embedder.normalization"}

func hfStage(i int) (convs []resNetNames) {
	block := fmt.Sprintf("encoder.stages.%d.layers.#.", i)
	for k := range 3 {
		layer := fmt.Sprintf("%slayer.%d.", block, k)
		convs = append(convs, resNetNames{layer + "convolution", layer + "normalization"})
	}
	return append(convs, resNetNames{block + "shortcut.convolution", block + "shortcut.normalization"})
}

// resNetParts are the stem and the four stages of a network, whose names may have a prefix. Blocks have three
// convolutions, basic ones two, and some a fourth of their input.
func resNetParts(stem resNetNames, stage func(i int) []resNetNames, prefixes ...string) []part {
	parts := []part{{
		prefixes: prefixes, marks: []string{stem.conv + ".weight"}, ours: "image/",
		needs:    convolution("conv1", "bn1", stem),
		unneeded: []string{"*.num_batches_tracked", "fc.*"},
	}}
	for i := range 4 {
		convs := stage(i)
		p := part{prefixes: prefixes, marks: []string{convs[0].conv + ".weight"}, ours: fmt.Sprintf("image/layer%d/", i+1)}
		for k, n := range convs[:3] {
			rules := convolution(fmt.Sprintf("#/conv%d", k+1), fmt.Sprintf("#/bn%d", k+1), n)
			if k < 2 {
				p.needs = append(p.needs, rules...)
			} else {
				p.may = append(p.may, rules...)
			}
		}
		p.may = append(p.may, convolution("#/downsample/0", "#/downsample/1", convs[3])...)
		parts = append(parts, p)
	}
	return parts
}

// convolution are the rules of a convolution and its batch norm.
func convolution(conv, norm string, theirs resNetNames) (rules []rule) {
	rules = []rule{{conv + "/weight", theirs.conv + ".weight", nil}, {norm + "/*", theirs.norm + ".*", nil}}
	for _, name := range []string{"running_mean", "running_var"} {
		rules = append(rules, rule{norm + "/" + name, theirs.norm + "." + name, nil})
	}
	return rules
}

// resNetDepth is the depth of the network of encoders that has these blocks, bottlenecks or basic ones; 0: there is
// none.
func resNetDepth(blocks [4]int, bottleneck bool) int {
	for _, depth := range encoders.ResNetDepths {
		r := encoders.ResNet{Depth: depth}
		same := r.Bottleneck() == bottleneck
		for i, n := range blocks {
			same = same && len(r.Stage(i)) == n
		}
		if same {
			return depth
		}
	}
	return 0
}

// resNet sets the keys of [model.image] of a residual network.
func (d *description) resNet(prepare preprocess) error {
	width, err := d.size("image/conv1/weight", 0)
	if err != nil {
		return err
	}
	kernel, err := d.size("image/conv1/weight", 3)
	if err != nil {
		return err
	}
	if kernel != 3 && kernel != 7 {
		return fmt.Errorf("its first convolution is of %d x %d: 7 x 7 and 3 x 3 are read", kernel, kernel)
	}
	var blocks [4]int
	for i := range blocks {
		for d.has(fmt.Sprintf("image/layer%d/%02d/conv1/weight", i+1, blocks[i])) {
			blocks[i]++
		}
	}
	bottleneck := d.has("image/layer1/00/conv3/weight")
	depth := resNetDepth(blocks, bottleneck)
	if depth == 0 {
		kind := map[bool]string{true: "bottlenecks", false: "basic blocks"}[bottleneck]
		return fmt.Errorf("it has stages of %v %s: ResNet-18, 34, 50 and 101 are read", blocks, kind)
	}
	for i := range blocks { // wide and grouped networks have other widths here
		in, err := d.size(fmt.Sprintf("image/layer%d/01/conv2/weight", i+1), 1)
		if err != nil {
			return err
		}
		if in != width<<i {
			return fmt.Errorf("a convolution of 3 x 3 of stage %d reads %d channels, and that of a ResNet-%d of width %d has %d: wide and grouped networks are not read", i+1, in, depth, width, width<<i)
		}
	}
	if err := d.agrees("embedding_size", d.config.EmbeddingSize, width); err != nil {
		return err
	}
	small := kernel == 3
	size := 224
	if small {
		size, prepare.crop = 32, 0
	}
	prepared, side, err := d.prepared(prepare)
	if err != nil {
		return err
	}
	if pretrained := d.config.Pretrained; side == 0 && pretrained != nil && len(pretrained.Shape) == 3 {
		side = pretrained.Shape[2]
	}
	if side > 0 {
		size = side
	} else {
		d.assume("model.image.size")
	}
	d.set("model.image.style", "resnet")
	d.set("model.image.size", size)
	d.set("model.image.resnet.depth", depth)
	d.set("model.image.resnet.width", width)
	d.set("model.image.resnet.small_stem", small)
	d.prepareImages(prepared)
	return nil
}
