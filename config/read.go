package config

import (
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data/source"
)

// readSections lists the sections of c in the order of the documentation, each before those
// in it, without those of training in steps where the system has none.
func readSections(c *Config) (list []field) {
	idle := "" // section that is left out with all in it
	for _, f := range fields(c) {
		switch {
		case !f.section() || idle != "" && strings.HasPrefix(f.path, idle):
		case c.Has(section.Fitted) && (f.tag.Get("read") == "steps" || f.tag.Get("when") == "steps"):
			idle = f.path + "."
		default:
			list = append(list, f)
		}
	}
	return list
}

// reading is when something reads a key.
type reading struct {
	condition
	when *section.Condition // in place of holds
}

// condition returns that of the tags when and read, and whether there is one.
func (f field) condition() (reading, bool) {
	if text := f.tag.Get("when"); text != "" {
		when := when(text, around(f.path))
		return reading{condition{with: when.With()}, &when}, true
	}
	name := f.tag.Get("read")
	x, known := conditions[name]
	if name != "" && !known {
		panic("config: " + f.path + ": the tag read names no condition: " + name)
	}
	return reading{condition: x}, known
}

// met says whether a condition is, with these facts; an empty one always is.
func (x reading) met(c *Config, held map[section.Fact]bool) bool {
	if x.when != nil {
		return x.when.Holds(c.Get, func(f section.Fact) bool { return held[f] })
	}
	return x.holds == nil || x.holds(c)
}

// parsed are conditions by their text and the section that they are of.
var parsed sync.Map

// when returns the condition of a tag of a key of the section at a path.
func when(text, at string) section.Condition {
	key := [2]string{text, at}
	if c, ok := parsed.Load(key); ok {
		return c.(section.Condition)
	}
	c, err := section.When(text, at)
	if err != nil {
		panic("config: [" + at + "]: " + err.Error())
	}
	parsed.Store(key, c)
	return c
}

// switches returns the condition under which a section reads its keys that can be off, by its path.
func (f field) switches() (x reading, can bool) {
	if !f.section() {
		return x, false
	}
	if _, can = f.value.Addr().Interface().(section.Switched); can {
		at := f.path
		x.condition = condition{at + ".weight > 0", func(c *Config) bool {
			s, _ := c.sectionAt(at)
			return s.(section.Switched).On()
		}}
	}
	return x, can
}

// ReadWith says in words with what a key or section is read that has a condition of its own,
// else it is empty.
func ReadWith(path string) string {
	var c Config
	var on reading
	for _, f := range fields(&c) {
		if x, can := f.switches(); can && f.path == around(path) && path != f.path+".weight" {
			on = x
		}
		if f.path == path {
			if x, own := f.condition(); own {
				return x.with
			}
			return on.with
		}
	}
	return ""
}

// Unread is a key that has not its default and that nothing reads in this configuration.
type Unread struct {
	Path string
	With string // in words, with what it is read
}

// Unread lists the keys that were set and that nothing reads, in the order of the
// documentation.
func (c Config) Unread() (list []Unread) {
	of := map[string]reading{}  // by section and key, those around it included
	ons := map[string]reading{} // by section that can be off
	set := map[string]bool{}
	facts := c.facts()
	defaults := Default()
	for _, d := range c.NotDefault() {
		was, _ := defaults.Get(d.Path)
		now, _ := c.Get(d.Path)
		set[d.Path] = !reflect.DeepEqual(was, now) && !replaced(&c, d.Path) // else it follows another key
	}
	for _, f := range fields(&c) {
		x, own := f.condition()
		outer := of[around(f.path)]
		if on, can := ons[around(f.path)]; can && f.path != around(f.path)+".weight" && outer.met(&c, facts.Held) {
			outer = on
		}
		if !own || !outer.met(&c, facts.Held) {
			x = outer
		}
		of[f.path] = x
		if on, can := f.switches(); can {
			ons[f.path] = on
		}
		if set[f.path] && !x.met(&c, facts.Held) {
			list = append(list, Unread{f.path, x.with})
		}
	}
	return list
}

// notRead is a line for each group of keys that lack the same.
func (c Config) notRead() (lines []string) {
	list := c.Unread()
	for i := 0; i < len(list); {
		u, names := list[i], []string{list[i].Path}
		for i++; i < len(list) && list[i].With == u.With && around(list[i].Path) == around(u.Path); i++ {
			names = append(names, list[i].Path[len(around(u.Path))+1:])
		}
		if n := len(names) - 1; n == 0 {
			lines = append(lines, fmt.Sprintf("%s is set but nothing reads it: it is read with %s", u.Path, u.With))
		} else {
			lines = append(lines, fmt.Sprintf("%s and %s are set but nothing reads them: they are read with %s", strings.Join(names[:n], ", "), names[n], u.With))
		}
	}
	return lines
}

// around returns the path of the section that a key or section is in.
func around(path string) string { return path[:max(strings.LastIndexByte(path, '.'), 0)] }

// ReadsSecondView says whether a training step reads the second view of data.views.
func (c Config) ReadsSecondView() bool {
	g := c.Objective.Geometric
	return c.Has(section.Views) || c.Momentum.Enabled && (c.Objective.distils() || c.Objective.ADCL.Weight > 0 || g.Weight > 0 && g.Modalities != "text")
}

// readsScore says whether something compares images and texts by the score of objective.itc.
func (c *Config) readsScore() bool {
	o := c.Objective
	return o.contrasts() || o.comparesBatch() || o.KLOT.Weight > 0 || o.ITM.Weight > 0 && o.ITM.Negatives == "score" ||
		(c.Has(section.Captions) || c.Has(section.Identities)) && c.Eval.Score == "train"
}

func (o Objective) contrasts() bool { return o.ITC.Weight > 0 || o.ITC.InBatchWeight > 0 }
func (o Objective) fuses() bool {
	t := o.task()
	return o.ITM.Weight > 0 || o.MLM.Weight > 0 || t != nil && t.fuses
}

// distils says whether a loss has soft targets where objective.distill.alpha is above 0.
func (o Objective) distils() bool {
	t := o.task()
	return o.ITC.Weight > 0 || (o.MLM.Weight > 0 || t != nil && t.soft) && o.Distill.Alpha > 0
}

// readsMix says whether a score that is computed is named by the geodesic alone.
func (o Objective) readsMix() bool {
	const kind = ScoreGeodesic
	return len(o.ITC.Scores) == 0 && o.ITC.Score == kind || o.ITM.Weight > 0 && o.ITM.Negatives == kind ||
		o.ITC.TargetScore == kind && o.ITC.Weight > 0 && o.Distill.Alpha > 0
}

// ReadsImageFiles says whether images are decoded: those of the data, or those of zero-shot classification.
func (c *Config) ReadsImageFiles() bool {
	return c.Has(section.Words) && c.Eval.ZeroShot.Images != "" || !c.Data.Drawn() && c.Data.Kind != "pairs" && c.Data.Kind != "sentences" && c.Data.Kind != source.SentencePairsKind && (c.Data.Kind != "regions" || c.Data.Regions.Pictures != "")
}
