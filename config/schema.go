package config

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/internal/words"
)

// place is a key or a section and where it stands in every Config, or in a section of another module.
type place struct {
	path   string
	index  []int // of reflect.Value.FieldByIndex
	tag    reflect.StructTag
	around *place             // section that it is in, nil of Config
	when   *section.Condition // what must hold for something to read it, nil: nothing of its own
	most   float64            // largest value, where the tag max says one

	section  bool
	switches []string // paths of the keys that switch a section, which are read always
	switched string   // with what its other keys are read, in words
}

// field is a place in a configuration.
type field struct {
	*place
	value reflect.Value // settable
}

// shape is what is known of the keys of a struct.
type shape struct {
	all, sections, keys []*place // sections before their content
	at                  map[string]*place
}

// shapes are those of Config and of sections of other modules by path and type: whoever checks many configurations
// asks often.
var shapes sync.Map

// shapeOf returns the shape of a section at a path.
func shapeOf(path string, t reflect.Type) *shape {
	type key struct {
		path string
		of   reflect.Type
	}
	if s, ok := shapes.Load(key{path, t}); ok {
		return s.(*shape)
	}
	s := &shape{at: map[string]*place{}}
	if path == "" {
		s.below(nil, t)
	} else {
		s.add(&place{path: path, around: ofConfig().at[around(path)]}, t)
	}
	shapes.Store(key{path, t}, s)
	return s
}

// ofConfig is the shape of every Config.
func ofConfig() *shape { return shapeOf("", reflect.TypeFor[Config]()) }

// below adds the keys of the section of type t at a place.
func (s *shape) below(at *place, t reflect.Type) {
	for _, f := range reflect.VisibleFields(t) { // those of embedded structs too
		name := f.Tag.Get("toml")
		if name == "" || name == "-" { // no key
			continue
		}
		p := &place{path: name, index: f.Index, tag: f.Tag, around: at}
		if len(f.Index) > 1 { // what the tag of an embedded struct says is of all its keys
			p.tag += " " + t.Field(f.Index[0]).Tag
		}
		if at != nil {
			p.path, p.index = at.path+"."+name, slices.Concat(at.index, f.Index)
		}
		s.add(p, f.Type)
	}
}

// add adds a key or a section of type t, with what its tags say.
func (s *shape) add(p *place, t reflect.Type) {
	if text := p.tag.Get("when"); text != "" {
		c, err := section.When(text, around(p.path))
		if err != nil {
			panic("config: " + p.path + ": " + err.Error())
		}
		p.when = &c
	}
	if text := p.tag.Get("max"); text != "" {
		var err error
		if p.most, err = strconv.ParseFloat(text, 64); err != nil {
			panic("config: " + p.path + ": the tag max is not a number: " + text)
		}
	}
	p.section = t.Kind() == reflect.Struct
	s.all, s.at[p.path] = append(s.all, p), p
	if !p.section {
		s.keys = append(s.keys, p)
		return
	}
	s.sections = append(s.sections, p)
	if x, can := reflect.New(t).Interface().(section.Switched); can {
		for _, key := range section.Switches(x) {
			p.switches = append(p.switches, p.path+"."+key)
		}
		p.switched = strings.Join(p.switches, " or ")
		if f, _ := t.FieldByName("Weight"); len(p.switches) > 0 &&
			strings.HasSuffix(p.switches[0], "."+f.Tag.Get("toml")) {
			p.switched += " > 0"
		}
	}
	s.below(p, t)
}

// around returns the path of the section that a key or section is in.
func around(path string) string { return path[:max(strings.LastIndexByte(path, '.'), 0)] }

// fields lists the places of c that of picks, in the order of the structs, those of other modules last.
func (c *Config) fields(of func(*shape) []*place) (list []field) {
	v, places := reflect.ValueOf(c).Elem(), of(ofConfig())
	list = make([]field, len(places), len(places)+len(c.Added))
	for i, p := range places {
		list[i] = field{p, v.FieldByIndex(p.index)}
	}
	for _, a := range c.Added {
		v := reflect.ValueOf(a.Section).Elem()
		for _, p := range of(shapeOf(a.Path, v.Type())) {
			list = append(list, field{p, v.FieldByIndex(p.index)})
		}
	}
	return list
}

func everything(s *shape) []*place { return s.all }

// leaves lists the keys of c that hold values.
func (c *Config) leaves() []field { return c.fields(func(s *shape) []*place { return s.keys }) }

// sections lists the sections of c, each before those in it.
func (c *Config) sections() []field { return c.fields(func(s *shape) []*place { return s.sections }) }

// at returns the key or section at a dotted path, and whether there is one.
func (c *Config) at(path string) (f field, ok bool) {
	if p, ok := ofConfig().at[path]; ok {
		return field{p, reflect.ValueOf(c).Elem().FieldByIndex(p.index)}, true
	}
	for _, a := range c.Added {
		v := reflect.ValueOf(a.Section).Elem()
		if p, ok := shapeOf(a.Path, v.Type()).at[path]; ok {
			return field{p, v.FieldByIndex(p.index)}, true
		}
	}
	return f, false
}

// value returns the value at a path; one that is not there is a mistake of the program.
func (c *Config) value(path string) reflect.Value {
	f, ok := c.at(path)
	if !ok {
		panic("config: there is no key " + path)
	}
	return f.value
}

// pointer returns the pointer to the section that a field is.
func (f field) pointer() any { return f.value.Addr().Interface() }

// Paths returns the dotted path of every key that holds a value, in the order
// of the documentation.
func Paths() (paths []string) {
	for _, p := range ofConfig().keys {
		paths = append(paths, p.path)
	}
	return paths
}

// Get returns the value at a dotted path, and whether there is such a key.
func (c *Config) Get(path string) (any, bool) {
	f, ok := c.at(path)
	if !ok || f.section {
		return nil, false
	}
	return f.value.Interface(), true
}

// longestKey is the length in bytes above which a text is like no key.
const longestKey = 200

// nearest returns a hint that names the known key closest to an unknown one. A
// key that exists in another section counts as close: the commonest mistake is
// the right name in the wrong place.
func (l *loader) nearest(path string) string {
	if len(path) > longestKey {
		return "docs/config.md lists the keys"
	}
	last := path[strings.LastIndexByte(path, '.')+1:]
	best, bestDist := "", len(path)/2+1
	for _, f := range l.config.fields(everything) {
		k := f.path
		d := words.Edits(path, k)
		if !strings.HasPrefix(path, k) && last == k[strings.LastIndexByte(k, '.')+1:] {
			d = min(d, 2)
		}
		if d < bestDist {
			best, bestDist = k, d
		}
	}
	if best == "" {
		return "docs/config.md lists the keys"
	}
	return "did you mean " + best + "?"
}

// group is a set of keys that give one quantity in different units.
type group struct {
	paths []string
	need  bool // exactly one must be set, not at most one
}

// groups lists the quantities that can be given in more than one unit.
var groups = []group{
	{[]string{"train.max_steps", "train.max_epochs", "train.max_samples", "train.max_minutes"}, true},
	{[]string{"schedule.warmup_steps", "schedule.warmup_epochs", "schedule.warmup_percent"}, false},
	{[]string{"objective.distill.ramp_steps", "objective.distill.ramp_epochs"}, false},
	{[]string{"objective.hinge.warmup_steps", "objective.hinge.warmup_epochs"}, false},
}

// clearReplaced zeroes the units that a layer of configuration replaced: a file
// that sets train.max_steps overrides the default train.max_epochs, and an
// override on the command line overrides both. set holds the keys the layer set.
func (c *Config) clearReplaced(set map[string]bool) {
	for _, g := range groups {
		chosen := slices.ContainsFunc(g.paths, func(p string) bool { return set[p] && !c.value(p).IsZero() })
		for _, p := range g.paths {
			if chosen && !set[p] {
				c.value(p).SetZero()
			}
		}
	}
}

// replaced says whether the key at path is a unit of 0 beside which another one is set.
func replaced(c *Config, path string) bool {
	set := func(p string) bool { return !c.value(p).IsZero() }
	return !set(path) && slices.ContainsFunc(groups, func(g group) bool {
		return slices.Contains(g.paths, path) && slices.ContainsFunc(g.paths, set)
	})
}
