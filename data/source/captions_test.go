package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/table"
	"github.com/geoalign/geoalign/internal/budget/budgettest"
	"github.com/geoalign/geoalign/internal/filetest"
)

func TestLoadCaptions(t *testing.T) {
	dir := t.TempDir()
	abs := filepath.Join(t.TempDir(), "b.png")
	for path, shade := range map[string]uint8{filepath.Join(dir, "a.png"): 10, abs: 20} {
		var b bytes.Buffer
		if err := png.Encode(&b, &image.Gray{Pix: []uint8{shade}, Stride: 1, Rect: image.Rect(0, 0, 1, 1)}); err != nil {
			t.Fatal(err)
		}
		filetest.Write(t, path, b.Bytes())
	}
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
	filetest.Write(t, filepath.Join(dir, "l.json"), append([]byte("\xef\xbb\xbf"), b...))
	ds, err := LoadCaptions(dir, []string{filepath.Join(dir, "l.json")}, data.Options{})
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
		recs, err := parseCaptions("f", []byte(c.json), data.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ds, err := merge("", recs, data.Options{})
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
	{"[{\"image\": \"a\", \"caption\": \"caf\xe9\"}]", "entry 0: byte 0xe9 at byte 31 is not UTF-8: save the file as UTF-8 text"},
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
		filetest.Write(t, filepath.Join(dir, "l.json"), []byte(c.in))
		_, err := LoadCaptions(dir, []string{filepath.Join(dir, "l.json")}, data.Options{})
		var rec *table.RecordError
		if !errors.As(err, &rec) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "l.json") {
			t.Errorf("%s: got %v, want l.json and %q", c.in, err, c.want)
		}
	}
	if _, err := LoadCaptions(dir, []string{filepath.Join(dir, "none.json")}, data.Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if _, err := LoadCaptions(dir, nil, data.Options{}); err == nil || !strings.Contains(err.Error(), "data.captions.train_files") {
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
		recs, err := parseCaptions("f", b, data.Options{})
		if err != nil {
			return
		}
		ds, err := merge("root", recs, data.Options{})
		if err == nil && ds.Len() == 0 {
			t.Error("no image and no error")
		}
	})
}

// TestManyCaptionsOfOneImage: captions of one image are collected in memory that grows with them.
func TestManyCaptionsOfOneImage(t *testing.T) {
	const n = 20_000
	b := []byte("[" + strings.TrimSuffix(strings.Repeat(`{"image":"a.png","caption":"a dog"},`, n), ",") + "]")
	done := budgettest.Within(t, len(b))
	recs, err := parseCaptions("a.json", b, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ds, err := merge("", recs, data.Options{})
	done()
	if err != nil || ds.Len() != 1 || len(ds.Captions(0)) != n {
		t.Error(err)
	}
}

// TestLongEntries: the error of an entry of any length is short.
func TestLongEntries(t *testing.T) {
	b := []byte(`[{"image": "` + strings.Repeat("x", 5_000_000) + `"}]`)
	if _, err := parseCaptions("a.json", b, data.Options{}); err == nil || len(err.Error()) > 3000 || !strings.Contains(err.Error(), " bytes] ... ") {
		t.Errorf("%.1000v", err)
	}
}

// Lists and tables are divided alike.
func TestDividedLists(t *testing.T) {
	dir := t.TempDir()
	var list, table []string
	for i := range 60 {
		list = append(list, fmt.Sprintf(`{"image": "%d.png", "caption": "one"}, {"image": "./%d.png", "caption": "two"}`, i, i))
		table = append(table, fmt.Sprintf("%d.png,one\n./%d.png,two\n", i, i))
	}
	filetest.Write(t, filepath.Join(dir, "l.json"), []byte("["+strings.Join(list, ",")+"]"))
	filetest.Write(t, filepath.Join(dir, "t.csv"), []byte("filepath,title\n"+strings.Join(table, "")))
	seen := map[string]bool{}
	for _, split := range Splits {
		opt := data.Options{Keep: data.Divide(split, 20, 20)}
		a, err := LoadCaptions(dir, []string{filepath.Join(dir, "l.json")}, opt)
		if err != nil {
			t.Fatal(err)
		}
		b, err := data.LoadCSV(dir, []string{filepath.Join(dir, "t.csv")}, plainCSV, opt)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		if a.Len() != b.Len() || a.Len() < 4 || !a.Account().Whole() || !b.Account().Whole() || b.Account().Units[0].Used != 2*b.Len() {
			t.Fatalf("%s: %d and %d images, %s, %s", split, a.Len(), b.Len(), a.Account(), b.Account())
		}
		for i := range a.Len() {
			if seen[a.Name(i)] || a.Name(i) != b.Name(i) || !slices.Equal(a.Captions(i), []string{"one", "two"}) || !slices.Equal(b.Captions(i), a.Captions(i)) {
				t.Errorf("%s: %s and %s, %q, %q", split, a.Name(i), b.Name(i), a.Captions(i), b.Captions(i))
			}
			seen[a.Name(i)] = true
		}
	}
	if len(seen) != 60 {
		t.Errorf("%d of 60 images", len(seen))
	}
	none := data.Options{Keep: func(string) bool { return false }}
	if _, err := LoadCaptions(dir, []string{filepath.Join(dir, "l.json")}, none); err == nil || !strings.Contains(err.Error(), "raise data.split") {
		t.Error(err)
	}
	if _, err := data.LoadCSV(dir, []string{filepath.Join(dir, "t.csv")}, plainCSV, none); err == nil || !strings.Contains(err.Error(), "raise data.split") {
		t.Error(err)
	}
}

// Names of one list are one image where they differ in their writing alone, and a missing file says whether another Unicode normal form
// of its name is there.
func TestNamesOfLists(t *testing.T) {
	dir := t.TempDir()
	const nfc, nfd = "caf\u00e9.png", "cafe\u0301.png"
	if err := os.MkdirAll(filepath.Join(dir, "d"), 0o755); err != nil {
		t.Fatal(err)
	}
	filetest.Write(t, filepath.Join(dir, "d", "a.png"), onePixel(t))
	filetest.Write(t, filepath.Join(dir, nfd), onePixel(t))
	filetest.Write(t, filepath.Join(dir, "l.json"), []byte(`[{"image": "d\\a.png", "caption": "x"}, {"image": "./d//a.png", "caption": "y"}, {"image": "`+nfc+`", "caption": "z"}]`))
	f, err := LoadCaptions(dir, []string{filepath.Join(dir, "l.json")}, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if f.Len() != 2 || !slices.Equal(f.Captions(0), []string{"x", "y"}) || !strings.Contains(f.Account().String(), "backslashes in the name, which are read as slashes: 1") {
		t.Errorf("%d images, %q, %s", f.Len(), f.Captions(0), f.Account())
	}
	if _, err := f.Image(0); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, nfc)); err == nil {
		t.Skip("this file system does not tell NFC from NFD")
	}
	const want = "a file whose name differs only in Unicode normalisation (the list has NFC, the file NFD)"
	if _, err := f.Image(1); err == nil || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
	// A table on Windows' names.
	filetest.Write(t, filepath.Join(dir, "t.csv"), []byte("filepath,title\nd\\a.png,x\nd/a.png,y\n"))
	table, err := data.LoadCSV(dir, []string{filepath.Join(dir, "t.csv")}, plainCSV, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	if _, err := table.Image(0); err != nil || table.Len() != 1 || !strings.Contains(table.Account().String(), "backslashes in the path, which are read as slashes: 1") {
		t.Errorf("%d images, %s, %v", table.Len(), table.Account(), err)
	}
}

var plainCSV = data.CSVConfig{Image: "filepath", Caption: "title"}

// onePixel is a picture of one pixel.
func onePixel(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewRGBA(image.Rect(0, 0, 1, 1))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
