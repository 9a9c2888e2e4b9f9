package source

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/internal/budget/budgettest"
	"github.com/geoalign/geoalign/internal/filetest"
)

const karpathyFile = `{"dataset": "tiny", "images": [
	{"imgid": 5, "filename": "a.jpg", "filepath": "val2014", "split": "train", "sentences": [{"raw": "A dog."}, {"raw": "Two."}]},
	{"imgid": 6, "filename": "b.jpg", "split": "restval", "sentences": [{"raw": "Three"}, {"raw": "  "}]},
	{"imgid": 7, "filename": "c.jpg", "split": "test", "sentences": []},
	{"filename": "d.jpg", "split": "test", "sentences": [{"raw": "Four"}]}]}`

func TestLoadKarpathy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "k.json")
	filetest.Write(t, file, []byte(karpathyFile))
	ds, err := LoadKarpathy(file, "root", "train", data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if ds.Len() != 2 || ds.Name(0) != filepath.Join("root", "val2014", "a.jpg") || ds.Name(1) != filepath.Join("root", "b.jpg") {
		t.Errorf("%d images, %q", ds.Len(), ds.Name(0))
	}
	if !slices.Equal(ds.Captions(0), []string{"A dog.", "Two."}) || !slices.Equal(ds.Captions(1), []string{"Three"}) || ds.EmptyCaptions() != 1 || ds.ImageID(1) != 6 {
		t.Errorf("captions %v %v", ds.Captions(0), ds.Captions(1))
	}
	if ds, err = LoadKarpathy(file, "root", "test", data.Options{}); err != nil || ds.Len() != 2 || ds.ImageID(1) != 3 {
		t.Errorf("test split: %v", err)
	}
}

// badKarpathy are Karpathy files with what the error must say.
var badKarpathy = []struct{ in, split, want string }{
	{karpathyFile, "dev", `unknown split "dev"`},
	{karpathyFile, "val", `no image of split "val" (images per split: map[restval:1 test:2 train:1])`},
	{`[]`, "train", "not a Karpathy file"},
	{`{}`, "train", `"images" is missing or empty`},
	{`{"images": {"a": 1}}`, "train", "wrong type"},
	{`{"images": [{"split": "train"}]}`, "train", `entry 0: field "filename" is missing`},
	{`{"images": [{"filename": "a", "filename": "b", "split": "train"}]}`, "train", `entry 0: key "filename" is there twice`},
	{"{\"images\": [{\"filename\": \"\xff\", \"split\": \"train\"}]}", "train", "entry 0: byte 0xff at byte 15 is not UTF-8"},
	{`{"images": [{"filename": "a"}]}`, "train", `field "split" is missing`},
	{`{"images": [{"filename": "a", "split": "train", "imgid": "x"}]}`, "train", `field "imgid" has the wrong type`},
	{`{"images": [{"filename": "a", "split": "train", "sentences": [{}]}]}`, "train", `sentence 0 lacks "raw"`},
	{`{"images": [{"filename": "a", "split": "train", "imgid": 1}, {"filename": "b", "split": "train", "imgid": 1}]}`, "train", "entry 1: imgid 1 is that of entry 0"},
}

func TestLoadKarpathyRefuses(t *testing.T) {
	for _, c := range badKarpathy {
		if _, err := parseKarpathy("k.json", []byte(c.in), "", c.split, data.Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.in, err, c.want)
		}
	}
}

func FuzzParseKarpathy(f *testing.F) {
	for _, c := range badKarpathy {
		f.Add([]byte(c.in))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		defer budgettest.Within(t, len(b))()
		ds, err := parseKarpathy("f", b, "root", "train", data.Options{})
		if err == nil && ds.Len() == 0 {
			t.Error("no image and no error")
		}
	})
}

// TestRealKarpathy: the real lists of Flickr8k have the same images.
func TestRealKarpathy(t *testing.T) {
	const folder = "../../../shared/data/flickr8k"
	if _, err := os.Stat(folder); err != nil {
		t.Skip("no photos at " + folder)
	}
	k, err := LoadKarpathy(filepath.Join(folder, "dataset_flickr8k.json"), folder+"/images", "train", data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ds, err := LoadCaptions(folder, []string{filepath.Join(folder, "train.json")}, data.Options{})
	if err != nil || ds.Len() != 6000 || k.Len() != 6000 {
		t.Fatalf("%v and %d images, want 6000: %v", ds, k.Len(), err)
	}
	if _, err := k.Image(17); err != nil {
		t.Error(err)
	}
}
