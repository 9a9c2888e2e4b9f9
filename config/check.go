package config

import (
	"cmp"
	"math"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/geoalign/geoalign/config/section"
)

// Error is one problem of a configuration, Errors all of them.
type (
	Error  = section.Error
	Errors = section.Errors
)

// Show prints a value of a configuration for messages.
func Show(v any) string { return section.Show(v) }

// Validate checks every value and the combinations that cannot work. The error
// is an Errors with all problems, nil if there are none. It looks at no file.
func (c *Config) Validate() error { return c.problems().OrNil() }

func (c *Config) problems() Errors {
	c = c.settled()
	k := section.NewChecker(c.View())
	for _, f := range c.leaves() {
		switch f.value.Kind() {
		case reflect.Float64:
			k.Require(f.path, isFinite(f.value.Float()), "must be a finite number")
		case reflect.String: // a file can hold no other text
			k.Require(f.path, utf8.ValidString(f.value.String()), "must be UTF-8 text")
		case reflect.Slice:
			switch list := f.value.Interface().(type) {
			case []float64:
				k.Require(f.path, !slices.ContainsFunc(list, func(v float64) bool { return !isFinite(v) }),
					"must be finite numbers")
			case []string:
				k.Require(f.path, !slices.ContainsFunc(list, func(s string) bool { return !utf8.ValidString(s) }),
					"must be UTF-8 text")
			}
		}
	}
	idle := "" // section that training in steps alone reads, with all in it, in a system without steps
	for _, f := range c.sections() {
		s := f.pointer()
		switch {
		case idle != "" && strings.HasPrefix(f.path, idle):
		case strings.HasPrefix(f.tag.Get("when"), string(section.Steps)) && !f.when.Holds(k.View):
			idle = f.path + "."
		default:
			k.Enter(f.path)
			switches(k, s)
			if x, ok := s.(section.Checked); ok {
				x.Check(k)
			}
			if n, ok := s.(section.Needer); ok && section.On(s) {
				k.Needs(cmp.Or(append(section.Switches(s), "weight")...), n.Needs()...)
			}
		}
	}
	k.Enter("")
	c.checkMixed(k)
	c.checkTokenScores(k)
	c.checkLimits(k)
	checkUnits(k)
	c.checkProducts(k)
	return k.Errs
}

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// switches checks the weights that switch a component on.
func switches(k *section.Checker, s any) {
	if _, can := s.(section.Switched); !can {
		return
	}
	for _, key := range section.Switches(s) {
		if _, ok := k.Value(key).(float64); ok {
			k.NotNegative(key)
		}
	}
}

// checkUnits checks the quantities that can be given in one of several units.
func checkUnits(k *section.Checker) {
	for _, g := range groups {
		var set []string
		for _, p := range g.paths {
			if k.Number(p) > 0 {
				set = append(set, p)
			}
		}
		if len(set) > 1 {
			k.Require(set[1], false, "must not be set together with "+set[0], "set one of "+strings.Join(g.paths, ", "))
		}
		if g.need && len(set) == 0 {
			k.Require(g.paths[0], false, "one duration must be > 0", "set one of "+strings.Join(g.paths, ", "))
		}
	}
}
