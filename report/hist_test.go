package report

import (
	"fmt"
	"strings"
	"testing"
)

// Scores that are all the same are one bar, however large they are.
func TestHistogramOfEqualScores(t *testing.T) {
	for _, v := range []float64{0, 0.5, -3, 1e16, 3e38, -1e300} {
		svg := string(histogram(fmt.Sprint(v), pairScores{own: []float64{v, v}, other: []float64{v}}))
		if strings.Contains(svg, "NaN") || strings.Count(svg, `<path class="hist`) != 2 {
			t.Errorf("%v: %.300s", v, svg)
		}
	}
}
