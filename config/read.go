package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/config/section"
)

// lacks says in words with what something reads a key or section where nothing does in v, a view of c: with what the
// outermost one around it is read that is not. What is read has no words.
func (c *Config) lacks(p *place, v *section.View) string {
	if p.around != nil {
		if with := c.lacks(p.around, v); with != "" {
			return with
		}
		if s := p.around; len(s.switches) > 0 && !slices.Contains(s.switches, p.path) {
			if f, _ := c.at(s.path); !section.On(f.pointer()) {
				return s.switched
			}
		}
	}
	if p.when != nil && !p.when.Holds(v) {
		return p.when.With()
	}
	return ""
}

// ReadWith says in words with what a key or section is read that has a condition of its own, else it is empty.
func ReadWith(path string) string {
	switch p := ofConfig().at[path]; {
	case p.when != nil:
		return p.when.With()
	case p.around != nil && !slices.Contains(p.around.switches, path):
		return p.around.switched
	}
	return ""
}

// Unread is a key that is not at its default and that nothing reads in this configuration.
type Unread struct {
	Path string
	With string // in words, with what it is read
}

// Unread lists the keys that were set and that nothing reads, in the order of the documentation.
func (c *Config) Unread() (list []Unread) {
	c = c.settled()
	v, defaults := c.View(), c.defaults()
	for _, f := range c.leaves() {
		if alike(defaults.value(f.path), f.value) || replaced(c, f.path) {
			continue
		}
		if with := c.lacks(f.place, v); with != "" {
			list = append(list, Unread{f.path, with})
		}
	}
	return list
}

// notRead is a line for each group of keys that lack the same.
func (c *Config) notRead() (lines []string) {
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
