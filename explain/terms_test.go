package explain

import (
	"math"
	"slices"
	"testing"
)

// sideways are an image of two tokens and a text of three, of two channels.
func sideways() (image, text Tokens) {
	return Tokens{N: 2, C: 2, Rows: []float32{1, 0, 0, 1}}, Tokens{N: 3, C: 2, Rows: []float32{1, 0, .6, .8, 0, 1}}
}

// TestMaxSimTerms is a comparison by hand, in both directions.
func TestMaxSimTerms(t *testing.T) {
	image, text := sideways()
	x := MaxSim{Weights: []float64{.5, .25, .25}}.Of(image, text)
	if !slices.Equal(x.Chosen, []int{0, 1, 1}) || x.Attends || x.At(1, 0) != 2 {
		t.Errorf("%+v", x)
	}
	near(t, "products", x.Matrix, 1, 0, .6, .8, 0, 1)
	near(t, "by text", x.ByText(), .5, .2, .25)
	near(t, "by image", x.ByImage(), .5, .45)
	x = MaxSim{ImageQueries: true, Weights: Even(2, 1), Rows: []float32{2, 0, 0, 1}}.Of(image, text)
	if !slices.Equal(x.Chosen, []int{0, 2}) || x.At(2, 1) != 5 {
		t.Errorf("%+v", x)
	}
	near(t, "by image", x.ByImage(), 2, 1)
	near(t, "by text", x.ByText(), 2, 0, 1)
	if x = (MaxSim{Weights: Even(3, 1)}).Of(Tokens{C: 2}, text); x.Score() != 0 || len(x.ByText()) != 3 {
		t.Errorf("no image token: %+v", x)
	}
}

// TestCrossTerms: a query that attends to two equal tokens has half of either, and the rest of the pool
// is the entropy of its weights. What a sharp attention sees is the nearest token alone.
func TestCrossTerms(t *testing.T) {
	image, text := Tokens{N: 2, C: 2, Rows: []float32{1, 0, 1, 0}}, Tokens{N: 2, C: 2, Rows: []float32{1, 0, 1, 0}}
	x := Cross{Scale: 9, Pool: 6, Share: 1}.Of(image, text)
	near(t, "attention", x.Matrix, .5, .5, .5, .5)
	near(t, "terms", x.Adds, .25, .25, .25, .25)
	near(t, "rest and score", []float64{x.Rest, x.Score()}, math.Ln2/6, 1+math.Ln2/6)
	if x = (Cross{Scale: 9, Focal: true, Share: 1}).Of(image, text); !slices.Equal(x.Matrix, []float64{.5, .5, .5, .5}) {
		t.Errorf("equal weights by focal attention: %v", x.Matrix)
	}
	image, text = sideways()
	x = Cross{ImageQueries: true, Scale: 1e4, Share: .5}.Of(image, text)
	near(t, "sharp attention", x.Matrix, 1, 0, 0, 0, 0, 1)
	near(t, "sharp terms", x.Adds, .25, 0, 0, 0, 0, .25)
	x = Cross{Scale: 1, Focal: true, Share: 1}.Of(image, text)
	near(t, "focal attention", x.Matrix, 1, 0, 0, 1, 0, 1)
	if x = (Cross{Scale: 1, Pool: 2, Share: 1}).Of(Tokens{C: 2}, text); x.Score() != 0 {
		t.Errorf("no image token: %+v", x)
	}
}

// TestWeighing is a network by hand.
func TestWeighing(t *testing.T) {
	image, _ := sideways()
	g := Weighing{Hidden: 2, A: []float32{1, 0, 0, -1}, B: []float32{0, 0}, W: []float32{float32(math.Log(3)), 5}}
	near(t, "weights", g.Weights(image), .75, .25)
}

func near(t *testing.T, what string, got []float64, want ...float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %v, want %v", what, got, want)
	}
	for i, w := range want {
		if !(math.Abs(got[i]-w) <= 1e-6) {
			t.Errorf("%s: %v, want %v", what, got, want)
			return
		}
	}
}
