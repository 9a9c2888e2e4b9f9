package section

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Checker collects the first problem of each key. A key without a dot is one of the section that is checked.
type Checker struct {
	*View
	Errs   Errors
	failed map[string]bool
	at     string // path of the section that is checked
}

// NewChecker returns a checker of the keys of a configuration.
func NewChecker(v *View) *Checker { return &Checker{View: v, failed: map[string]bool{}} }

// Enter makes keys without a dot those of the section at path, and returns k.
func (k *Checker) Enter(path string) *Checker {
	k.at = path
	return k
}

// Path returns the dotted path of a key.
func (k *Checker) Path(key string) string {
	if k.at == "" || strings.Contains(key, ".") {
		return key
	}
	return k.at + "." + key
}

// Require records a problem of a key unless ok.
func (k *Checker) Require(key string, ok bool, msg string, hint ...string) {
	if ok || k.failed[k.Path(key)] {
		return
	}
	path := k.Path(key)
	k.failed[path] = true
	k.Errs = append(k.Errs, &Error{Path: path, Value: k.Value(key), Msg: msg, Hint: strings.Join(hint, " ")})
}

// Training is Require of what training alone reads.
func (k *Checker) Training(key string, ok bool, msg string, hint ...string) {
	n := len(k.Errs)
	k.Require(key, ok, msg, hint...)
	for _, e := range k.Errs[n:] {
		e.Training = true
	}
}

// Needs requires key to be 0, false or empty unless all facts hold, and says what would give the one that does not.
func (k *Checker) Needs(key string, needs ...Fact) {
	for _, f := range needs {
		if k.Has(f) {
			continue
		}
		msg := "must be 0"
		switch k.Value(key).(type) {
		case bool:
			msg = "must be false"
		case string:
			msg = "must be empty"
		}
		why, cure := k.Lack(f, needs...)
		k.Require(key, false, msg, why+": "+cure)
	}
}

// Value returns the value of a key.
func (k *Checker) Value(key string) any { return k.of(key).Interface() }

func (k *Checker) of(key string) reflect.Value { return k.value(k.Path(key)) }

// Number returns the value of a key as a float64.
func (k *Checker) Number(key string) float64 {
	v := k.of(key)
	if v.CanInt() {
		return float64(v.Int())
	}
	return v.Float()
}

// Positive requires numbers above 0.
func (k *Checker) Positive(keys ...string) {
	for _, p := range keys {
		k.Require(p, k.Number(p) > 0, "must be > 0")
	}
}

// NotNegative requires numbers of at least 0.
func (k *Checker) NotNegative(keys ...string) {
	for _, p := range keys {
		k.Require(p, k.Number(p) >= 0, "must be >= 0")
	}
}

// BelowOne requires values in [0, 1).
func (k *Checker) BelowOne(keys ...string) {
	for _, p := range keys {
		v := k.Number(p)
		k.Require(p, v >= 0 && v < 1, "must be at least 0 and below 1")
	}
}

// Share requires values in [0, 1].
func (k *Checker) Share(keys ...string) { k.Between(0, 1, keys...) }

// Between requires numbers in [least, most].
func (k *Checker) Between(least, most float64, keys ...string) {
	for _, p := range keys {
		v := k.Number(p)
		k.Require(p, v >= least && v <= most, fmt.Sprintf("must be between %v and %v", least, most))
	}
}

// OneOf requires one of the allowed values.
func (k *Checker) OneOf(key string, allowed ...string) {
	k.Require(key, slices.Contains(allowed, k.of(key).String()),
		"must be one of "+strings.Join(allowed, ", "))
}

// OneOfOrEmpty is OneOf for a key whose empty value stands for one of them.
func (k *Checker) OneOfOrEmpty(key string, allowed ...string) {
	v := k.of(key).String()
	k.Require(key, v == "" || slices.Contains(allowed, v), "must be empty or one of "+strings.Join(allowed, ", "))
}
