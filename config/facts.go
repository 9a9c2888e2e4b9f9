package config

import (
	"slices"

	"github.com/geoalign/geoalign/config/section"
)

// View is c as its components see it: what holds in it, and its sections.
func (c *Config) View() *section.View {
	held := map[section.Fact]bool{}
	hold := func(list ...section.Fact) {
		for _, f := range list {
			held[f] = true
		}
	}
	hold(given(c.Model.System)...)
	for _, x := range []struct {
		fact section.Fact
		has  bool
	}{
		{section.FeatureBatches, c.AccumulatesFeatures()},
		{section.TowerDropout, c.JointPairs() && c.Objective.SentencePairs.Dropout > 0},
		{section.Score, c.Eval.Score == "train" && (held[section.Captions] || held[section.Identities])},
	} {
		if x.has {
			hold(x.fact)
		}
	}
	for f, has := range c.dataFacts() {
		if has {
			hold(f)
		}
	}
	list := sections(c)
	all := make([]any, len(list))
	for i, f := range list {
		all[i] = f.value.Addr().Interface()
	}
	v := section.NewView(all, section.Facts{System: c.Model.System, Names: systemNames(), Of: given, Held: held})
	for i, f := range list { // what nothing reads gives nothing
		if g, ok := all[i].(section.Giver); ok && section.On(all[i]) && c.reads(f, v) {
			hold(g.Gives()...)
		}
	}
	for _, s := range all {
		if d, ok := s.(section.Deriver); ok && section.On(s) {
			hold(d.Derives(v)...)
		}
	}
	if held[section.Views] || c.Momentum.Enabled && held[section.TeacherImages] {
		hold(section.SecondView)
	}
	return v
}

// reads says whether something reads a section, as far as the tags when of it and of those around it tell.
func (c *Config) reads(f field, v *section.View) bool {
	for tag := f.tag; ; tag = placeOf()[f.path].tag {
		if text := tag.Get("when"); text != "" && !when(text, around(f.path)).Holds(c.Get, v.Has) {
			return false
		}
		if f.path = around(f.path); f.path == "" {
			return true
		}
	}
}

// Has says whether a fact holds in c.
func (c Config) Has(f section.Fact) bool {
	if ofSystem(f) { // whatever sections say
		return slices.Contains(given(c.Model.System), f)
	}
	return c.View().Has(f)
}
