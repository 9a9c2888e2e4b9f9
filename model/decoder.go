package model

import (
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/space"
)

// newDecoder is the decoder of a configuration: its fusion layers with words, positions and a head of their own. It has no
// learned metric and is not tuned.
func newDecoder(cfg config.Config, o Options) encoders.Decoder {
	b, ok := textEncoder(cfg.Model, o, space.Space{Dim: cfg.Model.Head.Dim, Spheres: 1}).(encoders.BERT)
	objectives.Need(ok && b.FusionLayers > 0, "decoder", "has the structure of fusion layers: set model.text.fusion_layers > 0, with a model.text.style of bert or roberta")
	b.Layers, b.Classes, b.TokenBlocks, b.FinalNorm = 0, 0, 0, false
	b.Metric, b.FusionMetric = encoders.AttentionMetric{}, encoders.AttentionMetric{}
	return encoders.Decoder{BERT: b}
}

// newVQA is the loss of answers.
func newVQA(cfg config.Config, o Options) objectives.VQA {
	c := cfg.Objective.VQA
	return objectives.VQA{Weight: c.Weight, Decoder: newDecoder(cfg, o), Answers: c.Answers, Len: c.Tokens, Rows: c.Rows}
}

// newCaptioning is the loss of captions that the decoder writes.
func newCaptioning(cfg config.Config, o Options) objectives.Loss {
	c := cfg.Objective.Captioning
	l := objectives.CaptioningByDecoder{Weight: c.Weight, Decoder: newDecoder(cfg, o), Len: cfg.Data.Tokens, Tokens: c.Tokens, Last: o.EndID}
	if o.End > 0 {
		l.Last = -1
	}
	return l
}
