package neighbours

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/internal/budget/budgettest"
	"github.com/geoalign/geoalign/internal/filetest"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/ops/geometric"
)

// one is the file of a folder.
func one(t *testing.T, dir string) string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil || len(list) != 1 || !strings.HasPrefix(list[0].Name(), "neighbours-") {
		t.Fatalf("%v, %v", list, err)
	}
	return filepath.Join(dir, list[0].Name())
}

// A second Close is none of other lists, whose file may by then be mapped where that of the first was.
func TestClosedTwice(t *testing.T) {
	dir, config, e := t.TempDir(), some(t, nil), engine(t)
	find := func() *Lists {
		t.Helper()
		l, err := Images(t.Context(), open(t, config), Config{K: 4, Near: 9, Sampling: geometric.Closest, Anchor: true}, Options{Engine: e, Cache: dir})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	if err := find().Close(); err != nil { // of no file yet
		t.Fatal(err)
	}
	first, row, dst := find(), int32(0), make([]int32, 4)
	for first.Draw(1, 0, row, dst) != nil { // a row that is in a pair of training
		row++
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := find()
	if err := first.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
	if err := second.Draw(1, 0, row, dst); err != nil {
		t.Fatalf("lists that are open: %v", err)
	}
	if err := errors.Join(second.Close(), second.Close()); err != nil {
		t.Error(err)
	}
}

// Lists are found once. A file that is damaged, or of other rows under the name of these, is
// replaced with a note.
func TestCache(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "here")
	config := some(t, nil)
	c := Config{K: 4, Near: 9, Sampling: geometric.Closest, Anchor: true}
	var notes []string
	e := engine(t)
	find := func() *Lists {
		t.Helper()
		notes = nil
		l, err := Images(t.Context(), open(t, config), c, Options{Engine: e, Cache: dir, Note: func(s string) { notes = append(notes, s) }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l
	}
	first := find()
	path := one(t, dir)
	again := find()
	if notes != nil || !slices.Equal(first.near, again.near) || again.Recall() != 1 {
		t.Errorf("read again: %q", notes)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// other is the file with other lists, or another description, under a checksum that is right.
	other := func(near []int32, was, is string, shape ...int) []byte {
		f, err := safetensors.NewReader(bytes.NewReader(whole), int64(len(whole)))
		if err != nil {
			t.Fatal(err)
		}
		meta := f.Metadata()
		meta[descriptionKey] = strings.Replace(meta[descriptionKey], was, is, 1)
		var b bytes.Buffer
		if err := safetensors.WriteSummed(&b, []safetensors.Tensor{{Name: "near", Shape: shape, Data: near}}, meta); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	flipped := slices.Clone(whole)
	flipped[len(flipped)-3] ^= 1
	far := slices.Clone(first.near)
	far[7] = 82
	minus := slices.Clone(first.near)
	minus[7] = -1
	for want, b := range map[string][]byte{
		"it was damaged: its checksum":     flipped,
		"cannot be used":                   whole[:len(whole)/2],
		"too few":                          {},
		"row 82 at place 7 is none of the": other(far, "", "", 20, 9),
		"row -1 at place 7 is none of the": other(minus, "", "", 20, 9),
		"its lists are I32 [9 20]":         other(first.near, "", "", 9, 20),
		"it is of other rows":              other(first.near, `"near":9`, `"near":8`, 20, 9),
	} {
		filetest.Write(t, path, b)
		l := find()
		if len(notes) != 2 || !strings.Contains(notes[0], "neighbours are found anew: ") || !strings.Contains(notes[0], want) || !slices.Equal(l.near, first.near) {
			t.Errorf("want a note of %q: %q", want, notes)
		}
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, whole) {
			t.Errorf("%s: the file was not replaced (%v)", want, err)
		}
	}
	// Another budget, other rows and another number of neighbours have files of their own.
	config.Paired = 19
	find()
	c.Near = 8
	find()
	config.ImagePool = file(t, rows(30, 6, 5), 6)
	find()
	if list, err := os.ReadDir(dir); err != nil || len(list) != 4 {
		t.Errorf("%d files, %v", len(list), err)
	}
	// Without a place for them they are an error that says which key to set.
	blocked := filepath.Join(t.TempDir(), "file")
	filetest.Write(t, blocked, "")
	if _, err := Images(t.Context(), open(t, config), c, Options{Engine: e, Cache: filepath.Join(blocked, "x")}); err == nil || !strings.Contains(err.Error(), blocked) {
		t.Errorf("got %v", err)
	}
}

// FuzzCache gives any bytes as a file of lists.
func FuzzCache(f *testing.F) {
	p, err := features.Open(some(f, nil), 4)
	if err != nil {
		f.Fatal(err)
	}
	defer p.Close()
	dir := f.TempDir()
	c := Config{K: 4, Near: 9, Sampling: geometric.Closest}
	l, err := Images(f.Context(), p, c, Options{Engine: engine(f), Cache: dir})
	if err != nil {
		f.Fatal(err)
	}
	d, err := l.describe(f.Context(), Options{})
	if err != nil {
		f.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(names) != 1 {
		f.Fatal(names, err)
	}
	b := filetest.Read(f, names[0])
	f.Add(b)
	f.Add(b[:100])
	f.Fuzz(func(t *testing.T, b []byte) {
		defer budgettest.Within(t, len(b))()
		x := &Lists{Config: l.Config, side: l.side, pool: l.pool, anchors: l.anchors, most: min(c.Near, l.pool.Rows()-1)}
		if x.parse(b, d) != nil {
			return
		}
		dst := make([]int32, 4)
		for i := range int32(60) {
			if x.Draw(1, 1, i, dst) == nil && (slices.Min(dst) < 0 || slices.Max(dst) >= int32(l.pool.Rows())) {
				t.Errorf("row %d has the neighbours %v", i, dst)
			}
		}
	})
}

// TestCacheThatCannotBeWritten: lists that were found are used where their file cannot be written, with a note.
func TestCacheThatCannotBeWritten(t *testing.T) {
	dir, config, e := t.TempDir(), some(t, nil), engine(t)
	var notes []string
	find := func() *Lists {
		t.Helper()
		l, err := Images(t.Context(), open(t, config), Config{K: 4, Near: 9, Sampling: geometric.Closest}, Options{Engine: e, Cache: dir, Note: func(s string) { notes = append(notes, s) }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l
	}
	want := find()
	path := one(t, dir)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o777); err != nil { // where the file would be
		t.Fatal(err)
	}
	notes = nil
	if got := find(); !slices.Equal(got.near, want.near) || len(notes) == 0 || !strings.Contains(notes[len(notes)-1], "cannot be kept in data.cache_dir") {
		t.Errorf("notes %q", notes)
	}
}
