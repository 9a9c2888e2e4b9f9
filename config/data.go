package config

import (
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/neighbours"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/tasks/sentencepairs"
)

// ImageInput is what the image tower wants of images.
func (c *Config) ImageInput() transform.Input {
	im := c.Model.Image
	in := transform.Input{Crop: im.Resize == "crop", Resized: im.Resized(), Down: im.Centre == "down",
		Bilinear: im.Interpolation == "bilinear"}
	for i := range im.Mean {
		in.Mean[i], in.Std[i] = float32(im.Mean[i]), float32(im.Std[i])
	}
	return in
}

// Source is what package data/source opens data by.
func (c Config) Source() source.Setup {
	g := c.Objective.Geometric
	s := source.Setup{
		Data: c.Data, Seed: c.Run.Seed, System: c.Model.System,
		Stored: c.Has(section.Stored), ByIdentity: c.Has(section.Identities), JointPairs: c.JointPairs(),
		Mixed: c.MixesSentences(), Center: c.Has(section.FeatureHeads) && c.Model.Heads.Center, Input: c.ImageInput(),
		ImageSize: c.Model.Image.Size, SmallCrops: c.SmallCrops(), BatchSize: c.Train.BatchSize, Pictures: c.Pictures(),
		MaxImages: c.Eval.MaxImages, Folds: c.Eval.Folds,
		Answers: data.Answers{Most: c.Objective.VQA.Answers, Tokens: c.Objective.VQA.Tokens, Clean: data.CleanLower},
	}
	if c.Has(section.Stored) && c.Objective.Geometric.On() {
		s.Neighbours = source.Neighbours{Config: neighbours.Config{K: g.Neighbours, Near: g.Near(),
			Sampling: g.Sampling, Anchor: g.Anchor},
			Image: g.Images(), Text: g.Texts()}
	}
	if c.Objective.Softmax.Weight > 0 {
		s.Classes = c.Objective.Softmax.Classes
	}
	if !c.Eval.VQA.Generate {
		s.Candidates = c.Eval.VQA.Candidates
	}
	return s
}

// checkMixed asks for losses that do without the images that sentences lack.
func (c *Config) checkMixed(k *section.Checker) {
	k.Training("data.sentences.batches", !c.MixesSentences() || !c.Has(section.BatchImages),
		"must be 0 with losses on images besides objective.mcse",
		"they compare the images of a batch, which sentences have not")
}

// SmallCrops returns how many small views of an image there are.
func (c *Config) SmallCrops() int {
	if !c.Has(section.Prototypes) {
		return 0
	}
	return c.Data.Crops.Count
}

// DropsLast says whether samples that do not fill a batch at the end of an epoch are left out. By identities
// they are: after a bad sample the next epoch has whole identities again.
func (c *Config) DropsLast() bool { return c.Data.DropLast || c.Has(section.Identities) }

// TokenLengths are data.token_lengths, nil of a system without words.
func (c *Config) TokenLengths() []int {
	if !c.Has(section.Words) {
		return nil
	}
	return c.Data.TokenLengths
}

// MixesSentences says whether batches of sentences stand between those of pairs.
func (c *Config) MixesSentences() bool {
	return c.Data.Kind != "sentences" && c.Data.Sentences.Batches > 0 && c.Has(section.Captions) && c.Has(section.Words)
}

// TextsOfRow returns the texts of a row of the batch that pass the text tower of a training step.
func (c *Config) TextsOfRow() int {
	switch o := c.Objective; {
	case o.SentencePairs.Weight > 0 && o.SentencePairs.Encoding == sentencepairs.Separate:
		return 2
	case c.Has(section.Negatives):
		return 3
	case o.SimCSE.On() || o.MCSE.On():
		return 2
	}
	return 1
}
