package export

// Means and deviations where model.image.mean and std are empty: CLIP's.
var (
	clipMean = []float64{0.48145466, 0.4578275, 0.40821073}
	clipStd  = []float64{0.26862954, 0.26130258, 0.27577711}
)

// prepared is how the model's images are made inputs.
func (x *job) prepared() (mean, std []float64, crop bool, filter string) {
	im := x.Config.Model.Image
	mean, std, filter = im.Mean, im.Std, im.Interpolation
	if len(mean) == 0 {
		mean, std = clipMean, clipStd
	}
	if filter == "" {
		filter = "bicubic"
	}
	return mean, std, im.Resize == "crop", filter
}

// processor adds the preprocessor_config.json of Hugging Face. A processor of CLIP cuts what it has scaled, that of
// DeiT what it has squashed, and that of ViT nothing.
func (x *job) processor() {
	mean, std, crop, filter := x.prepared()
	side := x.Config.Model.Image.Size
	square := object{"height": side, "width": side}
	p := object{
		"image_processor_type": "ViTImageProcessor", "do_resize": true, "size": square,
		"resample": map[string]int{"bilinear": 2, "bicubic": 3}[filter], "do_rescale": true, "rescale_factor": 1. / 255,
		"do_normalize": true, "image_mean": mean, "image_std": std, "do_convert_rgb": true,
	}
	resized := x.Config.Model.Image.Resized()
	switch {
	case crop:
		p["image_processor_type"], p["size"], p["do_center_crop"], p["crop_size"] = "CLIPImageProcessor",
			object{"shortest_edge": resized}, true, square
	case resized != side:
		p["image_processor_type"], p["size"], p["do_center_crop"], p["crop_size"] = "DeiTImageProcessor",
			object{"height": resized, "width": resized}, true, square
	}
	x.json("preprocessor_config.json", p)
}
