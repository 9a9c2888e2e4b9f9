package model

import (
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/space"
)

// albef is the system of Li et al. 2021: a vision transformer, a text encoder and a fusion
// encoder, trained by image-text contrast against a momentum teacher and a queue,
// image-text matching with hard negatives, and masked language modelling.
func albef(cfg config.Config, o Options, space space.Space) design {
	vit, bert := towers(cfg, o, space)
	head := encoders.Projection{Space: space}
	bert.FusionLayers = cfg.Model.Text.FusionLayers
	return design{
		image:   side{name: "image", tower: encoders.ImageTower{ViT: vit}, proj: "image_proj", head: head},
		text:    side{name: "text", tower: encoders.TextTower{BERT: bert, Tokens: cfg.Data.Tokens}, proj: "text_proj", head: head},
		teacher: cfg.Momentum.Enabled,
		fusion:  &bert,
		keys:    teacherKeys(cfg),
	}
}

// towers are the encoders of images and texts of a configuration, without fusion layers,
// with the class tokens that the space of their features asks for.
func towers(cfg config.Config, o Options, space space.Space) (encoders.ViT, encoders.BERT) {
	im, tx, h := cfg.Model.Image, cfg.Model.Text, cfg.Model.Head
	vit := encoders.ViT{Size: im.Size, Patch: im.Patch, Depth: im.Depth, Width: im.Width, Heads: im.Heads, MLP: im.MLP,
		Classes: space.Classes(), TokenBlocks: h.TokenBlocks}
	bert := encoders.BERT{Vocab: o.Vocab, Positions: tx.Positions, Layers: tx.Layers, Width: tx.Width, Heads: tx.Heads, MLP: tx.MLP,
		Pad: o.Pad, Dropout: tx.Dropout, Classes: space.Classes(), TokenBlocks: h.TokenBlocks}
	return vit, bert
}
