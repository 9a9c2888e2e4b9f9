package config

import (
	"path"
	"slices"
	"strings"
)

// Optimizer is AdamW.
type Optimizer struct {
	LR       float64  `toml:"lr"`                    // learning rate after warm-up
	Beta1    float64  `toml:"beta1"`                 // decay of the first moment
	Beta2    float64  `toml:"beta2"`                 // decay of the second moment
	Eps      float64  `toml:"eps"`                   // added to the root of the second moment
	Decay    float64  `toml:"decay"`                 // decoupled weight decay
	NoDecay  []string `toml:"no_decay" read:"decay"` // groups without decay: "bias", "1d" (tensors of one axis, but not class tokens), "temperature", "metric" (learned metrics: of objective.gssf, of model.tuning), or a glob on parameter names
	ClipNorm float64  `toml:"clip_norm"`             // global gradient norm; 0: no clipping
}

// noDecayGroups are the groups of parameters that optimizer.no_decay knows by name.
var noDecayGroups = []string{"bias", "1d", "temperature", "metric"}

func (o *Optimizer) defaults() {
	*o = Optimizer{LR: 1e-4, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, Decay: 0.02, NoDecay: slices.Clone(noDecayGroups)}
}

func (o *Optimizer) check(k *checker, _ *Config) {
	k.Positive("optimizer.lr", "optimizer.eps")
	k.BelowOne("optimizer.beta1", "optimizer.beta2")
	k.NotNegative("optimizer.decay", "optimizer.clip_norm")
	for _, p := range o.NoDecay {
		if _, err := path.Match(p, ""); err != nil {
			k.Require("optimizer.no_decay", false, "holds the malformed glob \""+p+`"`, "close every [ and end no pattern with \\")
		}
		// A plain word can match no parameter, since their names are paths.
		k.Require("optimizer.no_decay", slices.Contains(noDecayGroups, p) || strings.ContainsAny(p, `/*?[`),
			`holds "`+p+`", which is no group and no glob`, `the groups are "bias", "1d", "temperature" and "metric"; a glob looks like "text/*/norm/*"`)
	}
}
