package vqa

import "github.com/geoalign/geoalign/config/section"

// Eval says how a model answers questions about pictures: it ranks candidates, or it writes.
type Eval struct {
	// write answers freely; else rank candidates
	Generate bool `toml:"generate"`
	// file of candidates, one on each line or a JSON list; relative to data.root; empty: the commonest answers of the
	// training data
	Candidates string `toml:"candidates" when:"generate=false"`
	// how many of these; 0: all
	Common int `toml:"common" when:"generate=false and candidates=" max:"100000"`
	// candidates that are read whole, those with the likeliest first word; 0: all
	Top int `toml:"top" when:"generate=false" max:"100000"`
	// texts that the search for an answer follows
	Beams int `toml:"beams" when:"generate=true" max:"1000"`
}

// Defaults implements section.Defaulter.
func (e *Eval) Defaults() { *e = Eval{Common: 3192, Top: 128, Beams: 3} }

// Check implements section.Checked.
func (e *Eval) Check(k *section.Checker) {
	k.NotNegative("common", "top")
	k.Positive("beams")
}
