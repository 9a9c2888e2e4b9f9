package eval

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// TestNotFinite: rows and scores that are not finite are an error, and no class, rank or precision.
func TestNotFinite(t *testing.T) {
	e := probeEngine(t)
	x, labels := []float32{1, 0, 0, 1, 1, 1}, []int32{0, 1, 0}
	c := check.Get(NewCorrespondence([]int{0, 1, 2}, []int{0, 1, 2}))(t)
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		y := slices.Clone(x)
		y[3] = float32(bad)
		for name, f := range map[string]func() error{
			"rows to classify": func() error {
				_, err := NearestNeighbours(t.Context(), e, x, labels, 2, y, 3,
					1)
				return err
			},
			"rows with classes": func() error {
				_, err := NearestNeighbours(t.Context(), e, y, labels, 2, x, 3,
					1)
				return err
			},
			"queries":       func() error { _, err := NeighbourLists(t.Context(), e, y, x, 3, 1); return err },
			"rows of lists": func() error { _, err := NeighbourLists(t.Context(), e, x, y, 3, 1); return err },
			"rows before": func() error {
				_, err := NeighbourRank(t.Context(), e, y, x, 3, 1, 3,
					false)
				return err
			},
			"rows after": func() error {
				_, err := NeighbourRank(t.Context(), e, x, y, 3, 1, 3,
					false)
				return err
			},
			"rows after, euclid": func() error {
				_, err := NeighbourRank(t.Context(), e, x, y, 3, 1, 3,
					true)
				return err
			},
		} {
			if err := f(); !errors.As(err, new(*NonFiniteError)) {
				t.Errorf("%s of %v: %v, want a NonFiniteError", name, bad, err)
			}
		}
	}
	scores := make([]float32, 9)
	scores[5] = float32(math.NaN())
	want := "eval: score of image 1 and text 2 is NaN: look for the first NaN in the embeddings"
	if _, err := MeasurePrecision(c, 2, Matrix(scores, 3)); !errors.As(err, new(*NonFiniteError)) ||
		err.Error() != want {
		t.Errorf("precision: %v, want %q", err, want)
	}
}
