package config

// SimCSE is the contrast of sentences of Gao et al. (2021, "SimCSE", equations 4 and 5): each text of a batch is compared with
// all texts of a second pass under other dropout masks, or with given positives and hard negatives (data.sentences.positive and
// negative), and should find its own.
type SimCSE struct {
	Weight             float64 `toml:"weight" max:"1000000"`                                     // of the loss in the total; 0: off
	Temperature        float64 `toml:"temperature" read:"simcse" max:"1000000"`                  // by which cosines are divided; constant
	Head               string  `toml:"head" read:"simcse" fixed:"model"`                         // a linear layer with tanh between what model.text.pool gives and the contrast: training (left out in evaluation) | always (kept, for model.system "simcse") | none
	HardNegativeWeight float64 `toml:"hard_negative_weight" read:"hard negatives" max:"1000000"` // how often the own hard negative of a text counts in its denominator, the paper's alpha; the published flag of that name is its logarithm
}

// Values of objective.simcse.head.
const (
	SentenceHeadTraining = "training"
	SentenceHeadAlways   = "always"
	SentenceHeadNone     = "none"
)

func (s *SimCSE) defaults() {
	*s = SimCSE{Temperature: 0.05, Head: SentenceHeadTraining, HardNegativeWeight: 1}
}

func (s *SimCSE) check(k *checker, c *Config) {
	const path = "objective.simcse.weight"
	k.NotNegative(path)
	k.least("objective.simcse.temperature")
	k.OneOf("objective.simcse.head", SentenceHeadTraining, SentenceHeadAlways, SentenceHeadNone)
	k.NotNegative("objective.simcse.hard_negative_weight")
	k.Require("objective.simcse.hard_negative_weight", s.HardNegativeWeight >= 1e-6 || !c.HasNegatives(), "must be at least 0.000001", "leave out data.sentences.negative for none")
	k.Require(path, s.Weight > 0 || !c.Model.TextsOnly() || c.Model.JudgesPairs(), "must be > 0", "it is the loss of "+c.Model.named())
	if s.Weight == 0 {
		return
	}
	k.Require(path, !c.Model.JudgesPairs(), "must be 0", c.Model.named()+" is trained by objective.sentence_pairs.weight")
	k.sentences(c, path)
	k.Require("objective.simcse.head", s.Head != SentenceHeadAlways || c.Model.TextsOnly(), "must be training or none", c.Model.named()+" has a head of its own for evaluation")
}

// least requires a temperature that float32 has room for.
func (k *checker) least(path string) {
	k.Require(path, k.Number(path) >= 1e-4, "must be at least 0.0001", "0.05 in the paper")
}

// sentences asks for what a contrast of two passes of a text needs.
func (k *checker) sentences(c *Config, path string) {
	t := c.Model.traits()
	k.Require(path, t.words && !t.fusion, "must be 0", c.Model.named()+` has no text tower of its own: use "simcse", "clip" or "matching"`)
	if !t.words {
		return
	}
	k.Require(path, !c.Model.Interacts(), "must be 0 with model.interaction.kind", "it reads one vector for each text")
	space, err := c.Model.Head.Space()
	k.Require(path, err != nil || !space.Tokens, "must be 0 with several class tokens", "it reads one vector for each text: choose another model.head.topology")
	k.Training("model.text.freeze", !c.Model.Text.Freeze, "must be false with "+path+" > 0", "it trains the text tower")
	k.Training("model.text.dropout", c.Model.Text.Dropout > 0 || c.HasPositives(), "must be > 0 with "+path+" > 0", "two passes of a text differ by dropout alone")
}
