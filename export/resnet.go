package export

import (
	"fmt"

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
