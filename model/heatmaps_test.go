package model

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/internal/check"
)

// goldenPairs is a batch of the first n pairs of a golden.
func goldenPairs(m *Trainer, g golden, n int) *batch.Batch {
	b := batch.New(n, append(m.Image().Columns(), m.Text().Columns()...)...)
	copy(b.Floats(batch.Images), g.floats("input/images"))
	copy(b.Ints(batch.Tokens), g.ints("input/tokens"))
	copy(b.Ints(batch.Lengths), g.ints("input/lengths"))
	return b
}

// goldenBoxes are those of tools/goldens/grounding.py.
var goldenBoxes = []data.Rect{{W: 50, H: 37}, {X: 3.7, Y: 2.2, W: 20.5, H: 12.9}, {X: 30, Y: 20, W: 20, H: 17}, {X: 10, Y: 10, W: 4, H: 4.5}, {X: 25, W: 25, H: 18.5}}

// TestGoldenHeatMaps compares maps of a batch of pairs at every layer, and the scores of boxes by them, with an
// independent PyTorch model of the same weights.
func TestGoldenHeatMaps(t *testing.T) {
	m, _, g := loadGolden(t, "pair")
	want := openGolden(t, "heatmaps")
	for _, of := range []HeatOf{{true, 0}, {true, 1}, {false, 0}, {false, 1}} {
		name := fmt.Sprintf("%s/%d", map[bool]string{true: "itm", false: "itc"}[of.Match], of.Layer)
		for _, rows := range []int{4, 1, 4} {
			maps := check.Get(m.Explainer().HeatMaps(t.Context(), goldenPairs(m, g, rows), of))(t)
			got := make([]float64, len(maps))
			for i, v := range maps {
				got[i] = float64(v)
			}
			const p = 4
			explainedAs(t, name, got, want.floats(name)[:rows*p])
			scores := []float64{}
			for r := range rows {
				h := eval.NewHeatMap(got[r*p:][:p], 2, 2, 50, 37)
				for _, b := range goldenBoxes {
					scores = append(scores, h.Score(b))
				}
			}
			explainedAs(t, name+"/scores", scores, want.floats(name + "/scores")[:len(scores)])
		}
	}
	if len(m.explainer.maps.kept) != 4*2 {
		t.Errorf("%d computations are kept", len(m.explainer.maps.kept))
	}
}

// TestHeatMapsOfPairs: a pair has the map that Grad-CAM of it alone has.
func TestHeatMapsOfPairs(t *testing.T) {
	m, _, g := loadGolden(t, "pair")
	maps := check.Get(m.Explainer().HeatMaps(t.Context(), goldenPairs(m, g, 4), HeatOf{true, 0}))(t)
	want := openGolden(t, "explain_albef")
	for row := range 3 {
		words := want.floats(fmt.Sprintf("%d/match/0", row)) // (L, T)
		const l, tokens, p = 6, 5, 4
		for k := range p {
			sum := 0.0
			for i := range l {
				sum += float64(words[i*tokens+1+k]) / l
			}
			if got := float64(maps[row*p+k]); !(math.Abs(got-sum) <= 1e-4*math.Abs(sum)+1e-9) {
				t.Errorf("pair %d, patch %d: %v, want %v", row, k, got, sum)
			}
		}
	}
}

// TestHeatMapsRefuse: layers and maps that there are none of.
func TestHeatMapsRefuse(t *testing.T) {
	m, _, g := loadGolden(t, "pair")
	dual := buildCLIP(t, tinyCLIP("Multi(2,4)"))
	for _, c := range []struct {
		m    *Trainer
		of   HeatOf
		want string
	}{
		{m, HeatOf{true, 2}, "no fusion layer 2: the model has 2, from 0 on"},
		{m, HeatOf{true, -1}, "no fusion layer -1"},
		{m, HeatOf{false, 2}, "no block of the image tower 2: the model has 2"},
		{dual, HeatOf{true, 0}, "no match head"},
		{dual, HeatOf{false, 0}, "no class token that attends"},
	} {
		_, err := c.m.Explainer().HeatMaps(t.Context(), goldenPairs(m, g, 1), c.of)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v, want %q", c.of, err, c.want)
		}
	}
}
