package probe

import "github.com/geoalign/geoalign/config/section"

// Eval is the part of [eval] that is of probes.
type Eval struct {
	// labelled training images of the linear probe, not augmented; a smaller training set is used whole
	ProbeSamples int `toml:"probe_samples" when:"images" max:"1000000000"`
	// weight decay of a probe, whose loss is the mean cross-entropy and decay/2 times the squared weights
	ProbeDecay float64 `toml:"probe_decay" when:"towers and probe_hold=0" max:"1000000"`
	// share of a probe's training samples on which its decay is chosen, by a search from 1e-7 to 10; 0: probe_decay
	ProbeHold float64 `toml:"probe_hold" when:"towers"`
	// neighbours that vote in the k-NN accuracy beside the probe
	ProbeNeighbours int `toml:"probe_neighbours" when:"images" max:"65536"`
}

// Defaults implements section.Defaulter.
func (e *Eval) Defaults() { *e = Eval{ProbeSamples: 10000, ProbeDecay: 1e-3, ProbeNeighbours: 20} }

// Check implements section.Checked.
func (e *Eval) Check(k *section.Checker) {
	k.NotNegative("probe_decay")
	k.BelowOne("probe_hold")
	k.Positive("probe_samples", "probe_neighbours")
}
