package optest

import (
	"strings"
	"testing"

	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
)

// BuildError fails unless build panics with a *BuildError that has want in it.
func BuildError(t *testing.T, name, want string, build func()) {
	t.Helper()
	err := func() (err error) {
		defer op.Catch(&err)
		build()
		return nil
	}()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: got error %v, want one with %q", name, err, want)
	}
}

// RunError builds and runs a graph that must fail with an error that holds want.
func RunError(t *testing.T, want string, build func(ns gorgonia.Nodes) *gorgonia.Node, inputs ...Input) {
	t.Helper()
	g, ns := Nodes(inputs)
	m := Machine(t, g, ns, inputs, build(ns))
	if err := m.RunAll(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got error %v, want one with %q", err, want)
	}
}
