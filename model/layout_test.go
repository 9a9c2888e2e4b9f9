package model

import (
	"fmt"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
)

// The layout of a model is its parameters, with the values that they begin with, and takes no memory.
func TestLayout(t *testing.T) {
	for name, cfg := range map[string]config.Config{"albef": tinyConfig(), "clip": tinyCLIP("Ob(4,2)")} {
		m := build(t, cfg, "plain", 1)
		l, err := Layout(cfg, Options{Vocab: m.o.Vocab, MaskID: m.o.MaskID, Engine: m.engine})
		if err != nil {
			t.Fatal(name, err)
		}
		if len(l.Values()) > 0 || len(l.List()) != len(m.params.List()) {
			t.Fatalf("%s: %d values, %d parameters of %d", name, len(l.Values()), len(l.List()), len(m.params.List()))
		}
		for i, q := range m.params.List() {
			x := l.List()[i]
			if x.Name != q.Name || !x.Shape.Eq(q.Shape) || x.Traits != q.Traits {
				t.Fatalf("%s: %s", name, fmt.Sprint(x, q))
			}
			v := make([]float32, x.Len())
			check.OK(t, l.Begin(x, v))
			if !slices.Equal(v, m.params.Value(q)) {
				t.Errorf("%s: %s begins with other values", name, x.Name)
			}
		}
	}
}
