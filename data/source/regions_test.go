package source_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/internal/filetest"
)

// TestRegions: all splits have the regions of the largest, and the validation split can be cut.
func TestRegions(t *testing.T) {
	cfg := configOf("regions", folder(t))
	stream, err := source.Stream(t.Context(), cfg.Source(), source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	set, err := source.Eval(t.Context(), cfg.Source(), "val", source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := data.Column{Name: batch.Regions, Shape: []int{4, 3}} // of train; those of dev are 2
	for _, columns := range [][]data.Column{stream.Columns(), set.Images().Columns()} {
		if c, _ := batch.Find(columns, batch.Regions); !c.Equal(want) {
			t.Errorf("column %v, want %v", c, want)
		}
	}
	if set.NumImages() != 2 || set.NumTexts() != 4 {
		t.Errorf("%d images, %d texts", set.NumImages(), set.NumTexts())
	}
	cfg.Data.Regions.ValCaptions, cfg.Data.Regions.Most = 2, 1
	if set, err = source.Eval(t.Context(), cfg.Source(), "val", source.Options{}); err != nil || set.NumImages() != 1 || set.NumTexts() != 2 {
		t.Errorf("cut: %v %v", set, err)
	}
	if c, _ := batch.Find(set.Images().Columns(), batch.Regions); !slices.Equal(c.Shape, []int{1, 3}) {
		t.Errorf("column %v with data.regions.most = 1", c)
	}
	if train, err := source.Split(t.Context(), cfg.Source(), "train", source.Options{}); err != nil || train.Len() != 2 {
		t.Errorf("train is cut too: %v", err)
	}
}

// TestRegionsVocabulary: a vocabulary is learned from the captions of train, and with val_words from those of val too.
func TestRegionsVocabulary(t *testing.T) {
	cfg := configOf("regions", folder(t))
	for _, c := range []struct {
		val  bool
		want int
	}{{false, 4}, {true, 8}} {
		cfg.Data.Regions.ValWords = c.val
		if list, err := source.Texts(t.Context(), cfg.Source(), source.Options{}); err != nil || len(list) != c.want {
			t.Errorf("%v: captions %q, %v", c.val, list, err)
		}
	}
}

// TestRegionsErrors: files that are not there are found before they are opened, with their key.
func TestRegionsErrors(t *testing.T) {
	root := folder(t)
	for _, c := range []struct {
		set  func(r *source.Regions)
		want string
	}{
		{func(r *source.Regions) { r.Features = "{split}_feat.npy" }, "data.regions.features: there is no such file: " + filepath.Join(root, "dev_feat.npy")},
		{func(r *source.Regions) { r.Captions = "{split}_precaps.txt" }, "data.regions.captions: there is no such file"},
		{func(r *source.Regions) { r.Boxes = "{split}_boxes.npy" }, "data.regions.boxes: there is no such file"},
		{func(r *source.Regions) { r.Pictures = "images" }, "data.regions.pictures: there is no such folder"},
	} {
		cfg := configOf("regions", root)
		c.set(&cfg.Data.Regions)
		if err := source.CheckInputs(source.Inputs(cfg.Source(), "val")); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	cfg := configOf("regions", root)
	if err := source.CheckInputs(source.Inputs(cfg.Source(), source.Splits...)); err != nil { // there is no test split
		t.Error(err)
	}
	if _, err := source.Split(t.Context(), cfg.Source(), "test", source.Options{}); err == nil || !strings.Contains(err.Error(), "data.regions.test: must name the split") {
		t.Error(err)
	}
	for from, to := range map[string]string{"image": "train", "text": "dev"} { // a tensor of 20 rows is an image of 20 regions
		b := filetest.Read(t, filepath.Join(root, from+".safetensors"))
		filetest.Write(t, filepath.Join(root, to+".safetensors"), b)
	}
	cfg.Data.Regions.Features = "{split}.safetensors"
	if _, err := source.Stream(t.Context(), cfg.Source(), source.Options{}); err == nil || !strings.Contains(err.Error(), "dev.safetensors 5: all splits must have one width") {
		t.Error(err)
	}
}

// TestRegionsOfScenes: the built-in scenes as regions, beside their pictures.
func TestRegionsOfScenes(t *testing.T) {
	cfg := configOf("scenes", t.TempDir())
	cfg.Data.Kind, cfg.Data.Regions.Source, cfg.Data.Regions.Width = "regions", source.RegionsOfScenes, 12
	stream, err := source.Stream(t.Context(), cfg.Source(), source.Options{Tokenizer: letters{}})
	if err != nil {
		t.Fatal(err)
	}
	set, err := source.Eval(t.Context(), cfg.Source(), "test", source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, columns := range [][]data.Column{stream.Columns(), set.Images().Columns()} {
		for name, shape := range map[string][]int{batch.Regions: {4, 12}, batch.RegionBoxes: {4, 4}, batch.Images: {3, 16, 16}} {
			if c, ok := batch.Find(columns, name); !ok || !slices.Equal(c.Shape, shape) {
				t.Errorf("column %v, want %s %v", c, name, shape)
			}
		}
	}
	if captions, err := source.Texts(t.Context(), cfg.Source(), source.Options{}); err != nil || len(captions) == 0 {
		t.Errorf("%d captions, %v", len(captions), err)
	}
	if got, err := source.Finite(cfg.Source()); err != nil || !slices.Equal(got, []string{"val", "test"}) {
		t.Errorf("splits %q, %v", got, err)
	}
}
