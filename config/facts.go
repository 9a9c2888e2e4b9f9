package config

import "github.com/geoalign/geoalign/config/section"

// facts are those that hold in c.
func (c *Config) facts() section.Facts {
	held := map[section.Fact]bool{}
	hold := func(list []section.Fact) {
		for _, f := range list {
			held[f] = true
		}
	}
	hold(c.Model.traits().facts())
	if c.Momentum.Enabled && c.Model.HasTeacher() {
		held[section.Teacher] = true
	}
	for _, f := range fields(c) {
		if f.section() {
			if g, ok := f.value.Addr().Interface().(section.Giver); ok {
				hold(g.Gives())
			}
		}
	}
	x := section.Facts{System: c.Model.System, Held: held, Of: func(system string) []section.Fact {
		return Model{System: system}.traits().facts()
	}}
	for _, s := range systems {
		x.Names = append(x.Names, s.name)
	}
	return x
}

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
		{t.classes, section.Classes}, {!t.captions && !t.sentences, section.ImagesAlone}, {t.stored && !t.fitted, section.FeatureHeads},
		{!t.identities && !t.classes && !t.sentences, section.Queued}, {t.whole, section.TowerAsSpace},
	} {
		if x.has {
			list = append(list, x.fact)
		}
	}
	return list
}

// has says whether a fact holds in c.
func (c *Config) has(f section.Fact) bool { return c.facts().Held[f] }
