package config

// EntailmentLoss is fine-tuning on visual entailment (data.kind = "entailment"): whether a picture contradicts a sentence, entails it, or
// neither, by two linear layers over the first fused token (Li et al. 2021, section 5; SNLI-VE, Xie et al. 2019).
type EntailmentLoss struct {
	Weight float64 `toml:"weight" max:"1000000"` // of the loss in the total; 0: off
}

// EntailmentClasses is the number of the classes of visual entailment: contradiction, neutral, entailment.
const EntailmentClasses = 3

func (e *EntailmentLoss) defaults() {}

func (e *EntailmentLoss) check(k *checker, _ *Config) { k.NotNegative("objective.entailment.weight") }
