package model

import (
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// TestMatchRefuses: what are not n texts and k images is an error, also where texts are so short that their states are
// copied.
func TestMatchRefuses(t *testing.T) {
	m := build(t, tinyConfig(), "auto", 1)
	x := randomBatch(m, 5)
	ts, _ := encodeTexts(t, m, x.Tokens[:2*tinyConfig().Data.Tokens], x.Lengths[:2], 2)
	is, _ := encodeImages(t, m, x.Images[:len(x.Images)/2], 2)
	states, images, short, index := slices.Clone(ts), slices.Clone(is), []int32{2, 2}, []int32{0, 1}
	check.Get(m.Matcher().Match(t.Context(), states, short, index, images, 2, 2))(t)
	for name, c := range map[string]struct {
		states []float32
		n, k   int
		want   string
	}{
		"half of the states": {states[:len(states)/2], 2, 2, "144 values of states of 2 texts, want 288"},
		"more states":        {append(slices.Clone(states), states...), 2, 2, "576 values of states of 2 texts"},
		"no texts":           {nil, 0, 2, "0 pairs with 2 images"},
		"no images":          {states, 2, 0, "2 pairs with 0 images"},
	} {
		if r, err := m.Matcher().Match(t.Context(), c.states, short, index, images, c.n, c.k); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v, want an error with %q", name, r, err, c.want)
		}
	}
}

// TestOptionsRefused: no engine, and texts without a vocabulary, are errors that name the option.
func TestOptionsRefused(t *testing.T) {
	e := build(t, tinyConfig(), "auto", 1).engine
	for want, f := range map[string]func() error{
		"Options.Engine":        func() error { _, err := New(tinyConfig(), Options{Vocab: tinyVocab}); return err },
		"Options.Engine is nil": func() error { _, err := Open(tinyConfig(), Options{Vocab: tinyVocab}, nil); return err },
		"Options.Vocab":         func() error { _, err := New(tinyConfig(), Options{Engine: e}); return err },
	} {
		check.Error(t, f(), want)
	}
}
