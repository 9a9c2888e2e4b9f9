package export

import (
	"math"

	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/weights"
)

// hfBoth writes a dual encoder as CLIPModel or SiglipModel.
func (x *job) hfBoth() error {
	v, err := x.vit()
	if err != nil {
		return err
	}
	t, err := x.words()
	if err != nil {
		return err
	}
	if err := x.fused(); err != nil {
		return err
	}
	p, ok := t.Encoder.(encoders.PreNormText)
	im, tx := x.Config.Model.Image, x.Config.Model.Text
	switch k := kind(v); {
	case ok && p.Causal && k == "clip", ok && !p.Causal && k == "siglip":
	case ok && p.Causal:
		return x.refuse("model.image.style", im.Style, "CLIPModel has towers of style clip on both sides", oneSide,
			asONNX)
	case ok:
		return x.refuse("model.image.style", im.Style, "SiglipModel has towers of style siglip on both sides", oneSide,
			asONNX)
	default:
		return x.refuse("model.text.style", tx.Style,
			"its classes of dual encoders, CLIPModel and SiglipModel, have text towers of style clip or siglip",
			oneSide, asONNX)
	}
	if err := x.comparable(asONNX); err != nil {
		return err
	}
	_, _, vision, err := x.hfVision(v)
	if err != nil {
		return err
	}
	_, words, err := x.hfWords(t, p.Full())
	if err != nil {
		return err
	}
	x.processor()
	if err := x.tokenizerFiles(); err != nil {
		return err
	}
	params := x.below(nil, "image/", "image_proj/", "text/", "text_proj/")
	config := object{"vision_config": vision, "text_config": words}
	if p.Causal {
		if err := x.bothProjected(); err != nil {
			return err
		}
		config["model_type"], config["projection_dim"] = "clip", x.sides.Text.Head.Dimension()
		return x.pretrained("CLIPModel", weights.Naming{Family: "clip"}, append(params, x.scale()), config)
	}
	if x.sides.Image.Head != nil && projection(x.sides.Image.Head) != nil {
		return x.refuse("model.head.identity", x.Config.Model.Head.Identity, "SiglipModel does not project images",
			oneSide, asONNX)
	}
	config["model_type"] = "siglip"
	if params, err = x.siglipHead(params); err != nil {
		return err
	}
	return x.pretrained("SiglipModel", weights.Naming{Family: "siglip"}, append(params, x.sigmoid()...), config)
}

// bothProjected refuses heads that CLIP has not.
func (x *job) bothProjected() error {
	for _, h := range []encoders.Head{x.sides.Image.Head, x.sides.Text.Head} {
		switch p := projection(h); {
		case p == nil:
			return x.refuse("model.head.identity", x.Config.Model.Head.Identity, "CLIP projects both sides", oneSide,
				asONNX)
		case !p.NoBias:
			return x.refuse("model.system", x.Config.Model.System, "its heads have a bias, and those of CLIP have none",
				oneSide, asONNX)
		}
	}
	return nil
}

// scale is the parameter of the scale of scores: that of the contrast, else that of SigLIP's loss, else 1.
func (x *job) scale() weights.Param {
	for _, name := range []string{"logit_scale", "temperature"} {
		if p, ok := x.params[name]; ok {
			return p
		}
	}
	if p, ok := x.params["siglip/log_scale"]; ok {
		return weights.Param{Name: "logit_scale", Shape: nil, Read: p.Read}
	}
	return constant("logit_scale", 0)
}

// temperature is 1/scale as a parameter.
func (x *job) temperature() weights.Param {
	p := x.scale()
	if p.Name == "temperature" {
		return p
	}
	return mapped(p, "temperature", func(log float64) float64 { return math.Exp(-log) })
}

// mapped is a parameter of one number with another.
func mapped(p weights.Param, name string, f func(float64) float64) weights.Param {
	return weights.Param{Name: name, Read: func(dst []float32) error {
		err := p.Read(dst)
		dst[0] = float32(f(float64(dst[0])))
		return err
	}}
}

// sigmoid are the scale and the bias of SigLIP: those of its loss, else the scale of the contrast and 0.
func (x *job) sigmoid() []weights.Param {
	if a, ok := x.params["siglip/log_scale"]; ok {
		return []weights.Param{a, x.params["siglip/bias"]}
	}
	log := mapped(x.temperature(), "siglip/log_scale", func(t float64) float64 { return -math.Log(t) })
	return []weights.Param{log, constant("siglip/bias", 0)}
}
