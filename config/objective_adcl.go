package config

// ADCL is the augmented data contrastive learning of ViPMM (section 3.4): the contrast of each side with the teacher's
// features of the other one against the queue, and the contrast of fused pairs.
type ADCL struct {
	Weight            float64 `toml:"weight" max:"1000000"`                            // of each of its two parts in the total, mu in ViPMM, which has 0.04; 0: off
	Temperature       float64 `toml:"temperature" read:"adcl"`                         // tau, by which products with the queue are divided, a constant
	Fusion            string  `toml:"fusion" read:"adcl"`                              // of an image and a text: tucker (bilinear, as in MUTAN) | attention (of the two to each other) | none (without the contrast of fused pairs)
	FusionTemperature float64 `toml:"fusion_temperature" read:"adcl fusion"`           // tau2, by which products of fused pairs are divided, a constant
	Dim               int     `toml:"dim" read:"adcl fusion" fixed:"run" max:"65536"`  // channels of a fused pair
	Rank              int     `toml:"rank" read:"adcl tucker" fixed:"run" max:"65536"` // of the core of tucker, R; 0: the full core, of model.head.dim^3 weights
	Tanh              bool    `toml:"tanh" read:"adcl ranks" fixed:"run"`              // of the projections of tucker, as in MUTAN's code
	Dropout           float64 `toml:"dropout" read:"adcl fusion"`                      // of the features that are fused
}

// Fusions of a pair.
const (
	FusionTucker    = "tucker"
	FusionAttention = "attention"
	FusionNone      = "none"
)

func (a *ADCL) defaults() {
	*a = ADCL{Temperature: 0.07, Fusion: FusionTucker, FusionTemperature: 0.1, Dim: 128, Rank: 10}
}

// fuses says whether pairs are fused.
func (a ADCL) fuses() bool { return a.Weight > 0 && a.Fusion != FusionNone }

// Drops says whether features are dropped before they are fused.
func (a ADCL) Drops() bool { return a.fuses() && a.Dropout > 0 }

func (a *ADCL) check(k *checker, c *Config) {
	const path = "objective.adcl.weight"
	k.NotNegative(path, "objective.adcl.rank")
	k.Positive("objective.adcl.dim")
	// Outside of these float32 has no room for the logits.
	for _, p := range []string{"objective.adcl.temperature", "objective.adcl.fusion_temperature"} {
		k.Require(p, k.Number(p) >= 1e-3 && k.Number(p) <= 1e3, "must be between 0.001 and 1000", "0.07 and 0.1 are usual")
	}
	k.OneOf("objective.adcl.fusion", FusionTucker, FusionAttention, FusionNone)
	k.BelowOne("objective.adcl.dropout")
	if a.Weight == 0 {
		return
	}
	k.Require(path, c.Model.traits().captions, "must be 0", c.Model.named()+" reads no captions")
	k.Require(path, !c.Model.Interacts(), "must be 0 with model.interaction", "it compares features") // before it is told to have a teacher, which goes with none
	k.Require(path, c.Momentum.Enabled, "must be 0 without momentum", needsTeacher)
	k.Require(path, c.Queue.Size > 0, "must be 0 without a queue", "its negatives are there: set queue.size")
	k.Require(path, c.Model.Head.Topology == "sphere", `must be 0 with another model.head.topology than "sphere"`, "it compares unit vectors of one sphere")
}

// Weights returns the weights of the matrices of the fusion of features of c channels.
func (a ADCL) Weights(c int) int64 {
	n, out := int64(c), int64(a.Dim)*int64(c)
	switch {
	case !a.fuses():
		return 0
	case a.Fusion == FusionAttention:
		return 3*n*n + out
	case a.Rank > 0:
		return 2*int64(a.Rank)*n*n + out
	}
	return n*n*n + out
}
