package data

import (
	"slices"
	"testing"
	"time"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data/images"
	"github.com/geoalign/geoalign/data/scenes"
	"github.com/geoalign/geoalign/data/transform"
)

func TestMeasureStages(t *testing.T) {
	paths := cachePhotos(t)
	var items []File
	for i, p := range paths {
		items = append(items, File{Path: p, ID: int64(i), Captions: []string{"a photo"}})
	}
	items = append(items, File{Path: "/nowhere.jpg", ID: 99, Captions: []string{"nothing"}})
	tr := TrainConfig{Seed: 3, Transform: transform.Train{Size: 64, ScaleMin: 0.2, Flip: true, Ops: 2, Level: 7}, Text: someText(8)}
	ds := NewFiles(items, Options{})
	files := trainOf(t, ds, tr)
	world, err := scenes.New(scenes.Config{MinObjects: 1, MaxObjects: 4, Size: 64, ValSamples: 5, TestSamples: 5}, 1)
	if err != nil {
		t.Fatal(err)
	}
	drawn, err := NewSceneStream(world, 100, tr)
	if err != nil {
		t.Fatal(err)
	}
	few, err := Overfit(files, 3)
	if err != nil {
		t.Fatal(err)
	}
	fromFile := []images.Stage{images.StageRead, images.StageDecode, images.StageColour, images.StageResize, images.StageNormalize, images.StageText}
	for _, c := range []struct {
		name   string
		stream Stream
		want   []images.Stage
	}{
		{"files", files, fromFile},
		{"overfit", few, fromFile},
		{"scenes", drawn, []images.Stage{images.StageDraw, images.StageResize, images.StageNormalize, images.StageText}},
		{"untimed", struct{ Stream }{files}, []images.Stage{images.StageRead}},
	} {
		begin := time.Now()
		w, bad := MeasureStages(c.stream, oneView(c.stream), 0, 30*time.Millisecond)
		took := time.Since(begin)
		if w.Samples == 0 || w.Total() > took || w.Total() < took/4 {
			t.Errorf("%s: %d samples, %v of %v in stages", c.name, w.Samples, w.Total(), took)
		}
		for _, s := range c.want {
			if w.Time(s) <= 0 {
				t.Errorf("%s: no time in %v", c.name, s)
			}
		}
		if hidden := w.Time(images.StageCache) + w.Time(images.StageDraw); !slices.Contains(c.want, images.StageDraw) && hidden != 0 {
			t.Errorf("%s: %v in stages that it does not have", c.name, hidden)
		}
		if c.name == "files" && bad == 0 {
			t.Errorf("%s: the missing image is not counted", c.name)
		}
	}
	cache, err := NewCache(CacheConfig{Kind: "memory"})
	if err != nil {
		t.Fatal(err)
	}
	ds.UseCache(cache)
	if w, _ := MeasureStages(files, oneView(files), 0, 5*time.Millisecond); w.Time(images.StageCache) <= 0 {
		t.Error("no time in the cache")
	}
}

// Timing must not change the samples.
func TestTimedSamplesAreTheSame(t *testing.T) {
	var items []File
	for i, p := range cachePhotos(t) {
		items = append(items, File{Path: p, ID: int64(i), Captions: []string{"a photo", "a picture"}})
	}
	s := trainOf(t, NewFiles(items, Options{}), TrainConfig{Seed: 3, Transform: transform.Train{Size: 32, ScaleMin: 0.2, Flip: true, Ops: 2, Level: 7}, Text: someText(8)})
	a, b := batch.New(1, s.Columns()...), batch.New(1, s.Columns()...)
	var w images.Stopwatch
	for c := range uint64(20) {
		if err := s.Sample(c, a.Row(0)); err != nil {
			t.Fatal(err)
		}
		if err := s.SampleTimed(c, b.Row(0), &w); err != nil {
			t.Fatal(err)
		}
		for _, x := range s.Columns() {
			if !slices.Equal(a.Floats(x.Name), b.Floats(x.Name)) || !slices.Equal(a.Ints(x.Name), b.Ints(x.Name)) {
				t.Fatalf("sample %d: %v differs", c, x)
			}
		}
	}
	if w.Samples != 20 || w.Pixels == 0 {
		t.Errorf("%d samples, %d pixels", w.Samples, w.Pixels)
	}
	few, err := Overfit(s, 3)
	if err != nil {
		t.Fatal(err)
	}
	if err := sampleTimed(few, 7, a.Row(0), &w); err != nil {
		t.Fatal(err)
	}
	if err := s.Sample(1, b.Row(0)); err != nil || !slices.Equal(a.Floats(batch.Images), b.Floats(batch.Images)) {
		t.Errorf("sample 7 of 3 is not sample 1 (%v)", err)
	}
}
