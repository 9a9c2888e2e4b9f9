package run

import (
	"cmp"
	"fmt"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/model"
)

// Resolve fills in what a configuration leaves to its data: the widths of stored features, and how many regions
// there are with how many features each.
// Widths that are not those of the files are config.Errors. What is made of a configuration
// is made of the resolved one, and a run folder holds it.
func Resolve(cfg config.Config) (config.Config, error) {
	if cfg.Has(section.Regions) {
		return resolveRegions(cfg)
	}
	if !cfg.Has(section.Stored) || cfg.Has(section.Fitted) || cfg.Data.Kind != "pairs" {
		return cfg, nil
	}
	p, err := source.OpenPairs(cfg.Source())
	if h := cfg.Model.Heads; err != nil && h.InImage > 0 && h.InText > 0 {
		return cfg, nil // nothing is open; who reads the files says what is wrong with them
	}
	if err != nil {
		return cfg, cmp.Or(checkTraining(cfg), err)
	}
	model.FitHeads(&cfg, p.Columns())
	if err := widths(cfg.Model.Heads, p); err != nil {
		p.Close() // what failed first says why
		return cfg, err
	}
	return cfg, p.Close()
}

// resolveRegions fills in the sizes of regions.
func resolveRegions(cfg config.Config) (config.Config, error) {
	own := &cfg.Model.Image.Regions
	s, err := source.SizeOfRegions(cfg.Source())
	if own.In > 0 && cfg.Data.Regions.Most > 0 && (err != nil || s.Width == 0) {
		return cfg, nil // who reads the files says what is wrong with them
	}
	switch {
	case err != nil:
		return cfg, cmp.Or(checkTraining(cfg), err)
	case s.Width == 0:
		return cfg, cmp.Or(checkTraining(cfg), source.CheckInputs(source.Inputs(cfg.Source(), "train")),
			error(config.Errors{{Path: "model.image.regions.in", Value: own.In,
				Msg:  "must be > 0 where no file of data.regions.features is there",
				Hint: "or set data.root and data.regions.features to the files"}}))
	case own.In == 0:
		own.In = s.Width
	case own.In != s.Width:
		return cfg, config.Errors{{Path: "model.image.regions.in", Value: own.In,
			Msg:  fmt.Sprintf("must be %d, the features of a region of %s", s.Width, s.Of),
			Hint: "read regions with as many features, or leave this key out to train on these"}}
	}
	cfg.Data.Regions.Most = s.Most
	return cfg, nil
}

// widths compares the widths of the heads with those of the files.
func widths(h encoders.FeatureHeads, p *features.Pairs) error {
	var errs config.Errors
	for _, side := range []struct {
		key  string
		want int
		m    *features.Matrix
	}{{"image", h.InImage, p.Images()}, {"text", h.InText, p.Texts()}} {
		if have := side.m.Width(); side.want != have {
			errs = append(errs, &config.Error{Path: "model.heads.in_" + side.key, Value: side.want,
				Msg:  fmt.Sprintf("must be %d, the width of %s", have, side.m.Path()),
				Hint: fmt.Sprintf("name features of the other width in data.pairs.%s, or leave this key out to train on these", side.key)})
		}
	}
	return errs.OrNil()
}
