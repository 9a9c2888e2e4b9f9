package tasks

import (
	"math"

	"github.com/geoalign/geoalign/data/sentencepairs"
	"github.com/geoalign/geoalign/eval"
)

// thinned takes so many pairs at even distances.
func thinned(pairs []sentencepairs.Pair, most int) []sentencepairs.Pair {
	some := sentencepairs.Set{Pairs: pairs}
	some.Thin(most)
	return some.Pairs
}

// sentencesOf lists both sentences of pairs.
func sentencesOf(pairs []sentencepairs.Pair) []string {
	list := make([]string, 0, 2*len(pairs))
	for _, p := range pairs {
		list = append(list, p.A, p.B)
	}
	return list
}

// cosines are those of pairs, 0 where a vector has no direction.
func cosines(v Vectors, pairs []sentencepairs.Pair) []float64 {
	list := make([]float64, len(pairs))
	for i, p := range pairs {
		a, b := v.Row(p.A), v.Row(p.B)
		dot, aa, bb := 0.0, 0.0, 0.0
		for j := range a {
			x, y := float64(a[j]), float64(b[j])
			dot, aa, bb = dot+x*y, aa+x*x, bb+y*y
		}
		if aa > 0 && bb > 0 {
			list[i] = dot / math.Sqrt(aa*bb) // which is 1 of a sentence with itself, so that such pairs tie
		}
	}
	return list
}

// related returns |u-v| and u*v of pairs: (n, 2 Width).
func related(v Vectors, pairs []sentencepairs.Pair) []float32 {
	var a, b []float32
	for _, p := range pairs {
		a, b = append(a, v.Row(p.A)...), append(b, v.Row(p.B)...)
	}
	return relate(a, b, len(pairs))
}

// isotropyOf measures so many of the sentences of pairs, and how near those are that mean the same: of the class of
// similar pairs, or with a score above that of Task.Alike.
func isotropyOf(v Vectors, spec sentencepairs.Task, pairs []sentencepairs.Pair, most int) (*eval.Isotropy, error) {
	at := map[string]int{}
	var x []float32
	add := func(sentence string) int {
		i, known := at[sentence]
		if !known {
			i = len(at)
			at[sentence] = i
			x = append(x, v.Row(sentence)...)
		}
		return i
	}
	var positives [][2]int
	for _, p := range thinned(pairs, max(1, most/2)) {
		a, b := add(p.A), add(p.B)
		alike := !spec.Scored() && p.Label == spec.Near[0] || spec.Scored() && p.Score > spec.Alike()
		if alike {
			positives = append(positives, [2]int{a, b})
		}
	}
	if len(at) < 2 {
		return nil, nil
	}
	s, err := eval.MeasureIsotropy(x, len(at), v.Width, positives)
	return &s, err
}
