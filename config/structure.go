package config

import (
	"cmp"

	"github.com/geoalign/geoalign/encoders"
)

// Explicit returns c with the values that empty keys of the towers stand for in their place: two configurations whose
// towers are the same differ in none of these keys then.
func (c Config) Explicit() Config {
	c = c.explicit()
	im, tx := &c.Model.Image, &c.Model.Text
	if c.Model.System == "albef" && im.Style == "" && im.Pooling() != "mean" { // whose norm has another place
		im.Style = encoders.StyleViT
	}
	if c.Model.System == "albef" && tx.Style == "" {
		tx.Style = encoders.StyleBERT
	}
	im.Pool, tx.Pool = im.Pooling(), tx.Pooling()
	im.Activation, tx.Activation = encoders.StyleActivation(im.Style, im.Activation),
		encoders.StyleActivation(tx.Style, tx.Activation)
	im.Eps, tx.Eps = im.LayerNormEps(c.Model.System), tx.LayerNormEps(c.Model.System)
	im.Crop = cmp.Or(im.Crop, 1)
	im.Resize, im.Interpolation = cmp.Or(im.Resize, "squash"), cmp.Or(im.Interpolation, "bicubic")
	if len(im.Mean) == 0 {
		im.Mean, im.Std = []float64{0.48145466, 0.4578275, 0.40821073}, []float64{0.26862954, 0.26130258, 0.27577711}
	}
	return c
}
