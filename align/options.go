package align

import "github.com/geoalign/geoalign/config/section"

// Options is the closed form of model.system = "align", which is fitted to all training pairs
// of stored features at once, and of model.heads.start.
type Options struct {
	// cca | ridge | procrustes | csa | asif | wasserstein
	Method string `toml:"method" when:"fitted" fixed:"model"`
	// subtract the mean of the training pairs
	Center bool `toml:"center" when:"fitted and method!=asif or heads and model.heads.start or heads and objective.klot.weight>0" fixed:"run"`
	// scale the rows to unit length for the fit, after center, so that no pair counts more than another
	UnitLength bool `toml:"unit_length" when:"fitted and method!=asif or heads and model.heads.start or heads and objective.klot.weight>0" fixed:"run"`

	CCA         CCA         `toml:"cca" when:"fitted and method=cca or heads and model.heads.start=cca or heads and objective.klot.weight>0 and objective.klot.reference=cca"`
	Ridge       Ridge       `toml:"ridge" when:"fitted and method=ridge or heads and model.heads.start=ridge"`
	Procrustes  Procrustes  `toml:"procrustes" when:"fitted and method=procrustes or heads and model.heads.start=procrustes or heads and objective.klot.weight>0 and objective.klot.reference=procrustes"`
	CSA         CSA         `toml:"csa" when:"fitted and method=csa"`
	ASIF        ASIF        `toml:"asif" when:"fitted and method=asif"`
	Wasserstein Wasserstein `toml:"wasserstein" when:"fitted and method=wasserstein"`
}

// Defaults implements section.Defaulter.
func (o *Options) Defaults() { *o = Options{Method: "cca", Center: true, UnitLength: true} }

// Check implements section.Checked.
func (o *Options) Check(k *section.Checker) {
	k.OneOf("method", "cca", "ridge", "procrustes", "csa", "asif", "wasserstein")
}

// Named returns a method with its settings, cca where there is none of the name, and the zero value of its map. The
// seed is that of its random numbers.
func (o Options) Named(name string, seed uint64) (Method, Map) {
	p := Prepare{KeepMean: !o.Center, KeepLength: !o.UnitLength}
	o.CCA.Prepare, o.Ridge.Prepare, o.Procrustes.Prepare, o.CSA.Prepare, o.Wasserstein.Prepare = p, p, p, p, p
	switch name {
	case "ridge":
		return o.Ridge, &Linear{}
	case "procrustes":
		return o.Procrustes, &Linear{}
	case "csa":
		return o.CSA, &CSAMap{}
	case "asif":
		return o.ASIF, &ASIFMap{}
	case "wasserstein":
		o.Wasserstein.Seed = seed
		if o.Wasserstein.Restarts == 0 {
			o.Wasserstein.Restarts = -1 // none
		}
		return o.Wasserstein, &Linear{}
	}
	o.CCA.Unweighted = o.CCA.Power == 0
	return o.CCA, &Linear{}
}
