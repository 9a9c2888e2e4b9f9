package config

import (
	"fmt"
	"slices"
)

// Model is the architecture.
type Model struct {
	System string `toml:"system" fixed:"meaning"` // albef (both towers from pixels and words, with fusion layers) | clip (the two towers alone) | matching (two towers compared by features or by tokens, without a projection where a tower is as wide as the space) | moco (images alone, two views against momentum features and a queue) | swav (images alone, two views against prototypes) | identities (images alone, whose identities are known: metric learning, evaluated by search) | classes (images alone: fine-tuning of an image tower for classification) | simcse (texts alone: contrast of sentences with themselves under other dropout, or with given positives) | heads (MLPs over stored features) | sentence_pairs (texts alone: fine-tuning on pairs of sentences with a class or a score) | align (a closed form over stored features, fitted in one go)
	Image  Image  `toml:"image" read:"images"`
	Text   Text   `toml:"text" read:"words"`
	LoRA   LoRA   `toml:"lora" read:"towers"`
	Tuning Tuning `toml:"tuning" read:"towers"`
	Head   Head   `toml:"head" read:"steps"`

	AttentionMetric AttentionMetric `toml:"attention_metric" read:"towers"`

	Interaction Interaction `toml:"interaction" read:"words"`

	Heads Heads `toml:"heads" read:"heads"`
	Align Align `toml:"align"`
	Views Views `toml:"views" read:"views"`
}

func (m *Model) defaults() { *m = Model{System: "albef"} }

func (m *Model) check(k *checker, _ *Config) {
	var names []string
	for _, s := range systems {
		names = append(names, s.name)
	}
	k.OneOf("model.system", names...)
}

// traits are what a system offers. The parts of a configuration ask for them and not for
// a system by its name.
type traits struct {
	name       string
	captions   bool // pairs of an image and a caption, else images alone
	words      bool // a text tower that reads tokens
	fusion     bool // layers in which text and image meet
	teacher    bool // it can have a momentum twin, which fills the queue; else it fills the queue itself
	tokens     bool // an encoding has parts: patches of an image, tokens of a text, class tokens
	stored     bool // it reads stored features and no pixels
	fitted     bool // it is fitted in closed form: it has no steps, and nothing that only steps read
	identities bool // images alone whose identities are known, else two views of an image
	sentences  bool // texts alone, else without captions images alone
	prototypes bool // views are compared with learned prototypes
	interacts  bool // images and texts can be compared by their tokens
	whole      bool // a tower as wide as the space has no projection

	sentencePairs bool // it is trained on pairs of sentences
	classes       bool // images alone whose classes are known: a classifier
}

var systems = []traits{
	{name: "albef", captions: true, words: true, fusion: true, teacher: true, tokens: true},
	{name: "clip", captions: true, words: true, teacher: true, tokens: true, interacts: true},
	{name: "matching", captions: true, words: true, teacher: true, tokens: true, interacts: true, whole: true},
	{name: "moco", teacher: true},
	{name: "swav", prototypes: true},
	{name: "identities", identities: true},
	{name: "classes", classes: true},
	{name: "simcse", words: true, sentences: true},
	{name: "sentence_pairs", words: true, sentences: true, sentencePairs: true},
	{name: "heads", captions: true, teacher: true, stored: true},
	{name: "align", captions: true, stored: true, fitted: true},
}

// traits returns those of the system, of the first one where its name is wrong: that is
// reported with model.system.
func (m Model) traits() traits {
	i := slices.IndexFunc(systems, func(t traits) bool { return t.name == m.System })
	return systems[max(i, 0)]
}

// named is the system in a message.
func (m Model) named() string { return fmt.Sprintf("model.system %q", m.System) }

// ImagesOnly says whether a system is trained on images without captions.
func (m Model) ImagesOnly() bool { return !m.traits().captions && !m.traits().sentences }

// TextsOnly says whether a system is trained on texts without images.
func (m Model) TextsOnly() bool { return m.traits().sentences }

// JudgesPairs says whether a system is trained to tell what two sentences are to each other.
func (m Model) JudgesPairs() bool { return m.traits().sentencePairs }

// Classifies says whether a system is trained to tell the classes of images.
func (m Model) Classifies() bool { return m.traits().classes }

// seesViews says whether a system is trained on two views of an image without captions.
func (m Model) seesViews() bool { return m.ImagesOnly() && !m.ByIdentity() && !m.Classifies() }

// seesImages says whether a system has a tower of images.
func (m Model) seesImages() bool { return !m.traits().stored && !m.traits().sentences }

// ByIdentity says whether a system learns from the identities of images.
func (m Model) ByIdentity() bool { return m.traits().identities }

// HasTeacher says whether training can have a momentum twin beside the model: it has one with momentum.enabled.
func (m Model) HasTeacher() bool { return m.traits().teacher && !m.Interacts() }

// Stored says whether a system reads stored features in the place of images and captions.
func (m Model) Stored() bool { return m.traits().stored }

// Fitted says whether a system is fitted to its training data at once, in place of steps.
func (m Model) Fitted() bool { return m.traits().fitted }
