package geodesic

import (
	"math"
	"testing"
)

// TestScore holds cos(min(theta, 4 pi)/4), worked by hand.
func TestScore(t *testing.T) {
	for _, c := range []struct{ theta, want float64 }{
		{.5, .992198}, {1, .968912}, {2, .877583}, {6, .070737}, {13, -1}, {math.Inf(1), -1}, {0, 1},
	} {
		if got := float64(Score(float32(c.theta), DefaultLimit)); !(math.Abs(got-c.want) <= 1e-6) {
			t.Errorf("Score(%v) is %v, want %v", c.theta, got, c.want)
		}
	}
	// With a limit of pi a path of one leg keeps its cosine.
	if got := Score(1, math.Pi); !(math.Abs(float64(got)-math.Cos(1)) <= 1e-6) {
		t.Errorf("got %v", got)
	}
}
