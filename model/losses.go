package model

import (
	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/examples"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/space"
	"github.com/geoalign/geoalign/tasks/captioning"
	imageclasses "github.com/geoalign/geoalign/tasks/classes"
	"github.com/geoalign/geoalign/tasks/multimodal"
	"github.com/geoalign/geoalign/tasks/sentencepairs"
	"github.com/geoalign/geoalign/tasks/vqa"
)

// newLosses is the list of the losses of a configuration, in the order in which they are built and added up, each a
// copy of its section. Those of the options come last.
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
	case *sentencepairs.Loss:
		return newSentencePairs(cfg)
	case *imageclasses.Loss:
		return newClasses(cfg, o)
	case *vqa.Loss:
		return newVQA(cfg, o)
	case *captioning.Loss:
		if c.Decoder == captioning.Transformer {
			return newCaptioning(cfg, o)
		}
		return objectives.Captioning{Weight: c.Weight, Len: cfg.Data.Tokens, Tokens: c.Tokens,
			Decoder: encoders.CaptionDecoder{Vocab: o.Vocab, Width: c.Width, Embedding: c.Embedding, Dropout: c.Dropout}}
	case *multimodal.EntailmentLoss, *multimodal.NLVRLoss, *multimodal.Loss:
		return *newTextClasses(cfg, o)
	case *multimodal.AssignmentLoss:
		return &objectives.Assignment{Weight: c.Weight}
	}
	return s
}

// newClasses is the loss over classes of images.
func newClasses(cfg config.Config, o Options) objectives.Classes {
	c, size := cfg.Objective.Classes, cfg.Model.Image.Size
	return objectives.Classes{
		Weight: c.Weight, Smoothing: c.Smoothing, Mix: objectives.Mix{Mixup: c.Mixup, Cutmix: c.Cutmix},
		Head:   encoders.ClassHead{Classes: len(o.Classes), Norm: c.Norm},
		Images: batch.Column{Name: batch.Images, Shape: []int{3, size, size}},
	}
}

// newSentencePairs is the loss over pairs of sentences.
func newSentencePairs(cfg config.Config) objectives.SentencePairs {
	c, task := cfg.Objective.SentencePairs, cfg.Data.SentencePairs.Of()
	l := objectives.SentencePairs{Weight: c.Weight, Joint: cfg.JointPairs(),
		Head: encoders.PairHead{Classes: len(task.Classes), Dropout: c.Dropout}}
	l.Low, l.High = task.Low, task.High
	return l
}

// newTextClasses is the loss over classes of texts with pictures, nil for a model without one.
func newTextClasses(cfg config.Config, o Options) *objectives.TextClasses {
	x := cfg.Objective
	l := objectives.TextClasses{Pictures: cfg.Pictures(), Size: cfg.Model.Image.Size}
	switch {
	case x.Entailment.On():
		l.Name, l.Weight, l.Head.Classes = multimodal.EntailmentName, x.Entailment.Weight,
			len(examples.EntailmentClasses)
	case x.NLVR.On():
		l.Name, l.Weight, l.Head.Classes = multimodal.NLVRName, x.NLVR.Weight, len(examples.NLVRClasses)
	case x.Multimodal.On():
		l.Name, l.Weight, l.Head.Classes = multimodal.Name, x.Multimodal.Weight, len(o.Classes)
	default:
		return nil
	}
	return &l
}

// newDecoder is the decoder of a configuration: its fusion layers with words, positions and a head of their own. It has
// no learned metric and is not tuned.
func newDecoder(cfg config.Config, o Options) encoders.Decoder {
	b, ok := textEncoder(cfg.Model, o, space.Space{Dim: cfg.Model.Head.Dim, Spheres: 1}).(encoders.BERT)
	objectives.Need(ok && b.FusionLayers > 0, "decoder",
		"has the structure of fusion layers: set model.text.fusion_layers > 0, with a model.text.style of bert or roberta")
	b.Layers, b.Classes, b.TokenBlocks, b.FinalNorm = 0, 0, 0, false
	b.Metric, b.FusionMetric = encoders.AttentionMetric{}, encoders.AttentionMetric{}
	return encoders.Decoder{BERT: b}
}

// newVQA is the loss of answers.
func newVQA(cfg config.Config, o Options) objectives.VQA {
	c := cfg.Objective.VQA
	return objectives.VQA{Weight: c.Weight, Decoder: newDecoder(cfg, o), Answers: c.Answers, Len: c.Tokens,
		Rows: c.Rows}
}

// newCaptioning is the loss of captions that the decoder writes.
func newCaptioning(cfg config.Config, o Options) objectives.Loss {
	c := cfg.Objective.Captioning
	l := objectives.CaptioningByDecoder{Weight: c.Weight, Decoder: newDecoder(cfg, o), Len: cfg.Data.Tokens,
		Tokens: c.Tokens, Last: o.EndID}
	if o.End > 0 {
		l.Last = -1
	}
	return l
}
