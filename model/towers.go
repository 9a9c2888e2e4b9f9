package model

import (
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/space"
)

// pairOfTowers is a design of a tower for images and one for texts, each with the head of
// model.head.style. The linear one is given; for texts of SigLIP it has a bias.
func pairOfTowers(cfg config.Config, o Options, linear encoders.Projection) design {
	m := cfg.Model
	texts, images := textTower(cfg, o, linear.Space), imageTower(cfg, linear.Space)
	of := func(name string, tower, own encoders.Tower, linear encoders.Projection, frozen bool) side {
		over := tower
		if own != nil {
			over = own
		}
		_, width := over.Shape()
		return side{name: name, tower: tower, proj: name + "_proj", head: m.Head.Head(name, width, linear),
			frozen: frozen}
	}
	d := design{image: of("image", images, o.Image, linear, m.Image.Freeze), teacher: cfg.Momentum.Enabled,
		keys: teacherKeys(cfg)}
	linear.NoBias = linear.NoBias && m.Text.Style != encoders.StyleSigLIP
	d.text = of("text", texts, o.Text, linear, m.Text.Freeze)
	return d
}

// imageTower is the tower of images of a model.
func imageTower(cfg config.Config, space space.Space) encoders.Tower {
	m := cfg.Model
	return m.Image.Tower(encoders.TowerArgs{System: m.System, Space: space, TokenBlocks: m.Head.TokenBlocks,
		Metric: m.AttentionMetric, Regions: cfg.Data.Regions.Most})
}

// textTower is the tower of texts of a model.
func textTower(cfg config.Config, o Options, space space.Space) encoders.TextTower {
	t := cfg.Model.Text.Tower(textArgs(cfg.Model, o, space))
	t.Tokens = cfg.Data.Tokens
	return t
}

// textArgs are what the text encoder of a model is built into.
func textArgs(m config.Model, o Options, space space.Space) encoders.TowerArgs {
	return encoders.TowerArgs{System: m.System, Space: space, TokenBlocks: m.Head.TokenBlocks,
		Metric: m.AttentionMetric, Vocab: o.Vocab, Pad: o.Pad, Begin: o.Begin, End: o.End}
}

// textEncoder is the text encoder of a model, with its fusion layers.
func textEncoder(m config.Model, o Options, space space.Space) encoders.TextEncoder {
	return m.Text.Encoder(textArgs(m, o, space))
}
