package embed

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/gallery"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/filetest"
)

// writeNPY writes n rows of two numbers.
func writeNPY(t *testing.T, path string, n int) {
	t.Helper()
	check.OK(t, features.Write(path, func(emit func([]float32) error) error {
		for i := range n {
			if err := emit([]float32{float32(i) + 1, float32(-i)}); err != nil {
				return err
			}
		}
		return nil
	}))
}

// TestImportRows: rows with what is known of them become a gallery, and come back from a table that it was exported to.
func TestImportRows(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	writeNPY(t, at("x.npy"), 5)
	lines := `{"id":"a","payload":{"k":1.5,"of":{"x":[1,null]}}}` + "\n" + `{"row":7,"name":"b.png"}` + "\n{}\n" +
		`{"caption":"a \"dog\", <running>","other":2}` + "\n" + `{"id":"e","name":"f","payload":null}` + "\n"
	filetest.Write(t, at("x.jsonl"), lines)
	done := []int{}
	o := ImportOptions{Side: gallery.Text, Shard: 2, Progress: func(n, of int) { done = append(done, n, of) }}
	if n := check.Get(ImportRows(t.Context(), at("x.npy"), at("new/g"), o))(t); n != 5 || !slices.Equal(done, []int{2, 5, 4, 5, 5, 5}) {
		t.Errorf("%d rows, done %v", n, done)
	}
	g := check.Get(gallery.Open(at("new/g")))(t)
	view := check.Get(g.View(gallery.Text, gallery.Text))(t)
	check.Get(view.Export(t.Context(), at("y.parquet")))(t)
	check.Get(ImportRows(t.Context(), at("y.parquet"), at("again"), ImportOptions{Side: gallery.Text}))(t)
	again := check.Get(gallery.Open(at("again")))(t)
	for i, want := range []string{"a", "b.png", "2", "3", "e"} {
		for _, g := range []*gallery.Gallery{g, again} {
			item := check.Get(g.Item(gallery.Text, i))(t)
			if row := check.Get(g.Row(gallery.Text, i))(t); item.ID != want || !slices.Equal(row, []float32{float32(i) + 1, float32(-i)}) {
				t.Errorf("%s: row %d has the id %s: %v", g.Path, i, item.ID, row)
			}
			switch {
			case i == 0 && string(item.Payload) != `{"k":1.5,"of":{"x":[1,null]}}`, i == 1 && item.Name != "b.png",
				i == 3 && item.Caption != `a "dog", <running>`, i == 4 && item.Name != "f":
				t.Errorf("%s: row %d is %+v", g.Path, i, item)
			}
		}
	}
	check.OK(t, g.Close())
	check.OK(t, again.Close())
	writeNPY(t, at("bare.npy"), 3)
	if n := check.Get(ImportRows(t.Context(), at("bare.npy"), at("bare"), ImportOptions{}))(t); n != 3 {
		t.Errorf("%d rows", n)
	}
}

// TestImportRowsRefused: what is wrong with a file or its lines is said, and no folder is left of it.
func TestImportRowsRefused(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	writeNPY(t, at("x.npy"), 2)
	for lines, want := range map[string]string{
		"{}\n": "there are lines for 1 rows of 2", "{}\n{}\n{}\n": "x.jsonl has lines for more than its 2 rows",
		"{}\n[]\n": "line 2", "{}\n5\n": "line 2", "{}\nnull\n": "line 2: it is not an object", "{\"id\":5}\n{}\n": `line 1: "id" must be a string, not a number`,
		"{\"id\":\"a\",\"id\":\"b\"}\n{}\n": "line 1", "{\n": "line 1",
	} {
		filetest.Write(t, at("x.jsonl"), lines)
		_, err := ImportRows(t.Context(), at("x.npy"), at("g"), ImportOptions{})
		check.Error(t, err, want)
		if list := check.Get(filepath.Glob(at("*g*")))(t); len(list) > 0 {
			t.Fatalf("%q leaves %v", lines, list)
		}
	}
	check.OK(t, os.Mkdir(at("g"), 0o777))
	_, err := ImportRows(t.Context(), at("x.npy"), at("g"), ImportOptions{})
	check.Error(t, err, "is there already: name a new folder")
	_, err = ImportRows(t.Context(), at("none.npy"), at("h"), ImportOptions{})
	check.Error(t, err, "none.npy")
}
