package source_test

import (
	"slices"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/data/transform"
)

// TestNLVRScenes: a row of training has the pictures and the label of the statement of its number, the left picture first.
func TestNLVRScenes(t *testing.T) {
	cfg := config.Default()
	cfg.Data.Kind, cfg.Data.Examples.Source = config.NLVRKind, source.ExamplesOfScenes
	cfg.Model.Image.Size, cfg.Data.CropScaleMin, cfg.Data.Flip, cfg.Data.RandAugmentOps = 24, 1, false, 0
	stream, err := source.Stream(t.Context(), cfg.Source(), source.Options{Tokenizer: letters{}})
	if err != nil {
		t.Fatal(err)
	}
	w, err := source.World(cfg.Source())
	if err != nil {
		t.Fatal(err)
	}
	truths := map[int32]int{}
	for c := range uint64(40) {
		b := batch.New(1, stream.Columns()...)
		if err := stream.Sample(c, b.Row(0)); err != nil {
			t.Fatal(err)
		}
		s := w.Statement(w.Train, cfg.Run.Seed, "train", c)
		label := b.Ints(batch.Labels)[0]
		truths[label]++
		if s.True != (label == 1) {
			t.Errorf("sample %d: label %d of %q", c, label, s.Text)
		}
		for k, column := range []string{batch.Images, batch.SecondImages} {
			m := transform.NewImage(24, 24)
			s.Pictures[k].RenderRGB(m.Pix, 24)
			want := make([]float32, 3*24*24)
			transform.Train{Input: cfg.ImageInput(), Size: 24}.Normalize(m, want)
			if !slices.Equal(b.Floats(column), want) {
				t.Errorf("sample %d: %s is not picture %d", c, column, k)
			}
		}
	}
	if truths[0] != 20 || truths[1] != 20 {
		t.Errorf("labels %v", truths)
	}
}
