package source

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/internal/budget/budgettest"
	"github.com/geoalign/geoalign/internal/filetest"
	"github.com/geoalign/geoalign/internal/names"
)

const tokenFile = "\ufeffa.jpg#0\tTwo dogs .\r\nb.jpg#0\tA # cat\nA red#bus.jpg#0\tA bus\n\na.jpg#1\tDogs\nb.jpg#1\t\n"

func TestLoadFlickr(t *testing.T) {
	dir := t.TempDir()
	file, list := filepath.Join(dir, "results_20130124.token"), filepath.Join(dir, "list.txt")
	filetest.Write(t, file, []byte(tokenFile))
	filetest.Write(t, list, []byte("b.jpg\n a \n\n"))
	for _, c := range []struct {
		list     string
		files    []string
		captions [][]string
	}{
		{"", []string{"a.jpg", "b.jpg", "A red#bus.jpg"}, [][]string{{"Two dogs .", "Dogs"}, {"A # cat"}, {"A bus"}}},
		{list, []string{"b.jpg", "a.jpg"}, [][]string{{"A # cat"}, {"Two dogs .", "Dogs"}}},
	} {
		ds, err := LoadFlickr(file, "root", c.list, data.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i, name := range c.files {
			if ds.Name(i) != filepath.Join("root", name) || !slices.Equal(ds.Captions(i), c.captions[i]) || ds.ImageID(i) != int64(i) {
				t.Errorf("%d is %s, %q", ds.ImageID(i), ds.Name(i), ds.Captions(i))
			}
		}
		if ds.Len() != len(c.files) || ds.EmptyCaptions() != 1 {
			t.Errorf("%d images, %d empty captions", ds.Len(), ds.EmptyCaptions())
		}
	}
}

func TestFlickrRefuses(t *testing.T) {
	for _, c := range []struct{ captions, list, want string }{
		{"", "", "captions: it has no caption"},
		{"a.jpg#0\tx\nfilepath,title\n", "", `captions: line 2: want image.jpg#0, a tab and a caption (got "filepath,title")`},
		{"a.jpg\tx\n", "", "captions: line 1: want image.jpg#0"},
		{"a.jpg#x\ty\n", "", "captions: line 1: want image.jpg#0"},
		{"a.jpg#0\tx\n", "\n", "list: it names no image"},
		{"a.jpg#0\tx\n", "a\n\nb.jpg\n", `list: line 3: image "b.jpg" has no caption`},
		{"a.jpg#0\tx\n", "a\na.jpg\n", `list: line 2: image "a.jpg" was named before`},
	} {
		list, _, err := parseFlickr("captions", []byte(c.captions), &names.List{})
		if err == nil {
			_, err = parseImageList("list", []byte(c.list), list, nil)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q, %q: %v, want %q", c.captions, c.list, err, c.want)
		}
	}
}

func FuzzParseFlickr(f *testing.F) {
	f.Add([]byte(tokenFile), []byte("a\nb.jpg\n"))
	f.Add([]byte("#\t"), []byte(".jpg"))
	f.Fuzz(func(t *testing.T, b, list []byte) {
		defer budgettest.Within(t, len(b)+len(list))()
		listed, captions, err := parseFlickr("f", b, &names.List{})
		if err != nil {
			return
		}
		if len(listed) == 0 || len(listed) != len(captions) {
			t.Errorf("%d names, %d images", len(listed), len(captions))
		}
		if chosen, err := parseImageList("l", list, listed, nil); err == nil && (len(chosen) == 0 || len(chosen) > len(listed)) {
			t.Errorf("%d of %d images", len(chosen), len(listed))
		}
	})
}
