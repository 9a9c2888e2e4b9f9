package run

import (
	"cmp"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/model"
)

// Resolve fills in what a configuration leaves to its data: the widths of stored features.
// Widths that are not those of the files are config.Errors. What is made of a configuration
// is made of the resolved one, and a run folder holds it.
func Resolve(cfg config.Config) (config.Config, error) {
	if !cfg.Model.Stored() || cfg.Model.Fitted() || cfg.Data.Kind != "pairs" {
		return cfg, nil
	}
	p, err := source.Pairs(cfg)
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
