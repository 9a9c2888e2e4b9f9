package config

import (
	"slices"

	"github.com/geoalign/geoalign/align"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/interact"
)

// Model is the architecture.
type Model struct {
	// albef (both towers from pixels and words, with fusion layers) | clip (the two towers alone) | matching (two
	// towers compared by features or by tokens, without a projection where a tower is as wide as the space) | moco
	// (images alone, two views against momentum features and a queue) | swav (images alone, two views against
	// prototypes) | identities (images alone, whose identities are known: metric learning, evaluated by search) |
	// classes (images alone: fine-tuning of an image tower for classification) | simcse (texts alone: contrast of
	// sentences with themselves under other dropout, or with given positives) | heads (MLPs over stored features) |
	// sentence_pairs (texts alone: fine-tuning on pairs of sentences with a class or a score) | align (a closed form
	// over stored features, fitted in one go) | text_encoder, image_encoder (one tower with its pool and what stands
	// behind it, as trainer import makes it of weights: it is used as it is and not trained)
	System string `toml:"system" fixed:"meaning"`

	Image  encoders.ImageOptions `toml:"image" when:"images"`
	Text   encoders.TextOptions  `toml:"text" when:"words"`
	LoRA   encoders.LoRA         `toml:"lora" when:"towers"`
	Tuning encoders.Tuning       `toml:"tuning" when:"towers"`
	Head   encoders.HeadOptions  `toml:"head" when:"steps or one encoder"`

	AttentionMetric encoders.AttentionMetric `toml:"attention_metric" when:"towers"`

	Interaction interact.Options `toml:"interaction"`

	Heads encoders.FeatureHeads `toml:"heads" when:"heads"`
	Align align.Options         `toml:"align"`
	Views encoders.ViewHead     `toml:"views" when:"views"`
}

// systems are what every model.system has.
var systems = []struct {
	name string
	has  []section.Fact
}{
	{"albef", []section.Fact{section.Captions, section.Images, section.Words, section.Towers, section.Tokens,
		section.Fusion, section.Momentum, section.Queued, section.Steps}},
	{"clip", []section.Fact{section.Captions, section.Images, section.Words, section.Towers, section.Tokens,
		section.Interacts, section.Momentum, section.Queued, section.Steps}},
	{"matching", []section.Fact{section.Captions, section.Images, section.Words, section.Towers, section.Tokens,
		section.Interacts, section.Momentum, section.Queued, section.Steps, section.TowerAsSpace}},
	{"moco", []section.Fact{section.ImagesAlone, section.Views, section.Images, section.Towers, section.Momentum,
		section.Queued, section.Steps}},
	{"swav", []section.Fact{section.ImagesAlone, section.Views, section.Images, section.Towers, section.Prototypes,
		section.Queued, section.Steps}},
	{"identities", []section.Fact{section.ImagesAlone, section.Identities, section.Images, section.Towers, section.Steps}},
	{"classes", []section.Fact{section.ImagesAlone, section.Classes, section.Images, section.Towers, section.Steps}},
	{"simcse", []section.Fact{section.Sentences, section.Words, section.Towers, section.Steps}},
	{"sentence_pairs", []section.Fact{section.Sentences, section.SentencePairs, section.Words, section.Towers, section.Steps}},
	{"heads", []section.Fact{section.Captions, section.Stored, section.FeatureHeads, section.Momentum, section.Queued, section.Steps}},
	{"align", []section.Fact{section.Captions, section.Stored, section.Fitted, section.Queued}},
	{"text_encoder", []section.Fact{section.Sentences, section.OneEncoder, section.Words, section.Towers}},
	{"image_encoder", []section.Fact{section.ImagesAlone, section.OneEncoder, section.Images, section.Towers}},
}

// given are the facts of a system, those of the first one where its name is wrong: that is
// reported with model.system.
func given(system string) []section.Fact {
	for _, s := range systems {
		if s.name == system {
			return s.has
		}
	}
	return systems[0].has
}

// systemNames are those of all systems.
func systemNames() (names []string) {
	for _, s := range systems {
		names = append(names, s.name)
	}
	return names
}

// Defaults implements section.Defaulter.
func (m *Model) Defaults() { *m = Model{System: "albef"} }

// Check implements section.Checked.
func (m *Model) Check(k *section.Checker) { k.OneOf("system", systemNames()...) }

// ofSystem says whether a fact is one of a system, which no section gives.
func ofSystem(f section.Fact) bool {
	for _, s := range systems {
		if slices.Contains(s.has, f) {
			return true
		}
	}
	return false
}

// Tokenizes says whether a run has a tokenizer.
func (c *Config) Tokenizes() bool {
	return !c.Has(section.Stored) && (!c.Has(section.OneEncoder) || c.Has(section.Words))
}

// Folded is m without what weights can take in, or that says nothing of a trained model: adapters of low rank,
// scales and shifts, and which of its own parameters were trained.
func (m Model) Folded() Model {
	m.LoRA.Defaults()
	m.Tuning = m.Tuning.Folded()
	return m
}
