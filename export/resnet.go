package export

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/weights"
)

// resNet is the image tower where it is a residual network.
func (x *job) resNet() (encoders.ResNet, bool) {
	t, ok := x.sides.Image.Tower.(encoders.ResNetTower)
	return t.ResNet, ok
}

// published refuses a stem that the networks of other programs do not have.
func (x *job) published(r encoders.ResNet) error {
	if r.SmallStem {
		return x.refuse("model.image.resnet.small_stem", true,
			"its networks begin with a convolution of 7 x 7 and pooling", asONNX)
	}
	return nil
}

// timmResNet writes a residual network for timm, which has the names of torchvision.
func (x *job) timmResNet(r encoders.ResNet) error {
	if err := x.published(r); err != nil {
		return err
	}
	if r.Width != 64 {
		return x.refuse("model.image.resnet.width", r.Width, "its stem has 64 channels", asHF, asONNX)
	}
	x.Side, x.class = "image", "ResNet"
	params := x.below(nil, "image/")
	list, err := weights.Renamed(params, weights.Naming{Family: "resnet"})
	if err != nil {
		return err
	}
	x.timmConfig(object{"architecture": fmt.Sprintf("resnet%d", r.Depth), "num_features": r.Channels(),
		"global_pool": "avg"},
		object{"input_size": []int{3, r.Size, r.Size}, "fixed_input_size": false, "first_conv": "conv1",
			"classifier": "fc"})
	x.tensors("model.safetensors", list, map[string]string{"format": "pt"})
	x.load = fmt.Sprintf("timm.create_model(%q, pretrained=True)", "local-dir:"+x.Out)
	x.note("torchvision has the same names: resnet%d().load_state_dict(safetensors.torch.load_file(%q), strict=False)",
		r.Depth, x.Out+"/model.safetensors")
	x.leftOut(params)
	return nil
}

// hfResNet writes a residual network as a class of its own.
func (x *job) hfResNet(r encoders.ResNet) error {
	if err := x.published(r); err != nil {
		return err
	}
	kind, out := "basic", r.Channels()
	if r.Bottleneck() {
		kind = "bottleneck"
	}
	var depths, sizes []int
	for i := range 4 {
		depths, sizes = append(depths, len(r.Stage(i))), append(sizes, out>>(3-i))
	}
	x.processor()
	return x.pretrained("ResNetModel", weights.Naming{Family: "resnet_hf"}, x.below(nil, "image/"), object{
		"model_type": "resnet", "num_channels": 3, "embedding_size": r.Width, "hidden_sizes": sizes, "depths": depths,
		"layer_type": kind, "hidden_act": "relu", "downsample_in_first_stage": false, "downsample_in_bottleneck": false,
	})
}

// hfConvNeXt writes a network of convolutions, of which the classes of ConvNeXt have one kind: patches, blocks of
// ConvNeXt, and convolutions of 2 x 2 between stages.
func (x *job) hfConvNeXt(n encoders.ConvNet) error {
	var depths, sizes []int
	patch, known := 0, n.FinalNorm && n.Eps == 1e-6 && n.LayerScale != n.ResponseNorm && n.Padding == ""
	for _, layer := range n.Blocks {
		var kernel, inner, width int
		last := len(sizes) - 1
		switch {
		case match(layer, "patch k%d c%d", &kernel, &width) && last < 0:
			patch, sizes, depths = kernel, append(sizes, width), append(depths, 0)
		case match(layer, "down c%d", &width) && last >= 0:
			sizes, depths = append(sizes, width), append(depths, 0)
		case match(layer, "cx k%d e%d c%d", &kernel, &inner, &width) && last >= 0 && kernel == 7 && inner == 4*width && width == sizes[last]:
			depths[last]++
		default:
			known = false
		}
	}
	act, ok := activationHF[n.Activation]
	if !known || !ok || slices.Contains(depths, 0) {
		return x.refuse("model.image.convnet.blocks", n.Blocks, "of networks of convolutions its classes ConvNextModel and ConvNextV2Model have those of patch, cx of 7 x 7 and four times the width, and down, with layer scale or norm of responses, a last norm and eps 1e-6")
	}
	class, config := "ConvNextModel", object{"model_type": "convnext", "num_channels": 3, "patch_size": patch, "num_stages": len(sizes), "hidden_sizes": sizes,
		"depths": depths, "hidden_act": act, "layer_norm_eps": number(cmp.Or(n.FinalEps, n.Eps)), "layer_scale_init_value": 1e-6, "image_size": n.Size}
	if n.ResponseNorm {
		class, config["model_type"] = "ConvNextV2Model", "convnextv2"
		delete(config, "layer_scale_init_value")
	}
	x.processor()
	return x.pretrained(class, weights.Naming{Family: "convnext", Layers: n.Blocks}, x.below(nil, "image/"), config)
}

// match reads the numbers of a layer that is written in the usual order.
func match(layer, format string, into ...any) bool {
	n, err := fmt.Sscanf(layer+" .", format+" .", into...)
	return err == nil && n == len(into)
}
