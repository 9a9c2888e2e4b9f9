package report

import (
	"math"
	"strings"
	"testing"
)

// TestWeightPanels: sorted weights and their histogram of a diagonal, singular values of a dense metric, none of blocks.
func TestWeightPanels(t *testing.T) {
	panels := func(m Metric) []panel { return weightPanels(m, m.departures()) }
	diag := panels(Metric{Name: "w", Form: Diag, C: 4, Weights: []float32{.5, 3, -1, 1}})
	if len(diag) != 2 || !strings.Contains(diag[0].Caption, "from the largest, 3, to the smallest, -1. 1 of 4 are below 0") || !strings.Contains(diag[1].Caption, "Median 0.75") {
		t.Errorf("diagonal: %+v", diag)
	}
	for i, title := range []string{"w, sorted", "w, how often"} {
		if svg := string(diag[i].SVG); !strings.Contains(svg, title) || strings.Contains(svg, "NaN") {
			t.Errorf("picture %d: %s", i, svg)
		}
	}
	// A rotation by 90 degrees after a scale of 3 and 2 has these singular values.
	dense := panels(Metric{Name: "w", Form: Dense, C: 2, Weights: []float32{0, -2, 3, 0}})
	if len(dense) != 1 || !strings.Contains(dense[0].Caption, "from 3 to 2.") || !strings.Contains(string(dense[0].SVG), "identity") {
		t.Errorf("dense: %+v", dense)
	}
	s := singular([]float64{-1, -2, 3, -1}, 2, 2)
	if len(s) != 2 || !(math.Abs(s[0]-3) <= 1e-12) || !(math.Abs(s[1]-2) <= 1e-12) {
		t.Errorf("singular values %v", s)
	}
	// A metric of rank 1 that is still what it began with.
	low := Metric{Name: "w", Form: Dense, C: 2, Rank: 1, Weights: []float32{1, 0, 0, 0}}
	if x := low.departures(); x[0] != 0 || x[3] != 0 {
		t.Errorf("low rank: departures %v", x)
	}
	if p := panels(low); len(p) != 1 || !strings.Contains(p[0].Caption, "from 1 to 0.") {
		t.Errorf("low rank: %+v", p)
	}
	if x := panels(Metric{Name: "w", Form: BlockDiag, C: 2, Blocks: 2, Weights: []float32{1, 2}}); x != nil {
		t.Errorf("blocks: %+v", x)
	}
	large := weightPanels(Metric{Name: "w", Form: Dense, C: mostSingular + 1}, nil)
	if len(large) != 1 || large[0].SVG != "" || !strings.Contains(large[0].Caption, "up to 1024 channels") {
		t.Errorf("large: %+v", large)
	}
	still := panels(Metric{Name: "w", Form: Diag, C: 3, Weights: []float32{1, 1, 1}})
	if len(still) != 2 || strings.Contains(string(still[1].SVG), "NaN") {
		t.Errorf("the identity: %+v", still)
	}
}
