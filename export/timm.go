package export

import (
	"cmp"
	"fmt"
	"maps"
	"math"

	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/weights"
)

// timm writes the image tower for timm: an architecture of it with the arguments that make it this tower.
func (x *job) timm() error {
	if x.Side == "text" {
		return x.refuse("--side", "text", "it has image towers alone", asHF, asONNX)
	}
	if r, ok := x.resNet(); ok {
		return x.timmResNet(r)
	}
	v, err := x.vit()
	if err != nil {
		return err
	}
	x.Side, x.class = "image", "VisionTransformer"
	args := object{
		"img_size": []int{v.Size, v.Size}, "patch_size": v.Patch, "embed_dim": v.Width, "depth": v.Depth,
		"num_heads": v.Heads, "mlp_ratio": ratio(v.MLP, v.Width), "num_classes": 0, "act_layer": v.Activation,
		"class_token": !v.NoClass, "reg_tokens": v.Registers, "no_embed_class": false,
	}
	naming := weights.Naming{Family: "timm", Registers: v.Registers}
	architecture, eps := "vit_base_patch16_224", 1e-6
	switch {
	case v.PreNorm:
		eps = 1e-5
		architecture = "vit_base_patch16_clip_224"
		if v.Activation == "quick_gelu" {
			architecture = "vit_base_patch16_clip_quickgelu_224"
		}
	case v.NoPatchBias:
		return x.refuse("model.image.style", x.Config.Model.Image.Style,
			"its patches have a bias without a norm before the blocks", asONNX)
	}
	switch difference := math.Abs(v.Eps - eps); {
	case difference > epsTolerance:
		return x.refuse("model.image.eps", v.Eps, fmt.Sprintf("its layer norms have the epsilon %v", eps), asHF, asONNX)
	case difference > 1e-3*eps:
		x.note("layer norms have the epsilon %v there, and %v here", eps, v.Eps)
	}
	if v.LayerScale {
		args["init_values"] = 1e-5
	}
	if v.Activation == encoders.SwiGLU {
		if v.PreNorm {
			return x.refuse("model.image.activation", v.Activation, "its towers of CLIP have no gated MLP", asONNX)
		}
		architecture = "vit_giant_patch14_dinov2"
		args["mlp_ratio"], args["init_values"] = ratio(2*v.MLP, v.Width), nil
		if v.LayerScale {
			args["init_values"] = 1e-5
		}
		delete(args, "act_layer")
	}
	pool := "token"
	switch v.Pool {
	case encoders.PoolAttention:
		pool = "map"
		if v.Activation == encoders.SwiGLU {
			return x.refuse("model.image.activation", v.Activation, "its pooling head has no gated MLP", asONNX)
		}
	case encoders.PoolMean:
		pool, args["fc_norm"] = "avg", !v.NormFirst
		if !v.NormFirst {
			naming.Prefer = []string{"fc_norm."}
		}
	}
	args["global_pool"] = pool
	params := x.below(nil, "image/")
	list, err := weights.Renamed(params, naming)
	if err != nil {
		return err
	}
	x.timmConfig(object{"architecture": architecture, "num_features": v.Width, "global_pool": pool, "model_args": args},
		object{"input_size": []int{3, v.Size, v.Size}, "fixed_input_size": true, "first_conv": "patch_embed.proj",
			"classifier": "head"})
	x.tensors("model.safetensors", list, map[string]string{"format": "pt"})
	x.load = fmt.Sprintf("timm.create_model(%q, pretrained=True)", "local-dir:"+x.Out)
	x.leftOut(params)
	return nil
}

// timmConfig writes config.json: the keys of an architecture, those of its pretrained_cfg, and what all have.
func (x *job) timmConfig(model, pretrained object) {
	mean, std, crop, filter := x.prepared()
	mode := "squash"
	if crop {
		mode = "center"
	}
	maps.Copy(pretrained, object{
		"interpolation": filter, "crop_pct": cropped(x.Config.Model.Image), "crop_mode": mode, "mean": mean, "std": std,
		"num_classes": 0, "pool_size": nil,
	})
	model["num_classes"], model["pretrained_cfg"] = 0, pretrained
	x.json("config.json", model)
}

// cropped is the part of a resized image that is cut out. timm resizes to floor(size / part), where the quotient of two
// numbers of floating point may be a little less than the side that images are resized to here: 192 / (192 / 225) is
// 224.99999999999997.
func cropped(im encoders.ImageOptions) float64 {
	part := cmp.Or(im.Crop, 1)
	for int(float64(im.Size)/part) < im.Resized() {
		part = math.Nextafter(part, 0)
	}
	return part
}

// epsTolerance is the most that the epsilon of layer norms may differ: it changes outputs by about 1e-4 where the
// smallest variance of a token is 0.005, as that of the first blocks of a vision transformer can be.
const epsTolerance = 1.5e-6

// ratio is the width of a layer as a multiple of another, of which programs take the whole part of the product.
func ratio(hidden, width int) float64 {
	if hidden%width == 0 {
		return float64(hidden / width)
	}
	return (float64(hidden) + 0.5) / float64(width)
}
