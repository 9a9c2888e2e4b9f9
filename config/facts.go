package config

import (
	"slices"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data/source"
)

// View is c as its components see it: what holds in it, and its sections, behind c itself.
func (c *Config) View() *section.View {
	if c.seen != nil {
		return c.seen
	}
	held := map[section.Fact]bool{}
	hold := func(list ...section.Fact) {
		for _, f := range list {
			held[f] = true
		}
	}
	hold(given(c.Model.System)...)
	for f, has := range c.ownFacts(held) {
		if has {
			hold(f)
		}
	}
	list := c.sections()
	all := make([]any, len(list), len(list)+1)
	for i, f := range list {
		all[i] = f.pointer()
	}
	v := section.NewView(append(all, c), c.value,
		section.Facts{System: c.Model.System, Names: systemNames(), Of: given, Held: held})
	for i, f := range list { // what nothing reads gives nothing
		if g, ok := all[i].(section.Giver); ok && section.On(all[i]) && c.lacks(f.place, v) == "" {
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

// ownFacts are those that sections give together, in a system that gives what is held.
func (c *Config) ownFacts(held map[section.Fact]bool) map[section.Fact]bool {
	d, e, drawn, steps := &c.Data, &c.Eval, c.Data.Drawn(), held[section.Steps]
	sentences, mixed := d.Kind == "sentences", c.MixesSentences()
	searched := held[section.Captions] || held[section.Identities]
	t, decoder := &c.Model.Text, &c.Objective.Captioning
	return map[section.Fact]bool{
		section.Ranks:          c.Ranks > 1,
		section.FeatureBatches: c.AccumulatesFeatures(),
		section.TowerDropout:   c.JointPairs() && c.Objective.SentencePairs.Dropout > 0,
		section.TextLearns:     (!t.Freeze || t.FusionLayers > 0) && !decoder.On() || decoder.Recurs(),
		section.Searched:       searched && steps,
		section.Score:          searched && e.Score == "train",
		section.Mixed:          mixed,
		section.ShortBatches:   steps && !held[section.Identities],
		section.ImageFiles: held[section.Words] && e.ZeroShot.Images != "" || !drawn && d.Kind != "pairs" &&
			!sentences &&
			d.Kind != source.SentencePairsKind && (d.Kind != "regions" || d.Regions.Pictures != ""),
		section.TextFiles: sentences || mixed,
		section.Files:     !drawn && steps || mixed || len(e.Sentences.Tasks) > 0,
		section.Root: !drawn || d.Vocab != "" || mixed || d.Kind == source.VQAKind && e.VQA.Candidates != "" ||
			e.ZeroShot.ReadsFiles() || e.TextProbe.Train != "" || len(e.Sentences.Tasks) > 0 || e.Sentiment.Train != "",
	}
}

// settled returns a copy of c that nothing may change, for whoever asks much of it: its view is made once.
func (c *Config) settled() *Config {
	s := *c
	s.seen = s.View()
	return &s
}

// Has says whether a fact holds in c.
func (c *Config) Has(f section.Fact) bool {
	if ofSystem(f) { // whatever sections say
		return slices.Contains(given(c.Model.System), f)
	}
	return c.View().Has(f)
}
