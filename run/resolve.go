package run

import (
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/model"
)

// Resolve fills in what a configuration leaves to its data: the widths of stored features.
// What is made of a configuration is made of the resolved one, and a run folder holds it.
func Resolve(cfg config.Config) (config.Config, error) {
	h := cfg.Model.Heads
	if !cfg.Model.Stored() || cfg.Data.Kind != "pairs" || h.InImage > 0 && h.InText > 0 {
		return cfg, nil
	}
	p, err := source.Pairs(cfg)
	if err != nil {
		return cfg, err
	}
	model.FitHeads(&cfg, p.Stream().Columns())
	return cfg, p.Close()
}
