package sentences

import (
	"slices"
	"testing"

	"github.com/geoalign/geoalign/data/sentencepairs"
)

// TestCosines: a sentence and itself tie at exactly 1, and a vector without direction has 0.
func TestCosines(t *testing.T) {
	v := Vectors{X: []float32{.1, .2, .3, -7, .3, 11, 0, 0, 0}, Width: 3, at: map[string]int{"a": 0, "b": 1, "none": 2}}
	got := cosines(v, []sentencepairs.Pair{{A: "a", B: "a"}, {A: "b", B: "b"}, {A: "a", B: "none"}})
	if !slices.Equal(got, []float64{1, 1, 0}) {
		t.Error(got)
	}
}
