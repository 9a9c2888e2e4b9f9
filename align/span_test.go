package align

import (
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// TestSpan counts the directions of rows that mix a few.
func TestSpan(t *testing.T) {
	e := engine(t)
	const n, d = 300, 40
	r := rand.New(rand.NewPCG(1, 2))
	for _, k := range []int{1, 3, d / 2} {
		basis, x := make([]float32, k*d), make([]float32, n*d)
		for i := range basis {
			basis[i] = float32(r.NormFloat64())
		}
		for i := range n {
			for j := range k {
				w := float32(r.NormFloat64())
				for c := range d {
					x[i*d+c] += w * basis[j*d+c]
				}
			}
			x[i*d] += 5 // a common mean is not a direction
		}
		got, possible := check.Get2(Span(e, Image, Table{Data: x, D: d}))(t)
		if got != k || possible != d {
			t.Errorf("%d directions: got %d of %d, want %d of %d", k, got, possible, k, d)
		}
	}
}

// TestSpanOfNothing: no rows, and rows without columns, are an error.
func TestSpanOfNothing(t *testing.T) {
	e := engine(t)
	_, _, err := Span(e, Text, Table{D: 3})
	wantError(t, err, "0 rows of 3 columns of the texts")
	_, _, err = Span(e, Image, Table{Data: make([]float32, 2)})
	wantError(t, err, "2 rows of 0 columns of the images")
}
