package config

import (
	"reflect"
	"slices"
	"sync"

	"github.com/geoalign/geoalign/config/section"
)

// givers are the places of sections that give facts, in the order of the documentation.
var givers = sync.OnceValue(func() (list []place) {
	for _, p := range places() {
		if reflect.PointerTo(typeAt(p)).Implements(reflect.TypeFor[section.Giver]()) {
			list = append(list, p)
		}
	}
	return list
})

func typeAt(p place) reflect.Type { return reflect.TypeFor[Config]().FieldByIndex(p.index).Type }

// facts are those that hold in c. A section gives what it does where something reads it.
func (c *Config) facts() section.Facts {
	held := map[section.Fact]bool{}
	hold := func(list []section.Fact) {
		for _, f := range list {
			held[f] = true
		}
	}
	hold(given(c.Model.System))
	for f, holds := range c.dataFacts() {
		held[f] = held[f] || holds
	}
	c.holdOld(held)
	has := func(f section.Fact) bool { return held[f] }
	give := func(path string, s any) {
		g, gives := s.(section.Giver)
		if on, can := s.(section.Switched); !gives || can && !on.On() {
			return
		}
		for at := path; at != ""; at = around(at) {
			if text := placeOf()[at].tag.Get("when"); text != "" && !when(text, around(at)).Holds(c.Get, has) {
				return
			}
		}
		hold(g.Gives())
	}
	v := reflect.ValueOf(c).Elem()
	for _, p := range givers() {
		give(p.path, v.FieldByIndex(p.index).Addr().Interface())
	}
	for _, a := range c.Added {
		give(a.Path, a.Section)
	}
	return section.Facts{System: c.Model.System, Held: held, Of: given, Names: systemNames()}
}

// Has says whether a fact holds.
func (c Config) Has(f section.Fact) bool {
	if ofSystem(f) { // whatever sections say
		return slices.Contains(given(c.Model.System), f)
	}
	return c.facts().Held[f]
}

// holdOld adds what sections give that are not converted yet.
func (c *Config) holdOld(held map[section.Fact]bool) {
	o := c.Objective
	for f, holds := range map[section.Fact]bool{
		section.FusionLoss:      o.fuses(),
		section.PatchLoss:       o.TCL.Local || o.comparesTokens() || o.Captioning.Weight > 0,
		section.TeacherFeatures: o.distils() || o.ADCL.Weight > 0 || c.GeometricQueue(),
		section.LearnedMetric:   c.UsesMetric(),
		section.FeatureBatches:  c.AccumulatesFeatures(),
		section.Dropout:         c.JointPairs() && o.SentencePairs.Dropout > 0,
	} {
		held[f] = held[f] || holds
	}
}
