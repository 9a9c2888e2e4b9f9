package export

import (
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/weights"
)

// hfImage writes the image tower as a class of its own, with its projection where the class has one.
func (x *job) hfImage() error {
	if r, ok := x.resNet(); ok {
		return x.hfResNet(r)
	}
	if t, ok := x.sides.Image.Tower.(encoders.ImageTower); ok && t.Style == encoders.StyleBlock {
		return x.hfBlock(t.ViT.Full())
	}
	if t, ok := x.sides.Image.Tower.(encoders.ConvNetTower); ok {
		return x.hfConvNeXt(t.ConvNet)
	}
	v, err := x.vit()
	if err != nil {
		return err
	}
	class, naming, config, err := x.hfVision(v)
	if err != nil {
		return err
	}
	params := x.below(nil, "image/")
	if class == "CLIPVisionModel" && x.plainHead(x.sides.Image.Head) {
		if err := x.comparesByMetric(); err != nil {
			return err
		}
		class = "CLIPVisionModelWithProjection"
		config["projection_dim"] = x.sides.Image.Head.Dimension()
		params = x.below(nil, "image/", "image_proj/")
	}
	x.processor()
	return x.pretrained(class, naming, params, config)
}

// plainHead says whether a head is a linear layer without bias onto one sphere.
func (x *job) plainHead(h encoders.Head) bool {
	p := projection(h)
	return p != nil && p.NoBias && p.Space.One()
}

// hfVision is the class, the names and the configuration of a vision transformer.
func (x *job) hfVision(v encoders.ViT) (class string, naming weights.Naming, config object, err error) {
	im := x.Config.Model.Image
	config = object{
		"hidden_size": v.Width, "num_hidden_layers": v.Depth, "num_attention_heads": v.Heads, "image_size": v.Size,
		"patch_size": v.Patch, "num_channels": 3, "hidden_act": activationHF[v.Activation],
		"layer_norm_eps": number(v.Eps), "intermediate_size": v.MLP,
	}
	fail := func(err error) (string, weights.Naming, object, error) { return "", naming, nil, err }
	k := kind(v)
	if v.Activation == encoders.SwiGLU && k != "dinov2" {
		return fail(x.refuse("model.image.activation", v.Activation, "of its classes only DINOv2 has a gated MLP",
			asONNX, asTimm))
	}
	if v.Registers > 0 && (k == "clip" || k == "siglip" || k == "vit" && v.Registers > 1) {
		return fail(x.refuse("model.image.registers", v.Registers,
			"its classes of "+k+" have none, but for the one of DeiT", asONNX, asTimm))
	}
	if v.LayerScale != (k == "dinov2") || k != "clip" && v.NoPatchBias {
		return fail(x.refuse("model.image.style", im.Style, "none of its classes has these layers", asONNX))
	}
	byMean := v.Pool == encoders.PoolMean
	if byMean && (k == "vit" || k == "clip") || v.Pool == encoders.PoolAttention && k != "siglip" {
		return fail(x.refuse("model.image.pool", string(v.Pool), "its classes of "+k+" read the class token", asONNX,
			asTimm))
	}
	switch k {
	case "clip":
		config["model_type"] = "clip_vision_model"
		return "CLIPVisionModel", weights.Naming{Family: "clip"}, config, nil
	case "siglip":
		config["model_type"], config["vision_use_head"] = "siglip_vision_model", !byMean
		return "SiglipVisionModel", weights.Naming{Family: "siglip"}, config, nil
	case "dinov2":
		if byMean {
			x.note("the mean of the patches stands for an image: it is that of last_hidden_state behind the class token and the registers")
		}
		return x.hfDINOv2(v, config)
	case "vit":
		if v.Registers == 1 {
			config["model_type"] = "deit"
			return "DeiTModel", weights.Naming{Family: "vit", Prefer: []string{"deit.", "distillation_token"},
				Registers: 1}, config, nil
		}
		config["model_type"] = "vit"
	}
	return "ViTModel", weights.Naming{Family: "vit"}, config, nil
}

// hfDINOv2 is hfVision for DINOv2, whose MLP is as wide as a whole number says.
func (x *job) hfDINOv2(v encoders.ViT, config object) (class string, naming weights.Naming, _ object, err error) {
	gated := v.Activation == encoders.SwiGLU
	hidden := func(ratio int) int {
		n := v.Width * ratio
		if gated {
			n = (2*n/3 + 7) / 8 * 8
		}
		return n
	}
	ratio := 1
	for hidden(ratio) < v.MLP {
		ratio++
	}
	if hidden(ratio) != v.MLP {
		return "", naming, nil, x.refuse("model.image.mlp", v.MLP,
			"its DINOv2 has an MLP of a whole multiple of the width, gated of two thirds of one", asONNX, asTimm)
	}
	delete(config, "intermediate_size")
	config["mlp_ratio"], config["use_swiglu_ffn"], config["model_type"], class = ratio, gated, "dinov2", "Dinov2Model"
	naming.Family = "dinov2"
	if gated {
		config["hidden_act"], naming.Prefer = "gelu", []string{"mlp.weights_"}
	}
	if v.Registers > 0 {
		config["model_type"], config["num_register_tokens"], class = "dinov2_with_registers", v.Registers,
			"Dinov2WithRegistersModel"
		naming.Prefer = append(naming.Prefer, "dinov2_with_registers.")
	}
	return class, naming, config, nil
}

// hfBlock writes a vision transformer of style block, of which one class of DINOv3 has the options.
func (x *job) hfBlock(v encoders.ViT) error {
	b := v.Block
	has := encoders.ImageBlock{ClassToken: true, PatchBias: true, FinalNorm: true, LayerScale: true, Gated: b.Gated,
		Rotary: encoders.RotaryCentred, Theta: b.Theta, PoolHeads: b.PoolHeads, PoolMLP: b.PoolMLP}
	act, ok := map[string]string{"silu": "silu", "relu": "relu"}[v.Activation]
	if !ok {
		act, ok = activationHF[v.Activation]
	}
	if b != has || !ok || v.Pool != encoders.PoolClass || v.Classes > 1 {
		return x.refuse("model.image.style", x.Config.Model.Image.Style,
			"of layers of model.image.block its DINOv3ViTModel has those of DINOv3 with the class token for an image alone")
	}
	naming := weights.Naming{Family: "dinov3", Prefer: []string{""}} // nothing stands before its names
	if !b.Gated {
		naming.Prefer = append(naming.Prefer, "layer.#.mlp.up_proj")
	}
	x.processor()
	return x.pretrained("DINOv3ViTModel", naming, x.below(nil, "image/"), object{
		"model_type": "dinov3_vit", "hidden_size": v.Width, "num_hidden_layers": v.Depth, "num_attention_heads": v.Heads,
		"intermediate_size": v.MLP, "image_size": v.Size, "patch_size": v.Patch, "num_channels": 3, "hidden_act": act,
		"layer_norm_eps": number(v.Eps), "rope_theta": fraction(b.Theta),
		"num_register_tokens": v.Registers, "use_gated_mlp": b.Gated, "query_bias": true, "key_bias": true, "value_bias": true,
		"proj_bias": true, "mlp_bias": true,
	})
}
