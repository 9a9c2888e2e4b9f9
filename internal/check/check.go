// Package check says in one line what most tests would say in three: that a call must not fail, or that it must.
//
//	m := check.Get(model.New(cfg, o))(t)
//	check.OK(t, m.After())
//	check.Fails(model.New(bad, o))(t, "model.system: must be one of")
package check

import (
	"strings"
	"testing"
)

// OK ends the test at the caller's line if err is not nil.
func OK(t testing.TB, err error) {
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
}

// Get returns the value of a call that must not fail: an error ends the test at the line where t is given. The test
// comes behind the call because the two results of a call can be the arguments of another only on their own.
func Get[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		OK(t, err)
		return v
	}
}

// Get2 is Get for a call with two values.
func Get2[A, B any](a A, b B, err error) func(t testing.TB) (A, B) {
	return func(t testing.TB) (A, B) {
		t.Helper()
		OK(t, err)
		return a, b
	}
}

// Error wants an error that says all of texts.
func Error(t testing.TB, err error, texts ...string) {
	for _, want := range texts {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Helper()
			t.Errorf("got error %v, want one with %q", err, want)
		}
	}
}

// Fails is Error of a call with a value.
func Fails[T any](_ T, err error) func(t testing.TB, texts ...string) {
	return func(t testing.TB, texts ...string) {
		t.Helper()
		Error(t, err, texts...)
	}
}
