package config

import "github.com/geoalign/geoalign/config/section"

// View is c as its components see it: what holds in it, and its sections.
func (c *Config) View() *section.View {
	held := map[section.Fact]bool{}
	hold := func(list ...section.Fact) {
		for _, f := range list {
			held[f] = true
		}
	}
	hold(c.Model.traits().facts()...)
	for _, x := range []struct {
		fact section.Fact
		has  bool
	}{
		{section.Teacher, c.Momentum.Enabled && c.Model.HasTeacher()},
		{section.TeacherFeatures, c.Momentum.Dynamic()},
		{section.Queue, c.Queue.Size > 0},
		{section.Features, !c.Model.Interacts()},
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
		if g, ok := all[i].(section.Giver); ok && section.On(all[i]) {
			hold(g.Gives()...)
		}
	}
	v := section.NewView(all, section.Facts{System: c.Model.System, Names: systemNames, Of: systemFacts, Held: held})
	for _, s := range all {
		if d, ok := s.(section.Deriver); ok && section.On(s) {
			hold(d.Derives(v)...)
		}
	}
	if c.Model.seesViews() || c.Momentum.Enabled && held[section.TeacherImages] {
		hold(section.SecondView)
	}
	return v
}

// systemNames are those of all systems.
var systemNames = func() (names []string) {
	for _, s := range systems {
		names = append(names, s.name)
	}
	return names
}()

// systemFacts are what a system gives.
func systemFacts(system string) []section.Fact { return Model{System: system}.traits().facts() }

// facts are what a system gives.
func (t traits) facts() (list []section.Fact) {
	for _, x := range []struct {
		has  bool
		fact section.Fact
	}{
		{t.captions, section.Captions}, {t.words, section.Words}, {t.fusion, section.Fusion}, {t.teacher, section.Momentum},
		{t.tokens, section.Tokens}, {t.stored, section.Stored}, {!t.stored, section.Towers},
		{!t.stored && !t.sentences, section.Images}, {!t.captions && !t.sentences && !t.identities && !t.classes, section.Views},
		{!t.fitted, section.Steps}, {t.fitted, section.Fitted}, {t.identities, section.Identities}, {t.sentences, section.Sentences},
		{t.sentencePairs, section.SentencePairs}, {t.prototypes, section.Prototypes}, {t.interacts, section.Interacts},
		{t.classes, section.Classes},
	} {
		if x.has {
			list = append(list, x.fact)
		}
	}
	return list
}

// Has says whether a fact holds in c.
func (c *Config) Has(f section.Fact) bool { return c.View().Has(f) }
