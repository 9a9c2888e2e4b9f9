package source

import (
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/internal/budget/budgettest"
)

const cocoFile = `{"info": {"year": 2017}, "images": [{"id": 9, "file_name": "b.jpg", "height": 4}, {"id": 4, "file_name": "a.jpg"}, {"id": 5, "file_name": "c.jpg"}],
	"annotations": [{"image_id": 4, "id": 1, "caption": "A dog."}, {"image_id": 9, "id": 2, "caption": "Two."}, {"image_id": 4, "id": 3, "caption": "A wet dog."}]}`

func TestCOCO(t *testing.T) {
	ds, err := parseCOCO("f", []byte(cocoFile), "root", data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []data.File{{Path: "root/b.jpg", ID: 9, Captions: []string{"Two."}}, {Path: "root/a.jpg", ID: 4, Captions: []string{"A dog.", "A wet dog."}}, {Path: "root/c.jpg", ID: 5, Captions: nil}}
	for i, w := range want {
		if ds.Name(i) != w.Path || ds.ImageID(i) != w.ID || !slices.Equal(ds.Captions(i), w.Captions) {
			t.Errorf("%s %d %q, want %v", ds.Name(i), ds.ImageID(i), ds.Captions(i), w)
		}
	}
	if ds.Len() != len(want) {
		t.Errorf("%d images", ds.Len())
	}
}

var badCOCO = []struct{ in, want string }{
	{`[]`, `f: not a COCO file (an object with the lists "images" and "annotations")`},
	{`{"annotations": [{}]}`, `list "images" is missing or empty`},
	{`{"images": [{"id": 1, "file_name": "a"}]}`, `list "annotations" is missing or empty: take captions_*.json`},
	{`{"images": [{"id": 1}], "annotations": [{}]}`, `entry 0: list "images": field "file_name" is missing`},
	{`{"images": [{"file_name": "a"}], "annotations": [{}]}`, `entry 0: list "images": field "id" is missing (image "a")`},
	{`{"images": [{"id": "1", "file_name": "a"}], "annotations": [{}]}`, `entry 0: list "images": field "id" has the wrong type`},
	{`{"images": [{"id": 1, "file_name": "a"}, {"id": 1, "file_name": "b"}], "annotations": [{}]}`, `entry 1: list "images": id 1 is that of entry 0 already`},
	{`{"images": [{"id": 1, "file_name": "a"}], "annotations": [{"caption": "x"}]}`, `entry 0: list "annotations": field "image_id" is missing`},
	{`{"images": [{"id": 1, "file_name": "a"}], "annotations": [{"image_id": 1, "category_id": 3}]}`, `entry 0: list "annotations": field "caption" is missing: take captions_*.json, not instances_*.json`},
	{`{"images": [{"id": 1, "file_name": "a"}], "annotations": [{"image_id": 2, "caption": "x"}]}`, `entry 0: list "annotations": image_id 2 is that of no entry of "images"`},
}

func TestCOCORefuses(t *testing.T) {
	for _, c := range badCOCO {
		if _, err := parseCOCO("f", []byte(c.in), "", data.Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.in, err, c.want)
		}
	}
}

func FuzzParseCOCO(f *testing.F) {
	f.Add([]byte(cocoFile))
	for _, c := range badCOCO {
		f.Add([]byte(c.in))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		defer budgettest.Within(t, len(b))()
		if ds, err := parseCOCO("f", b, "root", data.Options{}); err == nil && ds.Len() == 0 {
			t.Error("no image and no error")
		}
	})
}
