package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data/source"
)

// readSections lists the sections of c in the order of the documentation, each before those
// in it, without those of training in steps where the system has none.
func readSections(c *Config) (list []field) {
	idle, fitted := "", c.Has(section.Fitted) // section that is left out with all in it
	for _, f := range fields(c) {
		switch {
		case !f.section() || idle != "" && strings.HasPrefix(f.path, idle):
		case fitted && (f.tag.Get("read") == "steps" || f.tag.Get("when") == "steps"):
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

// met says whether a condition is, in a view of c; an empty one always is.
func (x reading) met(c *Config, v *section.View) bool {
	if x.when != nil {
		return x.when.Holds(c.Get, v.Has)
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

// switches returns the condition under which a section reads its keys that can be off, and the paths of those that
// switch it, which are read always; none of a section without such keys.
func (f field) switches() (x reading, keys []string) {
	if !f.section() {
		return x, nil
	}
	s := f.value.Addr().Interface()
	if _, can := s.(section.Switched); !can {
		return x, nil
	}
	for _, key := range section.Switches(s) {
		keys = append(keys, f.path+"."+key)
	}
	x.with = strings.Join(keys, " or ")
	if field, _ := f.value.Type().FieldByName("Weight"); len(keys) > 0 &&
		strings.HasSuffix(keys[0], "."+field.Tag.Get("toml")) {
		x.with += " > 0"
	}
	at := f.path
	x.holds = func(c *Config) bool {
		s, _ := c.sectionAt(at)
		return section.On(s)
	}
	return x, keys
}

// ReadWith says in words with what a key or section is read that has a condition of its own,
// else it is empty.
func ReadWith(path string) string {
	var c Config
	var on reading
	for _, f := range fields(&c) {
		if f.path == around(path) {
			if x, keys := f.switches(); len(keys) > 0 && !slices.Contains(keys, path) {
				on = x
			}
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
	always := map[string]bool{} // keys that switch one
	set := map[string]bool{}
	v, defaults := c.View(), Default()
	for _, d := range c.NotDefault() {
		was, _ := defaults.Get(d.Path)
		now, _ := c.Get(d.Path)
		set[d.Path] = !reflect.DeepEqual(was, now) && !replaced(&c, d.Path) // else it follows another key
	}
	for _, f := range fields(&c) {
		if !f.section() && !set[f.path] {
			continue
		}
		x, own := f.condition()
		outer := of[around(f.path)]
		if on, can := ons[around(f.path)]; can && !always[f.path] && outer.met(&c, v) {
			outer = on
		}
		if !own || !outer.met(&c, v) {
			x = outer
		}
		of[f.path] = x
		if on, keys := f.switches(); len(keys) > 0 {
			ons[f.path] = on
			for _, key := range keys {
				always[key] = true
			}
		}
		if set[f.path] && !x.met(&c, v) {
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
			lines = append(lines, fmt.Sprintf("%s and %s are set but nothing reads them: they are read with %s",
				strings.Join(names[:n], ", "), names[n], u.With))
		}
	}
	return lines
}

// around returns the path of the section that a key or section is in.
func around(path string) string { return path[:max(strings.LastIndexByte(path, '.'), 0)] }

// ReadsSecondView says whether a training step reads the second view of data.views.
func (c Config) ReadsSecondView() bool { return c.Has(section.SecondView) }

// ReadsImageFiles says whether images are decoded: those of the data, or those of zero-shot classification.
func (c *Config) ReadsImageFiles() bool {
	return c.Has(section.Words) && c.Eval.ZeroShot.Images != "" || !c.Data.Drawn() && c.Data.Kind != "pairs" &&
		c.Data.Kind != "sentences" && c.Data.Kind != source.SentencePairsKind &&
		(c.Data.Kind != "regions" || c.Data.Regions.Pictures != "")
}
