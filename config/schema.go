package config

import (
	"reflect"
	"slices"
	"strings"
	"sync"
)

// field is one key of the schema: a leaf or a section.
type field struct {
	path  string
	value reflect.Value // settable
	tag   reflect.StructTag
}

func (f field) section() bool { return f.value.Kind() == reflect.Struct }

// fields lists the keys of c in the order of the structs, sections before their content.
func fields(c *Config) []field {
	v := reflect.ValueOf(c).Elem()
	list := make([]field, len(places()))
	for i, p := range places() {
		list[i] = field{p.path, v.FieldByIndex(p.index), p.tag}
	}
	for _, a := range c.Added {
		v := reflect.ValueOf(a.Section).Elem()
		list = append(list, field{path: a.Path, value: v})
		for _, p := range below(place{path: a.Path}, v.Type()) {
			list = append(list, field{p.path, v.FieldByIndex(p.index), p.tag})
		}
	}
	return list
}

// sections lists the sections of c among its fields.
func sections(c *Config) []field {
	v := reflect.ValueOf(c).Elem()
	list := make([]field, 0, len(sectionPlaces())+len(c.Added))
	for _, p := range sectionPlaces() {
		list = append(list, field{p.path, v.FieldByIndex(p.index), p.tag})
	}
	for _, a := range c.Added {
		list = append(list, field{path: a.Path, value: reflect.ValueOf(a.Section).Elem()})
	}
	return list
}

// sectionPlaces lists the places of sections.
var sectionPlaces = sync.OnceValue(func() []place {
	var c Config
	return slices.DeleteFunc(slices.Clone(places()), func(p place) bool {
		return reflect.ValueOf(&c).Elem().FieldByIndex(p.index).Kind() != reflect.Struct
	})
})

// sectionAt returns the pointer to the section at a path.
func (c *Config) sectionAt(path string) (any, bool) {
	for _, f := range sections(c) {
		if f.path == path {
			return f.value.Addr().Interface(), true
		}
	}
	return nil, false
}

// place is where a key stands in every Config.
type place struct {
	path  string
	index []int // of reflect.Value.FieldByIndex
	tag   reflect.StructTag
}

// places lists those of all keys as fields does. They are the same for every Config, and
// whoever checks many asks often.
var places = sync.OnceValue(func() []place { return below(place{}, reflect.TypeFor[Config]()) })

// placeOf maps every dotted path to its place.
var placeOf = sync.OnceValue(func() map[string]place {
	m := make(map[string]place, len(places()))
	for _, p := range places() {
		m[p.path] = p
	}
	return m
})

// below lists the keys of the section of type t at a place.
func below(at place, t reflect.Type) (list []place) {
	for _, f := range reflect.VisibleFields(t) { // those of embedded structs too
		name := f.Tag.Get("toml")
		if name == "" || name == "-" { // no key
			continue
		}
		p := place{strings.TrimPrefix(at.path+"."+name, "."), slices.Concat(at.index, f.Index), f.Tag}
		list = append(list, p)
		if f.Type.Kind() == reflect.Struct {
			list = append(list, below(p, f.Type)...)
		}
	}
	return list
}

// leaves lists the keys of c that hold values, in the order of the structs.
func leaves(c *Config) []field {
	return slices.DeleteFunc(fields(c), field.section)
}

// schema maps every dotted path of c, sections included, to its field.
func schema(c *Config) map[string]reflect.Value {
	m := make(map[string]reflect.Value, len(places()))
	for _, f := range fields(c) {
		m[f.path] = f.value
	}
	return m
}

// Paths returns the dotted path of every key that holds a value, in the order
// of the documentation.
func Paths() []string {
	var c Config
	var paths []string
	for _, f := range leaves(&c) {
		paths = append(paths, f.path)
	}
	return paths
}

// Get returns the value at a dotted path, and whether there is such a key.
func (c Config) Get(path string) (any, bool) {
	p, ok := placeOf()[path]
	if !ok {
		return c.addedValue(path)
	}
	v := reflect.ValueOf(&c).Elem().FieldByIndex(p.index)
	if v.Kind() == reflect.Struct {
		return nil, false
	}
	return v.Interface(), true
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
	for _, f := range fields(l.config) {
		k := f.path
		d := distance(path, k)
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

// distance is the number of edits (insert, delete, replace, swap of neighbours)
// that turn a into b.
func distance(a, b string) int {
	// Rows i-2, i-1 and i of the dynamic programme over prefixes.
	prev2, prev, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], prev2[j-2]+1)
			}
		}
		prev2, prev, row = prev, row, prev2
	}
	return prev[len(b)]
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
func clearReplaced(fields map[string]reflect.Value, set map[string]bool) {
	for _, g := range groups {
		chosen := slices.ContainsFunc(g.paths, func(p string) bool { return set[p] && !fields[p].IsZero() })
		for _, p := range g.paths {
			if chosen && !set[p] {
				fields[p].SetZero()
			}
		}
	}
}

// replaced says whether the key at path is a unit of 0 in the place of which another one is set.
func replaced(c *Config, path string) bool {
	set := func(p string) bool { v, _ := c.Get(p); return !reflect.ValueOf(v).IsZero() }
	return !set(path) && slices.ContainsFunc(groups, func(g group) bool {
		return slices.Contains(g.paths, path) && slices.ContainsFunc(g.paths, set)
	})
}
