package config

import (
	"bytes"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/geoalign/geoalign/config/section"
)

// Added is a section of another module, such as a loss of its own with its table.
type Added struct {
	Path    string // dotted path of the table, such as "objective.smoothed"
	Section any    // the pointer to its struct
}

// Add returns the section of type T that stands at a path, with its defaults. Give it to Load, Parse or ParseStored:
//
//	cfg, err := config.Load("run.toml", nil, config.Add[Smoothed]("objective.smoothed"))
func Add[T any](path string) Added {
	s := new(T)
	section.Default(s)
	return Added{path, s}
}

// sectionName is what a table of a section is called.
var sectionName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// add returns the defaults with further sections in them, each of which stands in a section of Config and has a name of
// its own.
func add(list []Added) (c Config, errs Errors) {
	c = Default()
	for _, a := range list {
		dot := strings.LastIndexByte(a.Path, '.')
		switch _, taken := c.at(a.Path); {
		case taken:
			errs = append(errs, &Error{Path: a.Path, Msg: "is registered twice", Hint: "give the section another name"})
			continue
		case !sectionName.MatchString(a.Path[dot+1:]):
			errs = append(errs, &Error{Path: a.Path, Msg: "is not a name of a section",
				Hint: "use lower-case letters, digits and _"})
			continue
		}
		if f, known := c.at(around(a.Path)); !known || !f.section {
			errs = append(errs, &Error{Path: a.Path, Msg: "stands in no section",
				Hint: `a loss is registered as "objective.NAME"`})
			continue
		}
		c.Added = append(c.Added, a.clone())
	}
	return c, errs
}

// clone returns a copy whose section is another one.
func (a Added) clone() Added {
	v := reflect.New(reflect.TypeOf(a.Section).Elem())
	v.Elem().Set(reflect.ValueOf(a.Section).Elem())
	return Added{a.Path, v.Interface()}
}

// own gives c added sections of its own, which those of the configuration that it was copied from share otherwise.
func (c *Config) own() {
	list := make([]Added, len(c.Added))
	for i, a := range c.Added {
		list[i] = a.clone()
	}
	c.Added = list
}

// encodeAdded writes the added sections as tables behind those of Config.
func (c *Config) encodeAdded(b *bytes.Buffer) error {
	for _, a := range c.Added {
		fmt.Fprintf(b, "\n[%s]\n", a.Path)
		enc := toml.NewEncoder(b)
		enc.Indent = ""
		if err := enc.Encode(a.Section); err != nil {
			return fmt.Errorf("config: encode %s: %w", a.Path, err)
		}
	}
	return nil
}

// fresh returns added sections with their defaults.
func fresh(added []Added) (list []Added) {
	for _, a := range added {
		s := reflect.New(reflect.TypeOf(a.Section).Elem()).Interface()
		section.Default(s)
		list = append(list, Added{a.Path, s})
	}
	return list
}
