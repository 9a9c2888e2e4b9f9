package data

import (
	"slices"
	"testing"

	"github.com/geoalign/geoalign/data/scenes"
	"github.com/geoalign/geoalign/data/transform"
)

func TestEval(t *testing.T) {
	ds := memory(5, "A dog,", "the dog")
	ds.Texts[1] = []string{"only - one"}
	ds.Texts[2] = nil
	ds.Texts[3] = []string{" . ", "!"}
	e, err := NewEval(ds, EvalConfig{ImageSize: 4, MaxWords: 2})
	if err != nil {
		t.Fatal(err)
	}
	if e.NumImages() != 3 || e.NumTexts() != 5 || e.Skipped() != 2 {
		t.Fatalf("%d images, %d texts, %d skipped", e.NumImages(), e.NumTexts(), e.Skipped())
	}
	want := []string{"a dog", "the dog", "only one", "a dog", "the dog"}
	for j, owner := range []int{0, 0, 1, 2, 2} {
		if e.Text(j) != want[j] || e.TextImage(j) != owner || !slices.Contains(e.ImageTexts(owner), j) {
			t.Errorf("text %d is %q of image %d", j, e.Text(j), e.TextImage(j))
		}
	}
	if e.ImageID(2) != 4 || e.ImageName(2) != "image 4" {
		t.Errorf("image 2 is %s", e.ImageName(2))
	}
	if e, err = NewEval(memory(5, "x"), EvalConfig{ImageSize: 4, MaxImages: 2}); err != nil || e.NumImages() != 2 || e.NumTexts() != 2 {
		t.Errorf("at most 2 images: %v", err)
	}
	ds = memory(5, "x")
	ds.Texts[0] = nil
	if e, err = NewEval(ds, EvalConfig{ImageSize: 4, MaxImages: 2}); err != nil || e.NumImages() != 2 || e.ImageID(1) != 2 || e.Skipped() != 1 {
		t.Errorf("at most 2 images, where the first has no caption: %v", err)
	}
	if _, err = NewEval(memory(2), EvalConfig{ImageSize: 4}); err == nil {
		t.Error("a split without captions must fail")
	}
}

func TestSceneSources(t *testing.T) {
	w, err := scenes.New(scenes.Config{ValSamples: 20, TestSamples: 30}, 5)
	if err != nil {
		t.Fatal(err)
	}
	cfg := TrainConfig{Seed: 5, Transform: transform.Train{Size: 32, ScaleMin: 1}}
	s, err := NewSceneStream(w, 100, cfg)
	if err != nil {
		t.Fatal(err)
	}
	a, err := picture(s, 41)
	if err != nil {
		t.Fatal(err)
	}
	caption, id, err := s.Describe(41)
	if err != nil || id != int64(w.Train(41).Key()) || caption == "" {
		t.Fatalf("%q, %d, %v", caption, id, err)
	}
	if b, err := picture(s, 41); err != nil || !slices.Equal(a, b) {
		t.Error("a sample must be a function of its counter")
	}
	// The picture is the scene's.
	m := transform.NewImage(32, 32)
	w.Train(41).RenderRGB(m.Pix, 32)
	if back, err := transform.Denormalize(a, 32, 32); err != nil || !slices.Equal(back.Pix, m.Pix) {
		t.Error("the sample does not show scene 41")
	}
	if again, _, err := s.Describe(41); err != nil || again != caption {
		t.Error("a caption must be a function of the counter")
	}
	for split, n := range map[string]int{"val": 20, "test": 30} {
		set, err := NewSceneSet(w, split, 32)
		if err != nil {
			t.Fatal(err)
		}
		e, err := NewEval(set, EvalConfig{ImageSize: 32})
		if err != nil || e.NumImages() != n || e.NumTexts() != n {
			t.Fatalf("%s: %v", split, err)
		}
		if err := e.LoadImage(n-1, a); err != nil {
			t.Error(err)
		}
	}
	if _, err := NewSceneSet(w, "train", 32); err == nil {
		t.Error("train is not a fixed split")
	}
	if _, err := NewSceneStream(w, 0, cfg); err == nil {
		t.Error("an epoch of nothing must fail")
	}
	if got := SceneCaptions(w, 3, CleanALBEF); len(got) < 6 {
		t.Errorf("%d captions of 3 scenes", len(got))
	}
}

// TestHasSiblings: an image with two captions has siblings, and so have two images of one id, wherever they stand.
func TestHasSiblings(t *testing.T) {
	for _, c := range []struct {
		texts [][]string
		ids   []int64
		want  bool
	}{
		{[][]string{{"a"}, {"b"}, {"c"}}, nil, false},
		{[][]string{{"a"}, {"b"}, {"c", "d"}}, nil, true},
		{[][]string{{"a"}, {"b"}, {"c"}}, []int64{4, 7, 4}, true},
		{[][]string{{"a"}, {}, {"c"}}, []int64{4, 4, 5}, false}, // an image without a caption is left out
	} {
		ds := &Memory{Images: make([]*transform.Image, len(c.texts)), Texts: c.texts, IDs: c.ids}
		e := evalOf(t, ds, EvalConfig{ImageSize: 4})
		if e.HasSiblings() != c.want {
			t.Errorf("captions %q of images with ids %v: %v", c.texts, c.ids, e.HasSiblings())
		}
	}
}
