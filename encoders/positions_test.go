package encoders

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// TestInterpolatePositions compares with F.interpolate (tools/goldens/positions.py), also with antialias=True:
// larger, smaller, equal and one-patch grids.
func TestInterpolatePositions(t *testing.T) {
	b := check.Get(os.ReadFile("testdata/positions.json"))(t)
	var cases []struct {
		Width, To           int
		Table, Want, Smooth []float32
	}
	check.OK(t, json.Unmarshal(b, &cases))
	if len(cases) != 7 {
		t.Fatalf("%d cases", len(cases))
	}
	for _, c := range cases {
		for _, law := range []struct {
			name     string
			resample func(table []float32, width, classes, to int) ([]float32, error)
			want     []float32
		}{{"plain", InterpolatePositions, c.Want}, {"smooth", SmoothPositions, c.Smooth}} {
			got := check.Get(law.resample(c.Table, c.Width, 1, c.To))(t)
			if len(got) != len(law.want) {
				t.Fatalf("%s to %d: %d values, want %d", law.name, c.To, len(got), len(law.want))
			}
			for i := range got {
				if !(math.Abs(float64(got[i]-law.want[i])) <= 2e-6) {
					t.Errorf("%s to %d: value %d is %v, want %v", law.name, c.To, i, got[i], law.want[i])
				}
			}
		}
	}
}

// TestInterpolatePositionsWithoutClassTokens compares the grids of the same cases alone.
func TestInterpolatePositionsWithoutClassTokens(t *testing.T) {
	table := normals(3, (1+16)*3)
	with := check.Get(InterpolatePositions(table, 3, 1, 7))(t)
	without, err := InterpolatePositions(table[3:], 3, 0, 7)
	if err != nil || !slices.Equal(without, with[3:]) {
		t.Errorf("a grid without class tokens differs: %v", err)
	}
}

func TestInterpolatePositionsIdentity(t *testing.T) {
	for _, side := range []int{1, 2, 7, 16} {
		table := normals(uint64(side), (1+side*side)*3)
		got := check.Get(InterpolatePositions(table, 3, 1, side))(t)
		if !slices.Equal(got, table) {
			t.Errorf("a grid of %d is not kept", side)
		}
	}
}

func TestInterpolatePositionsRefuses(t *testing.T) {
	for name, c := range map[string]struct{ values, width, to int }{
		"no square":        {(1 + 6) * 2, 2, 3},
		"no whole rows":    {5*2 + 1, 2, 3},
		"class token only": {2, 2, 3},
		"empty":            {0, 2, 3},
		"no width":         {10, 0, 3},
		"no grid":          {10, 2, 0},
	} {
		if _, err := InterpolatePositions(make([]float32, c.values), c.width, 1, c.to); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}
