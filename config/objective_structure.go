package config

// Structure is the regulariser of STRUCTURE (NeurIPS 2025): random walks among the rows of a
// batch end where they end before the head.
type Structure struct {
	Weight            float64 `toml:"weight" max:"1000000"`                           // for each modality; 0: off
	Modalities        string  `toml:"modalities" read:"structure"`                    // both | image | text
	Hops              int     `toml:"hops" read:"structure" max:"16"`                 // L: walks of 1 to L steps are compared
	Temperature       float64 `toml:"temperature" read:"structure"`                   // by which cosines after the head are divided: the smaller, the more a step goes to the nearest alone
	TargetTemperature float64 `toml:"target_temperature" read:"structure"`            // by which cosines before the head are divided; 0: temperature
	WarmupSteps       int     `toml:"warmup_steps" read:"structure" max:"1000000000"` // the weight grows linearly from 0 over this many steps; 0: no warm-up
}

func (o *Structure) defaults() { *o = Structure{Modalities: "both", Hops: 1, Temperature: 0.05} }

// Target returns the temperature before the head.
func (o Structure) Target() float64 {
	if o.TargetTemperature == 0 {
		return o.Temperature
	}
	return o.TargetTemperature
}

func (o *Structure) check(k *checker, c *Config) {
	k.NotNegative("objective.structure.weight", "objective.structure.warmup_steps")
	k.Require("objective.structure.weight", o.Weight == 0 || c.Model.traits().captions, "must be 0",
		c.Model.named()+" compares two views of an image: the term keeps each of two modalities as it is")
	k.OneOf("objective.structure.modalities", "both", "image", "text")
	k.Positive("objective.structure.hops")
	const hint = "0.05 keeps a step to the nearest few"
	k.Require("objective.structure.temperature", o.Temperature >= 1e-3 && o.Temperature <= 1e3, "must be between 0.001 and 1000", hint)
	k.Require("objective.structure.target_temperature", o.TargetTemperature == 0 || o.TargetTemperature >= 1e-3 && o.TargetTemperature <= 1e3, "must be 0, or between 0.001 and 1000", hint)
}
