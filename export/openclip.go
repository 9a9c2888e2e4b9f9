package export

import (
	"fmt"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/weights"
)

// openCLIP writes a dual encoder for open_clip.
func (x *job) openCLIP() error {
	if err := x.twoSided("it has dual encoders alone", asHF, asTimm, asONNX); err != nil {
		return err
	}
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
	const other = "its CLIP has towers of style clip on both sides"
	p, ok := t.Encoder.(encoders.PreNormText)
	p = p.Full()
	im, tx := x.Config.Model.Image, x.Config.Model.Text
	switch {
	case kind(v) != "clip" || v.Registers > 0 || v.LayerScale || v.Activation == encoders.SwiGLU:
		return x.refuse("model.image.style", im.Style, other+", without registers, layer scale and gated MLPs", asHF,
			asONNX)
	case !ok || !p.Causal:
		return x.refuse("model.text.style", tx.Style, other, asHF, asONNX)
	case v.Pool != encoders.PoolClass:
		return x.refuse("model.image.pool", string(v.Pool), "its image tower reads the class token", asTimm, asONNX)
	case t.Pool != encoders.PoolEnd:
		return x.refuse("model.text.pool", string(t.Pool), "its text tower reads the end of a text", asONNX)
	case (v.Activation == "quick_gelu") != (p.Activation == "quick_gelu"):
		return x.refuse("model.text.activation", p.Activation, "both towers have quick_gelu, or none", asHF, asONNX)
	}
	if err := x.comparable(asONNX); err != nil {
		return err
	}
	if err := x.bothProjected(); err != nil {
		return err
	}
	end, err := x.endOfText()
	if err != nil {
		return err
	}
	vision := object{"image_size": v.Size, "patch_size": v.Patch, "width": v.Width, "layers": v.Depth,
		"head_width": v.Width / v.Heads, "mlp_ratio": ratio(v.MLP, v.Width)}
	words := object{
		"context_length": p.Positions, "vocab_size": p.Vocab, "width": p.Width, "heads": p.Heads, "layers": p.Layers,
		"mlp_ratio": ratio(p.MLP, p.Width), "pool_type": "eos", "eos_id": end, "hf_tokenizer_name": ".",
	}
	if v.Activation == "gelu_tanh" {
		vision["act_kwargs"] = object{"approximate": "tanh"}
	}
	if p.Activation == "gelu_tanh" {
		words["act_kwargs"] = object{"approximate": "tanh"}
	}
	if v.Eps != 1e-5 {
		vision["norm_kwargs"] = object{"eps": number(v.Eps)}
	}
	if p.Eps != 1e-5 {
		words["norm_kwargs"] = object{"eps": number(p.Eps)}
	}
	mean, std, crop, filter := x.prepared()
	if im.Resized() != v.Size {
		return x.refuse("model.image.crop", im.Crop,
			"it cuts nothing off a resized image but what is beside its square", asHF, asTimm, asONNX)
	}
	mode := "squash"
	if crop {
		mode = "shortest"
	}
	params := append(x.below(nil, "image/", "image_proj/", "text/", "text_proj/"), x.scale())
	list, err := weights.Renamed(params, weights.Naming{Family: "open_clip"})
	if err != nil {
		return err
	}
	switch clean := x.Config.Data.Clean; clean {
	case data.CleanWhitespace, data.CleanLower, data.CleanCanonicalize:
		words["tokenizer_kwargs"] = object{"clean": clean}
	case data.CleanNone:
		x.note("it cleans texts before its tokenizer reads them (ftfy, HTML entities, white space), and here they were read as they are (data.clean = %q)", data.CleanNone)
	}
	x.class = "CLIP"
	x.json("open_clip_config.json", object{
		"model_cfg":      object{"embed_dim": x.sides.Image.Head.Dimension(), "quick_gelu": v.Activation == "quick_gelu", "vision_cfg": vision, "text_cfg": words},
		"preprocess_cfg": object{"mean": mean, "std": std, "interpolation": filter, "resize_mode": mode, "size": []int{v.Size, v.Size}},
	})
	if n := x.Config.Data.Tokens; n < p.Positions {
		x.note("texts are cut to %d tokens (data.tokens), which its configuration has no place for: it reads %d (context_length)", n, p.Positions)
	}
	x.tensors("open_clip_model.safetensors", list, map[string]string{"format": "pt"})
	x.load = fmt.Sprintf("open_clip.create_model_from_pretrained(%q)", "local-dir:"+x.Out)
	x.leftOut(params)
	return x.tokenizerFiles()
}
