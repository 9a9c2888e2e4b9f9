package sentences

import (
	"math"
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

// TestByWords: two of three words in common, weighed by hand: the word of both sentences has weight 1, those of one
// 1 + ln(3/2), so that the cosine is 1/(1 + 1.405465^2).
func TestByWords(t *testing.T) {
	pairs := []sentencepairs.Pair{{A: "A dog.", B: "a CAT"}, {A: "a CAT", B: "a CAT"}, {A: "A dog.", B: "!"}, {A: "!", B: "!"}}
	got := byWords(pairs[:1], sentencesOf(pairs[:1]))
	if want := 1 / (1 + 1.4054651081081644*1.4054651081081644); math.Abs(got[0]-want) > 1e-12 {
		t.Errorf("%g, want %g", got[0], want)
	}
	if got := byWords(pairs, sentencesOf(pairs)); got[1] != 1 || got[2] != 0 || got[3] != 0 {
		t.Errorf("a sentence with itself, and without words: %v", got)
	}
	often := []sentencepairs.Pair{{A: "dog dog cat", B: "dog"}} // dog 1, cat 1 + ln(3/2): 2/sqrt(4 + 1.405465^2)
	if got, want := byWords(often, sentencesOf(often))[0], 2/math.Sqrt(4+1.4054651081081644*1.4054651081081644); math.Abs(got-want) > 1e-12 {
		t.Errorf("a word that is there twice: %g, want %g", got, want)
	}
}
