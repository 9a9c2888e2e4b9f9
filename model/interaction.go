package model

import (
	"cmp"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/interact"
)

// newInteraction is the table of the interactions, nil for features.
func newInteraction(cfg config.Config) encoders.Interaction {
	c := cfg.Model.Interaction
	var metric encoders.Metric
	if cfg.Has(section.Metric) {
		metric = metricForm(cfg)
	}
	maxSim := func(reduce interact.Reduce) encoders.Interaction {
		way := c.Way()
		return interact.MaxSim{
			Reduce: reduce, ImageToText: way != config.DirectionTextToImage, TextToImage: way != config.DirectionImageToText,
			Hidden: cmp.Or(c.Hidden, cfg.Model.Head.Dim), Metric: metric,
		}
	}
	sites := func() (attention, similarity encoders.Metric) {
		if c.Metric != config.MetricAttention {
			similarity = metric
		}
		if c.Metric != config.MetricSimilarity {
			attention = metric
		}
		return attention, similarity
	}
	cross := func(share float32) interact.Cross {
		x := interact.Cross{Focal: c.Kind == config.InteractionBFAN, Share: share}
		x.Attention, x.Similarity = sites()
		for direction, to := range map[string]**interact.Attention{config.DirectionImageToText: &x.ImageToText, config.DirectionTextToImage: &x.TextToImage} {
			if way := c.Way(); way == config.DirectionBoth || way == direction {
				scale, pool := c.Attention(direction)
				*to = &interact.Attention{Scale: float32(scale), Pool: float32(pool)}
			}
		}
		return x
	}
	vectors := func(steps int) encoders.Interaction {
		scale, _ := c.Attention(c.Way())
		x := interact.Vectors{Dim: c.SimDim, Scale: float32(scale), Steps: steps, Dropout: c.Dropout}
		x.Attention, x.Similarity = sites()
		return x
	}
	switch c.Kind {
	case config.InteractionMaxAve:
		return maxSim(interact.Mean)
	case config.InteractionMaxSum:
		return maxSim(interact.Sum)
	case config.InteractionMaxSoft:
		return maxSim(interact.Soft)
	case config.InteractionSCAN:
		return cross(0.5)
	case config.InteractionBFAN:
		return cross(1)
	case config.InteractionSGR:
		return vectors(c.Steps)
	case config.InteractionSAF:
		return vectors(0)
	case config.InteractionNAAF:
		x := cross(1)
		return interact.Negative{Scale: x.TextToImage.Scale, Attention: x.Attention, Similarity: x.Similarity}
	case config.InteractionIMRAM:
		x := cross(1)
		return interact.Recurrent{ImageToText: x.ImageToText, TextToImage: x.TextToImage, Share: x.Share, Steps: c.Steps, Unit: c.UnitQueries, Attention: x.Attention, Similarity: x.Similarity}
	}
	return nil
}
