package config

import "github.com/geoalign/geoalign/encoders"

// Crops are small views of an image beside the two of data.views (multi-crop, Caron et al. 2020, section 3.2): SwAV predicts the codes
// of the two views from them too, and they have no codes themselves.
type Crops struct {
	Count    int     `toml:"count" max:"64"`                       // small views of an image, 6 in SwAV; 0: none
	Size     int     `toml:"size" read:"small crops" max:"8192"`   // side of a small view in pixels, 96 in SwAV beside 224
	ScaleMin float64 `toml:"scale_min" read:"small crops" max:"1"` // least area share of a small view; the two of data.views have shares from data.crop_scale_min on, 0.14 in SwAV
	ScaleMax float64 `toml:"scale_max" read:"small crops" max:"1"` // largest area share of a small view
}

func (r *Crops) defaults() { *r = Crops{Size: 96, ScaleMin: 0.05, ScaleMax: 0.14} }

func (r *Crops) check(k *checker, c *Config) {
	k.NotNegative("data.crops.count")
	k.Positive("data.crops.size", "data.crops.scale_min", "data.crops.scale_max")
	k.Require("data.crops.scale_max", r.ScaleMax >= r.ScaleMin, "must be at least data.crops.scale_min")
	if r.Count < 1 || !c.Model.traits().prototypes {
		return
	}
	k.Training("data.crops.count", c.Model.Image.Style == encoders.StyleResNet, `must be 0 with a vision transformer`, `its position table is that of one size: set model.image.style = "resnet", which takes images of any size`)
}

// SmallCrops returns how many small views of an image there are.
func (c Config) SmallCrops() int {
	if !c.Model.traits().prototypes {
		return 0
	}
	return c.Data.Crops.Count
}
