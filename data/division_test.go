package data

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Every image is in one split, all its captions with it, by its name alone; shares are those that were asked for.
func TestDivide(t *testing.T) {
	count := map[string]int{}
	const n = 20000
	for i := range n {
		name := fmt.Sprintf("d/%d.png", i)
		var in []string
		for _, split := range splits {
			if Divide(split, 5, 2.5)(name) {
				in = append(in, split)
			}
			if Divide(split, 5, 2.5)("./d//"+name[2:]) != Divide(split, 5, 2.5)(name) {
				t.Fatal(name)
			}
		}
		if len(in) != 1 {
			t.Fatal(name, in)
		}
		count[in[0]]++
	}
	for split, share := range map[string]float64{"val": .05, "test": .025, "train": .925} {
		if got := float64(count[split]) / n; math.Abs(got-share) > 4*math.Sqrt(share*(1-share)/n) {
			t.Errorf("%s is %g, want about %g", split, got, share)
		}
	}
	if a, b := Divide("val", 50, 0)("caf\u00e9.png"), Divide("val", 50, 0)("cafe\u0301.png"); a != b {
		t.Error("normal forms are in two splits")
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
	writeFile(t, filepath.Join(dir, "l.json"), []byte("["+strings.Join(list, ",")+"]"))
	writeFile(t, filepath.Join(dir, "t.csv"), []byte("filepath,title\n"+strings.Join(table, "")))
	seen := map[string]bool{}
	for _, split := range splits {
		opt := Options{Keep: Divide(split, 20, 20)}
		a, err := LoadCaptions(dir, []string{"l.json"}, opt)
		if err != nil {
			t.Fatal(err)
		}
		b, err := LoadCSV(dir, []string{filepath.Join(dir, "t.csv")}, plainCSV, opt)
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
	none := Options{Keep: func(string) bool { return false }}
	if _, err := LoadCaptions(dir, []string{"l.json"}, none); err == nil || !strings.Contains(err.Error(), "raise data.split") {
		t.Error(err)
	}
	if _, err := LoadCSV(dir, []string{filepath.Join(dir, "t.csv")}, plainCSV, none); err == nil || !strings.Contains(err.Error(), "raise data.split") {
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
	writeFile(t, filepath.Join(dir, "d", "a.png"), onePixel(t))
	writeFile(t, filepath.Join(dir, nfd), onePixel(t))
	writeFile(t, filepath.Join(dir, "l.json"), []byte(`[{"image": "d\\a.png", "caption": "x"}, {"image": "./d//a.png", "caption": "y"}, {"image": "`+nfc+`", "caption": "z"}]`))
	f, err := LoadCaptions(dir, []string{"l.json"}, Options{})
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
	if err := isFile(filepath.Join(dir, nfc)); err == nil || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
	// A table on Windows' names.
	writeFile(t, filepath.Join(dir, "t.csv"), []byte("filepath,title\nd\\a.png,x\nd/a.png,y\n"))
	table, err := LoadCSV(dir, []string{filepath.Join(dir, "t.csv")}, plainCSV, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	if _, err := table.Image(0); err != nil || table.Len() != 1 || !strings.Contains(table.Account().String(), "backslashes in the path, which are read as slashes: 1") {
		t.Errorf("%d images, %s, %v", table.Len(), table.Account(), err)
	}
}

// onePixel is a picture of one pixel.
func onePixel(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewRGBA(image.Rect(0, 0, 1, 1))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
