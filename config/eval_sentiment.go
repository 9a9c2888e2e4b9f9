package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Sentiment names the utterances whose sentiment --task sentiment predicts by one linear layer from their modalities, pooled and
// concatenated, as CMU-MOSEI is laid out: .npz or .safetensors files with the arrays labels, text, audio and vision
// ([sentences.md](sentences.md#sentiment-of-utterances)). Paths start from data.root.
type Sentiment struct {
	Train      string   `toml:"train"`                                // file of the utterances that the layer is fitted to
	Test       string   `toml:"test"`                                 // file of those that it is tested on
	TrainTexts string   `toml:"train_texts" read:"sentiment"`         // text file with the words of a training utterance on each line, which the text tower encodes by eval.sentences.feature; empty: no words
	TestTexts  string   `toml:"test_texts" read:"sentiment"`          // likewise of the test utterances
	Modalities []string `toml:"modalities" read:"sentiment"`          // arrays that are pooled over their steps and concatenated: text, audio, vision
	Decay      float64  `toml:"decay" read:"sentiment" max:"1000000"` // weight decay of the layer: the mean squared error and decay times the squared weights of standardised features
}

// Modalities are the arrays that utterances may have.
var Modalities = []string{"text", "audio", "vision"}

func (s *Sentiment) defaults() { *s = Sentiment{Modalities: slices.Clone(Modalities), Decay: 0.1} }

func (s *Sentiment) check(k *checker, _ *Config) {
	const key = "eval.sentiment."
	for _, file := range []struct{ name, path, other string }{{"train", s.Train, s.Test}, {"test", s.Test, s.Train}} {
		ext := strings.ToLower(filepath.Ext(file.path))
		k.Require(key+file.name, file.path != "" || file.other == "", "must name a file of utterances beside the other one")
		k.Require(key+file.name, file.path == "" || ext == ".npz" || ext == ".safetensors", "must end in .npz or .safetensors")
	}
	for _, file := range []struct{ name, path, other string }{{"train_texts", s.TrainTexts, s.TestTexts}, {"test_texts", s.TestTexts, s.TrainTexts}} {
		k.Require(key+file.name, file.path != "" || file.other == "", "must name a text file beside the other one")
	}
	for i, m := range s.Modalities {
		k.Require(key+"modalities", slices.Contains(Modalities, m), fmt.Sprintf("must be some of %s", strings.Join(Modalities, ", ")))
		k.Require(key+"modalities", !slices.Contains(s.Modalities[:i], m), "must name a modality once")
	}
	k.Require(key+"modalities", len(s.Modalities) > 0 || s.TrainTexts != "", "must name a modality", "or name the words of the utterances with train_texts and test_texts")
	k.NotNegative(key + "decay")
}
