package model

import (
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/objectives"
)

// newLosses is the list of the losses of a configuration, in the order in which they are built and added up, each a copy of its
// section. Those of the options come last.
func newLosses(cfg config.Config, o Options) []objectives.Loss {
	all := cfg.Losses()
	for i, s := range all {
		all[i] = taskLoss(cfg, o, s)
	}
	for _, l := range o.Losses {
		all = append(all, l)
	}
	return objectives.Group(all)
}

// taskLoss is the loss of a section.
func taskLoss(cfg config.Config, o Options, s any) any {
	switch c := s.(type) {
	case *config.PairLoss:
		return newSentencePairs(cfg)
	case *config.ClassLoss:
		return newClasses(cfg, o)
	case *config.VQA:
		return newVQA(cfg, o)
	case *config.Captioning:
		if c.Decoder == config.CaptionTransformer {
			return newCaptioning(cfg, o)
		}
		return objectives.Captioning{Weight: c.Weight, Len: cfg.Data.Tokens, Tokens: c.Tokens,
			Decoder: encoders.CaptionDecoder{Vocab: o.Vocab, Width: c.Width, Embedding: c.Embedding, Dropout: c.Dropout}}
	case *config.EntailmentLoss:
		return newEntailment(cfg)
	case *config.NLVR:
		return newNLVR(cfg)
	case *config.Assignment:
		return &objectives.Assignment{Weight: c.Weight}
	}
	return s
}
