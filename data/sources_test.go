package data

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/data/table"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/internal/budget/budgettest"
)

// writeImage writes a PNG of one shade and returns its path.
func writeImage(t testing.TB, dir, name string, shade uint8) string {
	t.Helper()
	img := image.NewGray(image.Rect(0, 0, 6, 4))
	for i := range img.Pix {
		img.Pix[i] = shade
	}
	img.SetGray(1, 1, color.Gray{Y: 255 - shade})
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, name)
	writeFile(t, path, b.Bytes())
	return path
}

func writeFile(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestLoadCaptions(t *testing.T) {
	dir := t.TempDir()
	writeImage(t, dir, "a.png", 10)
	abs := writeImage(t, t.TempDir(), "b.png", 20)
	list := []map[string]any{
		{"image": "a.png", "caption": []string{"one", " . "}, "image_id": 7},
		{"image": abs, "caption": "two", "image_id": 9},
		{"image": "a.png", "caption": "three", "image_id": 7, "extra": true},
		{"image": "c.png", "caption": []string{}, "image_id": 11},
	}
	b, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "l.json"), append([]byte("\xef\xbb\xbf"), b...))
	ds, err := LoadCaptions(dir, []string{"l.json"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if ds.Len() != 3 || !slices.Equal(ds.Captions(0), []string{"one", "three"}) || !slices.Equal(ds.Captions(1), []string{"two"}) || len(ds.Captions(2)) != 0 {
		t.Errorf("%d images, captions %v %v %v", ds.Len(), ds.Captions(0), ds.Captions(1), ds.Captions(2))
	}
	if ds.ImageID(0) != 7 || ds.ImageID(1) != 9 || ds.EmptyCaptions() != 1 {
		t.Errorf("ids %d %d, %d empty captions", ds.ImageID(0), ds.ImageID(1), ds.EmptyCaptions())
	}
	for i, shade := range []uint8{10, 20} {
		m, err := ds.Image(i)
		if err != nil || m.Pix[0] != shade {
			t.Errorf("image %d: %v", i, err)
		}
	}
	if _, err := ds.Image(2); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "c.png") {
		t.Errorf("missing image: %v", err)
	}
}

func TestLoadCaptionsIDs(t *testing.T) {
	for _, c := range []struct {
		json string
		want []int64
	}{
		{`[{"image":"a","caption":"x"},{"image":"b","caption":"x"}]`, []int64{0, 1}},
		{`[{"image":"a","caption":"x","image_id":"s"},{"image":"b","caption":"x","image_id":"s"},{"image":"c","caption":"x"}]`, []int64{0, 0, 1}},
		// A number and its text are one id; mixed lists are numbered.
		{`[{"image":"a","caption":"x","image_id":5},{"image":"b","caption":"x","image_id":"5"},{"image":"c","caption":"x","image_id":null}]`, []int64{0, 0, 1}},
		{`[{"image":"a","caption":"x","image_id":-5},{"image":"b","caption":"x","image_id":9007199254740993}]`, []int64{-5, 9007199254740993}},
	} {
		recs, err := parseCaptions("f", []byte(c.json), Options{})
		if err != nil {
			t.Fatal(err)
		}
		ds, err := merge("", recs, Options{})
		if err != nil {
			t.Fatal(err)
		}
		var got []int64
		for i := range ds.Len() {
			got = append(got, ds.ImageID(i))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: ids %v, want %v", c.json, got, c.want)
		}
	}
}

// badCaptions are caption files with what the error must say.
var badCaptions = []struct{ in, want string }{
	{``, "not a JSON list"},
	{`{"image": "a"}`, "not a JSON list"},
	{`[{"image": "a", "caption": "x"},`, "broken JSON at byte"},
	{`[]`, "the list is empty"},
	{`[{"caption": "x"}]`, `entry 0: field "image" is missing`},
	{`[{"image": "a", "caption": "x"}, {"image": "a", "caption": "x", "caption": "y"}]`, `entry 1: key "caption" is there twice: leave one of them out`},
	{"[{\"image\": \"a\", \"caption\": \"caf\xe9\"}]", "entry 0: byte 0xe9 at byte 31 is no UTF-8: save the file as UTF-8 text"},
	{`{"image": "a", "caption": "x"}` + "\n" + `{"image": "b", "caption": "y"}`, "these are JSON lines, one entry a line, and not a JSON list"},
	{`[{"image": "a", "caption": "x"}, {"image": "", "caption": "x"}]`, `entry 1: field "image" is empty`},
	{`[{"image": 3, "caption": "x"}]`, `entry 0: field "image" has the wrong type (got a JSON number)`},
	{`[{"image": "a"}]`, `entry 0: field "caption" is missing`},
	{`[{"image": "a", "caption": null}]`, `field "caption" is missing`},
	{`[{"image": "a", "caption": 3}]`, `neither a text nor a list of texts (got 3)`},
	{`[{"image": "a", "caption": ["x", 3]}]`, `neither a text nor a list of texts (got ["x", 3])`},
	{`[{"image": "a", "caption": ["x", null]}]`, `neither a text nor a list`},
	{`[{"image": "a", "caption": "x", "image_id": 1.5}]`, `neither a whole number nor a text (got 1.5)`},
	{`[{"image": "a", "caption": "x", "image_id": ""}]`, `empty text`},
	{`[{"image": "a", "caption": "x", "image_id": {}}]`, `neither a whole number nor a text`},
	{`["a"]`, `entry 0: the value has the wrong type (got a JSON string)`},
	{`[{"image": "a", "caption": "x", "image_id": 1}, {"image": "a", "caption": "y", "image_id": 2}]`, `entry 1: image "a" has another image_id`},
}

func TestLoadCaptionsRefuses(t *testing.T) {
	dir := t.TempDir()
	for _, c := range badCaptions {
		writeFile(t, filepath.Join(dir, "l.json"), []byte(c.in))
		_, err := LoadCaptions(dir, []string{"l.json"}, Options{})
		var rec *table.RecordError
		if !errors.As(err, &rec) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "l.json") {
			t.Errorf("%s: got %v, want l.json and %q", c.in, err, c.want)
		}
	}
	if _, err := LoadCaptions(dir, []string{"none.json"}, Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if _, err := LoadCaptions(dir, nil, Options{}); err == nil || !strings.Contains(err.Error(), "data.captions.train_files") {
		t.Errorf("no file: %v", err)
	}
}

func FuzzParseCaptions(f *testing.F) {
	for _, c := range badCaptions {
		f.Add([]byte(c.in))
	}
	f.Add([]byte(`[{"image": "a", "caption": ["x", "y"], "image_id": "1"}]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer budgettest.Within(t, len(b))()
		recs, err := parseCaptions("f", b, Options{})
		if err != nil {
			return
		}
		ds, err := merge("root", recs, Options{})
		if err == nil && ds.Len() == 0 {
			t.Error("no image and no error")
		}
	})
}

const karpathy = `{"dataset": "tiny", "images": [
	{"imgid": 5, "filename": "a.jpg", "filepath": "val2014", "split": "train", "sentences": [{"raw": "A dog."}, {"raw": "Two."}]},
	{"imgid": 6, "filename": "b.jpg", "split": "restval", "sentences": [{"raw": "Three"}, {"raw": "  "}]},
	{"imgid": 7, "filename": "c.jpg", "split": "test", "sentences": []},
	{"filename": "d.jpg", "split": "test", "sentences": [{"raw": "Four"}]}]}`

func TestLoadKarpathy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "k.json")
	writeFile(t, file, []byte(karpathy))
	ds, err := LoadKarpathy(file, "root", "train", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if ds.Len() != 2 || ds.Name(0) != filepath.Join("root", "val2014", "a.jpg") || ds.Name(1) != filepath.Join("root", "b.jpg") {
		t.Errorf("%d images, %q", ds.Len(), ds.Name(0))
	}
	if !slices.Equal(ds.Captions(0), []string{"A dog.", "Two."}) || !slices.Equal(ds.Captions(1), []string{"Three"}) || ds.EmptyCaptions() != 1 || ds.ImageID(1) != 6 {
		t.Errorf("captions %v %v", ds.Captions(0), ds.Captions(1))
	}
	if ds, err = LoadKarpathy(file, "root", "test", Options{}); err != nil || ds.Len() != 2 || ds.ImageID(1) != 3 {
		t.Errorf("test split: %v", err)
	}
}

// badKarpathy are Karpathy files with what the error must say.
var badKarpathy = []struct{ in, split, want string }{
	{karpathy, "dev", `unknown split "dev"`},
	{karpathy, "val", `no image of split "val" (images per split: map[restval:1 test:2 train:1])`},
	{`[]`, "train", "not a Karpathy file"},
	{`{}`, "train", `"images" is missing or empty`},
	{`{"images": {"a": 1}}`, "train", "wrong type"},
	{`{"images": [{"split": "train"}]}`, "train", `entry 0: field "filename" is missing`},
	{`{"images": [{"filename": "a", "filename": "b", "split": "train"}]}`, "train", `entry 0: key "filename" is there twice`},
	{"{\"images\": [{\"filename\": \"\xff\", \"split\": \"train\"}]}", "train", "entry 0: byte 0xff at byte 15 is no UTF-8"},
	{`{"images": [{"filename": "a"}]}`, "train", `field "split" is missing`},
	{`{"images": [{"filename": "a", "split": "train", "imgid": "x"}]}`, "train", `field "imgid" has the wrong type`},
	{`{"images": [{"filename": "a", "split": "train", "sentences": [{}]}]}`, "train", `sentence 0 lacks "raw"`},
	{`{"images": [{"filename": "a", "split": "train", "imgid": 1}, {"filename": "b", "split": "train", "imgid": 1}]}`, "train", "entry 1: imgid 1 is that of entry 0"},
}

func TestLoadKarpathyRefuses(t *testing.T) {
	for _, c := range badKarpathy {
		if _, err := parseKarpathy("k.json", []byte(c.in), "", c.split, Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
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
		ds, err := parseKarpathy("f", b, "root", "train", Options{})
		if err == nil && ds.Len() == 0 {
			t.Error("no image and no error")
		}
	})
}

// memory is a data set of n small images with the given captions each.
func memory(n int, captions ...string) *Memory {
	m := &Memory{}
	for i := range n {
		img := transform.NewImage(4, 4)
		img.Pix[0] = uint8(i)
		m.Images = append(m.Images, img)
		var own []string
		for _, c := range captions {
			own = append(own, fmt.Sprint(c, " ", i))
		}
		m.Texts = append(m.Texts, own)
	}
	return m
}

func TestTrainVisitsEverythingOncePerEpoch(t *testing.T) {
	cfg := TrainConfig{Seed: 3, Transform: transform.Train{Size: 4}}
	tr, err := NewTrain(memory(10, "a", "b", "c"), cfg)
	if err != nil {
		t.Fatal(err)
	}
	var orders [3][]int64
	phrasings := map[string]bool{}
	for c := range uint64(30) {
		caption, id, err := tr.Describe(c)
		if err != nil {
			t.Fatal(err)
		}
		orders[c/10] = append(orders[c/10], id)
		phrasings[strings.Fields(caption)[0]] = true
		if strings.Fields(caption)[1] != fmt.Sprint(id) {
			t.Errorf("caption %q with image %d", caption, id)
		}
	}
	if slices.Equal(orders[0], orders[1]) || slices.Equal(orders[1], orders[2]) || len(phrasings) != 3 {
		t.Errorf("orders %v, phrasings %v", orders, phrasings)
	}
	for _, o := range orders {
		slices.Sort(o)
		if !slices.Equal(o, []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) {
			t.Errorf("an epoch visits %v", o)
		}
	}
	// Pairs: every caption of every image once.
	cfg.Pairs = true
	if tr, err = NewTrain(memory(4, "a", "b", "c"), cfg); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for c := range uint64(12) {
		caption, _, err := tr.Describe(c)
		if err != nil {
			t.Fatal(err)
		}
		seen[caption] = true
	}
	if tr.EpochSamples() != 12 || len(seen) != 12 {
		t.Errorf("%d pairs, %d seen", tr.EpochSamples(), len(seen))
	}
}

func TestTrainBadSamples(t *testing.T) {
	ds := memory(3, "a")
	ds.Texts[1] = nil
	ds.Images[2] = nil
	ds.IDs = []int64{1 << 40, -7, 1 << 40}
	tr, err := NewTrain(ds, TrainConfig{Transform: transform.Train{Size: 4}})
	if err != nil {
		t.Fatal(err)
	}
	if tr.dense[1<<40] != 0 || tr.dense[-7] != 1 {
		t.Errorf("dense ids %d and %d, want 0 and 1", tr.dense[1<<40], tr.dense[-7])
	}
	var errs []string
	for c := range uint64(3) {
		if _, err := picture(tr, c); err != nil {
			errs = append(errs, err.Error())
		}
	}
	slices.Sort(errs)
	if len(errs) != 2 || !strings.Contains(errs[0], "image 1: no caption") || !strings.Contains(errs[1], "image 2 is missing") {
		t.Errorf("got %q", errs)
	}
	if _, err := NewTrain(&Memory{}, TrainConfig{Transform: transform.Train{Size: 4}}); err == nil {
		t.Error("an empty data set must fail")
	}
	if _, err := NewTrain(ds, TrainConfig{}); err == nil {
		t.Error("size 0 must fail")
	}
}
