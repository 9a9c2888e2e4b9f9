package sentiment

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/config/section"
)

// Eval names the utterances whose sentiment --task sentiment predicts by one linear layer from their modalities, pooled
// and concatenated, as CMU-MOSEI is laid out: .npz or .safetensors files with the arrays labels, text, audio and vision
// ([sentences.md](sentences.md#sentiment-of-utterances)). Paths start from data.root.
type Eval struct {
	// file of the utterances that the layer is fitted to
	Train string `toml:"train"`
	// file of those that it is tested on
	Test string `toml:"test"`
	// text file with the words of a training utterance on each line, which the text tower encodes by
	// eval.sentences.feature; empty: no words
	TrainTexts string `toml:"train_texts" when:"train"`
	// likewise of the test utterances
	TestTexts string `toml:"test_texts" when:"train"`
	// arrays that are pooled over their steps and concatenated: text, audio, vision
	Modalities []string `toml:"modalities" when:"train"`
	// weight decay of the layer: the mean squared error and decay times the squared weights of standardised features
	Decay float64 `toml:"decay" when:"train" max:"1000000"`
}

// Modalities are the arrays that utterances may have.
var Modalities = []string{"text", "audio", "vision"}

// Defaults implements section.Defaulter.
func (s *Eval) Defaults() { *s = Eval{Modalities: slices.Clone(Modalities), Decay: 0.1} }

// Check implements section.Checked.
func (s *Eval) Check(k *section.Checker) {
	for _, file := range []struct{ name, path, other string }{{"train", s.Train, s.Test}, {"test", s.Test, s.Train}} {
		ext := strings.ToLower(filepath.Ext(file.path))
		k.Require(file.name, file.path != "" || file.other == "", "must name a file of utterances beside the other one")
		k.Require(file.name, file.path == "" || ext == ".npz" || ext == ".safetensors",
			"must end in .npz or .safetensors")
	}
	for _, file := range []struct{ name, path, other string }{{"train_texts", s.TrainTexts, s.TestTexts},
		{"test_texts", s.TestTexts, s.TrainTexts}} {
		k.Require(file.name, file.path != "" || file.other == "", "must name a text file beside the other one")
	}
	for i, m := range s.Modalities {
		k.Require("modalities", slices.Contains(Modalities, m),
			fmt.Sprintf("must be some of %s", strings.Join(Modalities, ", ")))
		k.Require("modalities", !slices.Contains(s.Modalities[:i], m), "must name a modality once")
	}
	k.Require("modalities", len(s.Modalities) > 0 || s.TrainTexts != "", "must name a modality",
		"or name the words of the utterances with train_texts and test_texts")
	k.NotNegative("decay")
}

// Gives implements section.Giver.
func (s *Eval) Gives() []section.Fact {
	if s.TrainTexts == "" {
		return nil
	}
	return []section.Fact{section.Encoded}
}
