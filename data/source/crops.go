package source

import (
	"github.com/geoalign/geoalign/config/section"
)

// Crops are small views of an image beside the two of data.views (multi-crop, Caron et al. 2020, section 3.2): SwAV
// predicts the codes of the two views from them too, and they have no codes themselves.
type Crops struct {
	// small views of an image, 6 in SwAV; 0: none
	Count int `toml:"count" max:"64"`
	// side of a small view in pixels, 96 in SwAV beside 224
	Size int `toml:"size" when:"count>0" max:"8192"`
	// least area share of a small view; the two of data.views have shares from data.crop_scale_min on, 0.14 in SwAV
	ScaleMin float64 `toml:"scale_min" when:"count>0" max:"1"`
	// largest area share of a small view
	ScaleMax float64 `toml:"scale_max" when:"count>0" max:"1"`
}

// Defaults implements section.Defaulter.
func (r *Crops) Defaults() { *r = Crops{Size: 96, ScaleMin: 0.05, ScaleMax: 0.14} }

// Check implements section.Checked.
func (r *Crops) Check(k *section.Checker) {
	k.NotNegative("data.crops.count")
	k.Positive("data.crops.size", "data.crops.scale_min", "data.crops.scale_max")
	k.Require("data.crops.scale_max", r.ScaleMax >= r.ScaleMin, "must be at least data.crops.scale_min")
	if r.Count < 1 || !k.Has(section.Prototypes) {
		return
	}
	k.Training("data.crops.count", k.Value("model.image.style") == "resnet", `must be 0 with a vision transformer`,
		`its position table is that of one size: set model.image.style = "resnet", which takes images of any size`)
}
