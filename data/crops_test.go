package data

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data/scenes"
	"github.com/geoalign/geoalign/data/transform"
)

// Small views are parts of the image of the asked size, each another, a function of the sample; the large views do not depend on
// them, nor the first ones on how many there are.
func TestSmallCrops(t *testing.T) {
	w, err := scenes.New(scenes.Config{ValSamples: 10, TestSamples: 10}, 7)
	if err != nil {
		t.Fatal(err)
	}
	plain := transform.Train{Size: 24, ScaleMin: 1}
	for name, make := range map[string]func(n int) (Stream, error){
		"files": func(n int) (Stream, error) {
			return NewTrain(pictures(9), TrainConfig{Seed: 4, Transform: tcl, Text: someText(6), Crops: Crops{n, 10, .05, .2}})
		},
		"scenes": func(n int) (Stream, error) {
			return NewSceneStream(w, 50, TrainConfig{Seed: 7, Transform: plain, Text: someText(6), Crops: Crops{n, 10, .05, .2}})
		},
	} {
		sample := func(n int, c uint64) batch.Row {
			s, err := make(n)
			if err != nil {
				t.Fatal(err)
			}
			row := batch.New(1, s.Columns()...).Row(0)
			if err := s.Sample(c, row); err != nil {
				t.Fatal(err)
			}
			return row
		}
		const size = 3 * 10 * 10
		none, two, three := sample(0, 5), sample(2, 5), sample(3, 5)
		if none.Floats(batch.Crops) != nil || !slices.Equal(none.Floats(batch.Images), three.Floats(batch.Images)) || !slices.Equal(none.Floats(batch.Views), three.Floats(batch.Views)) {
			t.Errorf("%s: small views change the large ones", name)
		}
		x := three.Floats(batch.Crops)
		if len(x) != 3*size || !slices.Equal(two.Floats(batch.Crops), x[:2*size]) || !slices.Equal(sample(3, 5).Floats(batch.Crops), x) {
			t.Errorf("%s: %d values, or others the second time", name, len(x))
		}
		seen := map[string]bool{}
		for v := range 3 {
			seen[fmt.Sprint(x[v*size:][:size])] = true
		}
		if len(seen) < 2 || slices.Equal(sample(3, 6).Floats(batch.Crops), x) {
			t.Errorf("%s: %d of 3 small views are different", name, len(seen))
		}
		s, _ := make(3)
		room := batch.New(1, Column{Name: batch.Crops, Shape: []int{2, 3, 10, 10}})
		if err := s.Sample(0, room.Row(0)); err == nil || !strings.Contains(err.Error(), "3 small views of 10 pixels a side have 900 values (got room for 600)") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Shares of the area are drawn between both limits.
func TestCropScales(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		box := transform.RandomCrop(r, 1000, 1000, .05, .14)
		if share := float64(box.W*box.H) / 1e6; share < .049 || share > .141 {
			t.Fatalf("a crop of %v of the area", share)
		}
	}
}
