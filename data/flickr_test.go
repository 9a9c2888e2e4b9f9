package data

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/internal/filetest"
)

// flickr is a folder of real photos beside the repository; tests that need it
// skip without.
const flickr = "../../shared/data/flickr8k"

var trainSmall = transform.Train{Size: 8, ScaleMin: 0.5, Flip: true, Ops: 2, Level: 7}

func needFlickr(t testing.TB) {
	if _, err := os.Stat(flickr); err != nil {
		t.Skip("no photos at " + flickr)
	}
}

func allCaptions(ds Dataset) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for i := range ds.Len() {
			for _, c := range ds.Captions(i) {
				if !yield(CleanCaption(c, 0)) {
					return
				}
			}
		}
	}
}

func TestFlickr(t *testing.T) {
	needFlickr(t)
	ds := listed(t, flickr, "train.json")
	if ds.Len() != 6000 {
		t.Fatalf("%d images, want 6000", ds.Len())
	}
	tok, err := tokenizer.Learn(allCaptions(ds), 4000)
	if err != nil {
		t.Fatal(err)
	}
	s := NewStats(ds, tok, "")
	t.Logf("%+v", s)
	if s.Captions != 30000-ds.EmptyCaptions() || s.Unknown != 0 {
		t.Errorf("%+v", s)
	}
	tr, err := NewTrain(ds, TrainConfig{Seed: 1, Transform: transform.Train{Size: 64, ScaleMin: 0.5, Flip: true, Ops: 2, Level: 7}, Text: someText(25)})
	if err != nil {
		t.Fatal(err)
	}
	l := newLoader(t, tr, LoaderConfig{BatchSize: 32})
	for range 3 {
		b := nextOf(t, l)
		l.Recycle(b)
	}
	if bad, _, ex := l.Bad(); bad != 0 {
		t.Errorf("bad samples: %v", ex)
	}
}

func BenchmarkFlickrLoader128(b *testing.B) {
	needFlickr(b)
	ds := listed(b, flickr, "train.json")
	tok, err := tokenizer.Learn(allCaptions(ds), 4000)
	if err != nil {
		b.Fatal(err)
	}
	tr := trainOf(b, ds, TrainConfig{Seed: 1, Transform: transform.Train{Size: 128, ScaleMin: 0.2, Flip: true, Ops: 2, Level: 7}, Text: &Texts{Tokenizer: tok, Tokens: 25}})
	l, err := NewLoader(tr, LoaderConfig{BatchSize: 32, Columns: oneView(tr), Workers: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	b.ReportAllocs()
	for b.Loop() {
		batch := nextOf(b, l)
		l.Recycle(batch)
	}
	b.ReportMetric(32*float64(b.N)/b.Elapsed().Seconds(), "samples/s")
}

// listed reads a list of {"image", "caption"} in a folder, one caption or several, as images with the ids 0, 1, ...
func listed(t testing.TB, dir, file string) *Files {
	t.Helper()
	b := filetest.Read(t, filepath.Join(dir, file))
	var list []struct {
		Image   string
		Caption any
	}
	if err := json.Unmarshal(b, &list); err != nil {
		t.Fatal(err)
	}
	var items []File
	at := map[string]int{}
	for _, e := range list {
		i, known := at[e.Image]
		if !known {
			i, at[e.Image] = len(items), len(items)
			items = append(items, File{Path: filepath.Join(dir, e.Image), ID: int64(i)})
		}
		if c, ok := e.Caption.(string); ok {
			e.Caption = []any{c}
		}
		for _, c := range e.Caption.([]any) {
			items[i].Captions = append(items[i].Captions, c.(string))
		}
	}
	return NewFiles(items, Options{})
}
