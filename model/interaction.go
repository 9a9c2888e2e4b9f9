package model

import (
	"cmp"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/interact"
)

// newInteraction is the table of the interactions, nil for features.
func newInteraction(cfg config.Config) encoders.Interaction {
	c := cfg.Model.Interaction
	var metric encoders.Metric
	if cfg.UsesMetric() {
		metric = metricForm(cfg)
	}
	maxSim := func(reduce interact.Reduce) encoders.Interaction {
		way := c.Way()
		return interact.MaxSim{
			Reduce: reduce, ImageToText: way != config.DirectionTextToImage, TextToImage: way != config.DirectionImageToText,
			Hidden: cmp.Or(c.Hidden, cfg.Model.Head.Dim), Metric: metric,
		}
	}
	switch c.Kind {
	case config.InteractionMaxAve:
		return maxSim(interact.Mean)
	case config.InteractionMaxSum:
		return maxSim(interact.Sum)
	case config.InteractionMaxSoft:
		return maxSim(interact.Soft)
	}
	return nil
}
