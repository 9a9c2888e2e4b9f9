package config

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/objectives"
)

// Fixed says where a key keeps the value that a checkpoint was made with.
type Fixed int

// Each includes what comes before it in the use of a checkpoint: a run that goes on fixes
// the keys of all, one that only takes over parameters those of FixedMeaning.
const (
	Free         Fixed = iota
	FixedRun           // within a run: resume
	FixedModel         // the architecture: wherever the whole model is used
	FixedMeaning       // what the same parameters compute: wherever parameters are taken over
)

// fixedNames are the values of the tag fixed.
var fixedNames = map[string]Fixed{"": Free, "run": FixedRun, "model": FixedModel, "meaning": FixedMeaning}

// fixed says what the tag of a key does.
func (p *place) fixed() Fixed { return fixedNames[p.tag.Get("fixed")] }

// Difference is a key with another value in two configurations.
type Difference struct {
	Path     string
	Was, Now any
	Fixed    Fixed
	Harmless bool // the key changes nothing that a run computes
	Silent   bool // and is not worth a word
}

// Differences compares the configuration of a checkpoint, old, with another one. Values
// that stand for others are replaced: a width of 0 is what follows from it.
func Differences(old, now Config) []Difference {
	if old.Model.Head.Topology == now.Model.Head.Topology { // which 0 blocks follow
		for _, c := range []*Config{&old, &now} {
			space, _ := c.Model.Head.Space()
			c.Objective.GSSF.Blocks = c.Objective.GSSF.BlocksOf(space)
		}
	}
	if dim := now.Model.Head.Dim; old.Model.Head.Dim == dim { // which ranks and units of 0 follow
		for _, g := range []*objectives.GSSF{&old.Objective.GSSF, &now.Objective.GSSF} {
			g.Rank, g.Hidden = g.LowRank(dim), g.Units(dim)
		}
	}
	old, now = old.explicit(), now.explicit()
	return differences(&old, &now)
}

// NotDefault lists the keys of c that have not their default.
func (c *Config) NotDefault() []Difference { return differences(c.defaults(), c) }

// defaults returns the configuration that c would be if it said nothing.
func (c *Config) defaults() *Config {
	d := Default()
	d.Added = fresh(c.Added)
	return &d
}

// differences are those of keys that both have.
func differences(old, now *Config) (list []Difference) {
	for _, f := range now.leaves() {
		was, both := old.at(f.path)
		if !both || alike(was.value, f.value) {
			continue
		}
		change := f.tag.Get("change")
		list = append(list, Difference{Path: f.path, Was: was.value.Interface(), Now: f.value.Interface(),
			Fixed: f.fixed(), Harmless: change == "harmless" || change == "silent", Silent: change == "silent"})
	}
	return list
}

// alike says whether two values of a key are the same; a nil list is an empty one.
func alike(a, b reflect.Value) bool {
	if a.Kind() == reflect.Slice {
		return a.Len()+b.Len() == 0 || reflect.DeepEqual(a.Interface(), b.Interface())
	}
	return a.Equal(b)
}

// explicit replaces values that stand for another.
func (c Config) explicit() Config {
	for _, m := range []struct {
		hidden *int
		is     int
	}{{&c.Model.Image.MLP, c.Model.Image.Hidden()}, {&c.Model.Text.MLP, 4 * c.Model.Text.Width}} {
		if *m.hidden == 0 {
			*m.hidden = m.is
		}
	}
	return c
}

// Conflict is a key of a configuration that a checkpoint does not allow. With is what the
// checkpoint was made with, in words that follow "was made with". NoValue says that no value of
// the key is that of the checkpoint.
type Conflict struct {
	Path    string
	Now     any
	With    string
	NoValue bool
}

// Conflicts lists what keeps a checkpoint, made with old, from being used with now: to take
// over parameters (FixedMeaning), as a model (FixedModel), or to go on with its run
// (FixedRun).
func Conflicts(old, now Config, use Fixed) (list []Conflict) {
	if use <= FixedModel {
		list = append(list, scoreConflicts(old, now)...)
	}
	if use <= FixedRun {
		list = append(list, queueConflicts(old, now)...)
	}
	for _, d := range Differences(old, now) {
		if d.Fixed >= use {
			list = append(list, Conflict{Path: d.Path, Now: d.Now, With: Show(d.Was)})
		}
	}
	return list
}

// scoreConflicts lists the parameters of scores that only one of two configurations has.
func scoreConflicts(old, now Config) (list []Conflict) {
	learned := func(c Config) bool { return c.Has(section.Metric) && c.Objective.GSSF.Form != "cosine" }
	// else the form tells
	if before, after := learned(old), learned(now); before != after &&
		old.Has(section.Metric) != now.Has(section.Metric) {
		path := "objective.itc.scores"
		for _, f := range scoreFields(now) {
			if was, _ := old.Get(f.path); !reflect.DeepEqual(was, f.value.Interface()) {
				path = f.path
				break
			}
		}
		value, _ := now.Get(path)
		was, _ := old.Get(path)
		list = append(list, Conflict{Path: path, Now: value,
			With: fmt.Sprintf("%v and %s, which %s now", Show(was),
				either(before, "a learned metric", "no learned metric"),
				either(after, "a score reads", "no score reads"))})
	}
	own := func(c Config) bool { return c.Objective.Geodesic.Temperature > 0 && c.Has(section.Geodesic) }
	if before, after := own(old), own(now); before != after {
		list = append(list, Conflict{Path: "objective.geodesic.temperature", Now: now.Objective.Geodesic.Temperature,
			With: fmt.Sprintf("%v, %s", old.Objective.Geodesic.Temperature,
				either(before, "a temperature of the geodesic's own", "without a temperature of the geodesic's own"))})
	}
	return list
}

// scoreFields are the keys that name a score which is trained, the sum first.
func scoreFields(c Config) (list []field) {
	for _, path := range []string{"objective.itc.scores", "objective.itc.score", "objective.itc.target_score",
		"objective.itm.negatives"} {
		f, _ := c.at(path)
		list = append(list, f)
	}
	return list
}

// queueConflicts lists what the geometric term reads and the queue of a checkpoint lacks.
// A term that is switched off needs nothing.
func queueConflicts(old, now Config) []Conflict {
	lacks := func(other string) bool {
		has := func(c Config) bool {
			return c.Has(section.BackboneQueue) && c.Objective.Geometric.Modalities != other
		}
		return has(now) && !has(old)
	}
	if !lacks("image") && !lacks("text") {
		return nil
	}
	path := "objective.geometric.weight"
	if old.Has(section.BackboneQueue) {
		path = "objective.geometric.modalities"
	}
	value, _ := now.Get(path)
	was, _ := old.Get(path)
	return []Conflict{{Path: path, Now: value, With: Show(was) + ": its queue lacks the features before the head"}}
}

func either(yes bool, a, b string) string {
	if yes {
		return a
	}
	return b
}

// TextConflicts is Conflicts where a run of texts alone takes over the text tower of a checkpoint of another system:
// what the structure of that tower keeps from it. What is read of its states, and what stands beside it, may differ.
func TextConflicts(old, now Config) []Conflict {
	return towerConflicts("text", structure(old.Model.System, old.Model.Text.Style, encoders.StyleBERT),
		structure(now.Model.System, now.Model.Text.Style, encoders.StyleBERT), old, now)
}

// ImageConflicts is TextConflicts of a run of images alone and the image tower. One with several class tokens has no
// use there.
func ImageConflicts(old, now Config) []Conflict {
	list := towerConflicts("image", structure(old.Model.System, old.Model.Image.Style, encoders.StyleViT),
		structure(now.Model.System, now.Model.Image.Style, encoders.StyleViT), old, now)
	if s, err := old.Model.Head.Space(); err == nil && s.Tokens && s.Groups() > 1 {
		list = append(list, Conflict{Path: "model.head.topology", Now: now.Model.Head.Topology, NoValue: true,
			With: fmt.Sprintf("%s, which gives the image tower %d class tokens, and model.system %q reads one",
				Show(old.Model.Head.Topology), s.Groups(), now.Model.System)})
	}
	return list
}

// towerConflicts are those of one side, whose structure was one and is another.
func towerConflicts(side, was, is string, old, now Config) (list []Conflict) {
	section := "model." + side + "."
	if was != is {
		value, _ := now.Get(section + "style")
		c := Conflict{Path: section + "style", Now: value,
			With: either(side == "text", "a text", "an image") + " tower of "}
		if c.NoValue = was == structureMTOB; c.NoValue {
			c.With += fmt.Sprintf("model.system \"clip\" without %s, a structure that no style has", c.Path)
		} else {
			c.With += fmt.Sprintf("the structure %q, which is %q now", was, is)
		}
		list = append(list, c)
	}
	idle := map[string]bool{} // keys that a tower of this structure does not read
	for _, u := range append(old.Unread(), now.Unread()...) {
		idle[u.Path] = true
	}
	for _, d := range Differences(old, now) {
		if name, ok := strings.CutPrefix(d.Path, section); ok && !idle[d.Path] && d.Fixed >= FixedMeaning &&
			name != "style" && name != "pool" {
			list = append(list, Conflict{Path: d.Path, Now: d.Now, With: Show(d.Was)})
		}
	}
	return list
}

// structureMTOB is the structure of both towers of model.system "clip" without a style, those of clip-mtob.
const structureMTOB = "clip-mtob"

// structure names the structure of a tower: a style, or without one that of model.system "clip" or its own.
func structure(system, style, own string) string {
	if style == "" && system == "clip" {
		return structureMTOB
	}
	return cmp.Or(style, own)
}
