package source_test

import (
	"path/filepath"
	"reflect"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/internal/filetest"
)

// TestGroundingScenes: held-out expressions do not depend on the seed of a run, those of training do, and boxes are in the pixels of the picture.
func TestGroundingScenes(t *testing.T) {
	cfg := config.Default()
	cfg.Data.Kind, cfg.Data.Examples.Source, cfg.Model.Image.Size = source.GroundingKind, source.ExamplesOfScenes, 48
	open := func(seed uint64, split string) []data.Example {
		c := cfg
		c.Run.Seed = seed
		x, err := source.OpenExamples(t.Context(), c.Source(), split, source.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var list []data.Example
		for i := range 50 {
			e := x.Example(i)
			if b := e.Target; b.X < 0 || b.Y < 0 || b.X+b.W > 48 || b.Y+b.H > 48 || b.W < 5 || len(e.Proposals) < 7 || e.Kind == "" {
				t.Errorf("%+v", e)
			}
			list = append(list, e)
		}
		return list
	}
	if !reflect.DeepEqual(open(1, "test"), open(2, "test")) {
		t.Error("the test split depends on the seed")
	}
	if reflect.DeepEqual(open(1, "train"), open(2, "train")) {
		t.Error("the train split does not depend on the seed")
	}
}

// TestGroundingIDs: expressions of one picture have one id in training, as positives of each other.
func TestGroundingIDs(t *testing.T) {
	dir := t.TempDir()
	list := `[{"image": "a.jpg", "text": "cup"}, {"image": "b.jpg", "text": "dog"}, {"image": "a.jpg", "text": "left cup"}]`
	filetest.Write(t, filepath.Join(dir, "train.json"), list)
	cfg := config.Default()
	cfg.Data.Kind, cfg.Data.Root, cfg.Data.Examples.TrainFiles = source.GroundingKind, dir, []string{"train.json"}
	s, err := source.Stream(t.Context(), cfg.Source(), source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string][]int32{}
	for c := range uint64(3) {
		b := batch.New(1, batch.Column{Name: batch.IDs, Type: batch.Int32})
		if err := s.Sample(c, b.Row(0)); err != nil {
			t.Fatal(err)
		}
		text, _, err := s.(data.Described).Describe(c)
		if err != nil {
			t.Fatal(err)
		}
		ids[text] = b.Ints(batch.IDs)
	}
	if cup, dog, left := ids["cup"][0], ids["dog"][0], ids["left cup"][0]; cup != left || cup == dog || cup < 0 {
		t.Errorf("%v", ids)
	}
}
