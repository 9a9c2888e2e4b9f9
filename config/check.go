package config

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// Validate checks every value and the combinations that cannot work. The error
// is an Errors with all problems, nil if there are none. It looks at no file.
func (c Config) Validate() error { return c.problems().orNil() }

func (c Config) problems() Errors {
	k := &checker{fields: schema(&c), failed: map[string]bool{}}
	for _, f := range leaves(&c) {
		if f.value.Kind() == reflect.Float64 {
			k.require(f.path, isFinite(f.value.Float()), "must be a finite number")
		}
		switch v := f.value.Interface().(type) { // a file can hold no other text
		case string:
			k.require(f.path, utf8.ValidString(v), "must be UTF-8 text")
		case []float64:
			k.require(f.path, !slices.ContainsFunc(v, func(v float64) bool { return !isFinite(v) }), "must be finite numbers")
		case []string:
			k.require(f.path, !slices.ContainsFunc(v, func(s string) bool { return !utf8.ValidString(s) }), "must be UTF-8 text")
		}
	}
	for _, s := range readSections(&c) {
		s.check(k, &c)
	}
	k.limits(&c)
	k.units()
	k.products(&c)
	return k.errs
}

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// checker collects the first problem of each key.
type checker struct {
	fields map[string]reflect.Value
	failed map[string]bool
	errs   Errors
}

// require records a problem of the key at path unless ok.
func (k *checker) require(path string, ok bool, msg string, hint ...string) {
	if ok || k.failed[path] {
		return
	}
	k.failed[path] = true
	k.errs = append(k.errs, &Error{Path: path, Value: k.fields[path].Interface(), Msg: msg, Hint: strings.Join(hint, " ")})
}

// training is require of what training alone reads.
func (k *checker) training(path string, ok bool, msg string, hint ...string) {
	n := len(k.errs)
	k.require(path, ok, msg, hint...)
	for _, e := range k.errs[n:] {
		e.Training = true
	}
}

// number returns the value at path as a float64.
func (k *checker) number(path string) float64 {
	switch v := k.fields[path]; v.Kind() {
	case reflect.Int:
		return float64(v.Int())
	default:
		return v.Float()
	}
}

func (k *checker) positive(paths ...string) {
	for _, p := range paths {
		k.require(p, k.number(p) > 0, "must be > 0")
	}
}

func (k *checker) notNegative(paths ...string) {
	for _, p := range paths {
		k.require(p, k.number(p) >= 0, "must be >= 0")
	}
}

// belowOne requires values in [0, 1).
func (k *checker) belowOne(paths ...string) {
	for _, p := range paths {
		v := k.number(p)
		k.require(p, v >= 0 && v < 1, "must be at least 0 and below 1")
	}
}

func (k *checker) oneOf(path string, allowed ...string) {
	k.require(path, slices.Contains(allowed, k.fields[path].String()), "must be one of "+strings.Join(allowed, ", "))
}

// oneOfOrEmpty is oneOf for a key whose empty value stands for one of them.
func (k *checker) oneOfOrEmpty(path string, allowed ...string) {
	k.require(path, k.fields[path].String() == "" || slices.Contains(allowed, k.fields[path].String()), "must be empty or one of "+strings.Join(allowed, ", "))
}

// units checks the quantities that can be given in one of several units.
func (k *checker) units() {
	for _, g := range groups {
		var set []string
		for _, p := range g.paths {
			if k.number(p) > 0 {
				set = append(set, p)
			}
		}
		if len(set) > 1 {
			k.require(set[1], false, "must not be set together with "+set[0], "set one of "+strings.Join(g.paths, ", "))
		}
		if g.need && len(set) == 0 {
			k.require(g.paths[0], false, "one duration must be > 0", "set one of "+strings.Join(g.paths, ", "))
		}
	}
}
