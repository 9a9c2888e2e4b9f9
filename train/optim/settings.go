package optim

import (
	"path"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/config/section"
)

// Settings is AdamW with decoupled weight decay, [optimizer].
type Settings struct {
	// learning rate after warm-up
	LR float64 `toml:"lr"`
	// decay of the first moment
	Beta1 float64 `toml:"beta1"`
	// decay of the second moment
	Beta2 float64 `toml:"beta2"`
	// added to the root of the second moment
	Eps float64 `toml:"eps"`
	// decoupled weight decay
	Decay float64 `toml:"decay"`
	// groups without decay: "bias", "1d" (tensors of one axis, but not class tokens), "temperature", "metric" (learned
	// metrics: of objective.gssf, of model.tuning), or a glob on parameter names
	NoDecay []string `toml:"no_decay" when:"decay>0"`
	// global gradient norm; 0: no clipping
	ClipNorm float64 `toml:"clip_norm"`
}

// noDecayGroups are the groups of parameters that optimizer.no_decay knows by name.
var noDecayGroups = []string{"bias", "1d", "temperature", "metric"}

// Defaults implements section.Defaulter.
func (o *Settings) Defaults() {
	*o = Settings{LR: 1e-4, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, Decay: 0.02, NoDecay: slices.Clone(noDecayGroups)}
}

// Check implements section.Checked.
func (o *Settings) Check(k *section.Checker) {
	k.Positive("lr", "eps")
	k.BelowOne("beta1", "beta2")
	k.NotNegative("decay", "clip_norm")
	for _, p := range o.NoDecay {
		if _, err := path.Match(p, ""); err != nil {
			k.Require("no_decay", false, "holds the malformed glob \""+p+`"`,
				"close every [ and end no pattern with \\")
		}
		// A plain word can match no parameter, since their names are paths.
		k.Require("no_decay", slices.Contains(noDecayGroups, p) || strings.ContainsAny(p, `/*?[`),
			`holds "`+p+`", which is neither a group nor a glob`,
			`the groups are "bias", "1d", "temperature" and "metric"; a glob looks like "text/*/norm/*"`)
	}
}
