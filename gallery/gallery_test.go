package gallery

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/internal/budget/budgettest"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/search"
)

// writeShards writes a gallery of images in shards of so many rows of width c and returns the
// rows.
func writeShards(t testing.TB, dir string, c int, sizes ...int) []float32 {
	t.Helper()
	n := 0
	for _, size := range sizes {
		n += size
	}
	r, all := rand.New(rand.NewPCG(1, 2)), make([]float32, n*c)
	for i := range all {
		all[i] = float32(r.NormFloat64())
	}
	writeRows(t, dir, all, c, sizes...)
	return all
}

// writeRows is writeShards of rows that are given.
func writeRows(t testing.TB, dir string, all []float32, c int, sizes ...int) {
	t.Helper()
	m := Manifest{Version: 1, Side: Image, Source: "images", Dim: c, Complete: true, Root: dir, Meta: Meta{Score: "cosine", Product: true, Space: "sphere"}}
	for k, n := range sizes {
		x := all[m.Rows*c : (m.Rows+n)*c]
		s := Shard{Features: fmt.Sprintf("images-%05d.safetensors", k), Names: fmt.Sprintf("images-%05d.jsonl", k),
			Rows: n, Inputs: n}
		f := check.Get(os.Create(filepath.Join(dir, s.Features)))(t)
		check.OK(t, errors.Join(safetensors.Write(f, []safetensors.Tensor{{Name: "image", Shape: []int{n, c}, Data: x}},
			nil), f.Close()))
		st := check.Get(os.Stat(f.Name()))(t)
		s.FeaturesBytes, s.FeaturesSum = st.Size(), sumOf(t, f.Name())
		var names strings.Builder
		for i := range n {
			fmt.Fprintf(&names, "{\"row\":%d,\"name\":\"%d%s.png\"}\n", i, m.Rows+i,
				strings.Repeat("x", i*311%min(5000, 2_000_000/n)))
		}
		check.OK(t, os.WriteFile(filepath.Join(dir, s.Names), []byte(names.String()), 0o666))
		s.NamesBytes, s.NamesSum = int64(names.Len()), sumOf(t, filepath.Join(dir, s.Names))
		m.Shards, m.Rows = append(m.Shards, s), m.Rows+n
	}
	check.OK(t, m.Write(dir))
}

func sumOf(t testing.TB, path string) string {
	t.Helper()
	_, sum := check.Get2(SumFile(t.Context(), path))(t)
	return sum
}

// Shards read as one gallery: rows, names and searches cross from file to file.
func TestShards(t *testing.T) {
	dir, c := t.TempDir(), 8
	all := writeShards(t, dir, c, 70, 0, 1, 129)
	g := check.Get(Open(dir))(t)
	defer g.Close()
	if g.Rows(Image) != 200 || g.Dim() != c || g.Rows(Text) != 0 {
		t.Fatalf("%d x %d", g.Rows(Image), g.Dim())
	}
	for i := range 200 {
		item, err := g.Item(Image, i)
		if err != nil || item.Row != i || !strings.HasPrefix(item.Name, fmt.Sprint(i)) ||
			strings.Trim(item.Name, "0123456789x") != ".png" {
			t.Fatalf("row %d is %+.60v: %v", i, item, err)
		}
		row, err := g.Row(Image, i)
		if err != nil || fmt.Sprint(row) != fmt.Sprint(all[i*c:(i+1)*c]) {
			t.Fatalf("row %d: %v", i, err)
		}
	}
	some := make([]float32, 100*c)
	if err := g.tables[Image].ReadRows(50, some); err != nil || fmt.Sprint(some) != fmt.Sprint(all[50*c:150*c]) {
		t.Errorf("rows across files differ: %v", err)
	}
	for _, i := range []int{-1, 200} {
		if _, err := g.Item(Image, i); err == nil {
			t.Errorf("there is a row %d", i)
		}
	}
	if path, err := g.ImageFile(3); err != nil || filepath.Dir(path) != dir {
		t.Errorf("%s: %v", path, err)
	}
}

// viewed opens a gallery, which the caller closes, and its images as texts find them.
func viewed(t testing.TB, dir string) (*Gallery, *View) {
	t.Helper()
	g := check.Get(Open(dir))(t)
	v := check.Get(g.View(Image, Text))(t)
	return g, v
}

// TestRecallIsThatOfTheSearch: an index that was built for a low recall has the usual one for searches that ask for
// none.
func TestRecallIsThatOfTheSearch(t *testing.T) {
	dir := t.TempDir()
	writeShards(t, dir, 8, 600, 600)
	e := check.Get(compute.New(compute.Options{Backend: "plain", Threads: 1}))(t)
	defer e.Close()
	recall := func(asked float64) float64 {
		g, v := viewed(t, dir)
		defer g.Close()
		check.OK(t, v.UseIndex(t.Context(), e, IndexOptions{From: 600, Recall: asked}))
		r, ok := v.Indexed()
		if !ok {
			t.Fatal("there is no index")
		}
		return r
	}
	if low, usual := recall(0.2), recall(0); low > 0.8 || usual < 0.95 {
		t.Errorf("recall %v of an index for 0.2, then %v without a wish", low, usual)
	}
}

// TestIndexCodes: an index keeps what was asked for, is built again, with a note, where something else is, and stays
// where nothing is.
func TestIndexCodes(t *testing.T) {
	dir := t.TempDir()
	all := writeShards(t, dir, 8, 600, 600)
	e := check.Get(compute.New(compute.Options{Backend: "plain", Threads: 1}))(t)
	defer e.Close()
	for i, c := range []struct{ ask, has search.Codes }{{"", search.Bytes}, {search.Bits, search.Bits}, {"", search.Bits},
		{search.Bits, search.Bits}, {search.Bytes, search.Bytes}} {
		g, v := viewed(t, dir)
		said := ""
		check.OK(t, v.UseIndex(t.Context(), e, IndexOptions{From: 600, Recall: 1, Codes: c.ask,
			Say: func(format string, args ...any) { said += fmt.Sprintf(format, args...) }}))
		if v.Codes() != c.has || (said != "") != (i == 1 || i == 4) {
			t.Errorf("%q: an index of %s, said %q", c.ask, v.Codes(), said)
		}
		hits := check.Get(v.Search(t.Context(), e, all[:8], Options{K: 5}))(t)
		exact := check.Get(v.Search(t.Context(), e, all[:8], Options{K: 5, Exact: true}))(t)
		if hits.Rows[0] != exact.Rows[0] {
			t.Errorf("%s: %v, compared all %v", c.has, hits.Rows, exact.Rows)
		}
		check.OK(t, g.Close())
	}
	g, v := viewed(t, dir)
	defer g.Close()
	if check.OK(t, v.UseIndex(t.Context(), e, IndexOptions{From: 1201, Codes: search.Bits})); v.Codes() != "" {
		t.Errorf("%s without an index", v.Codes())
	}
}

// An index is built once, kept beside the gallery, and made anew for other rows.
func TestIndexIsKept(t *testing.T) {
	dir := t.TempDir()
	all := writeShards(t, dir, 8, 300, 300)
	e := check.Get(compute.New(compute.Options{Backend: "plain", Threads: 1}))(t)
	defer e.Close()
	search := func() (built bool, first int32) {
		g, v := viewed(t, dir)
		defer g.Close()
		check.OK(t, v.UseIndex(t.Context(), e,
			IndexOptions{From: 600, Progress: func(stage string, _, _ int) {
				built = built ||
					stage != "compare rows"
			}}))
		if recall, ok := v.Indexed(); !ok || recall < 0.9 {
			t.Errorf("recall %v, %v", recall, ok)
		}
		hits := check.Get(v.Search(t.Context(), e, all[:8], Options{K: 3, Skip: []int32{0}}))(t)
		exact, err := v.Search(t.Context(), e, all[:8], Options{K: 3, Skip: []int32{0}, Exact: true})
		if err != nil || exact.Scores[0] < hits.Scores[0] || exact.Rows[0] == 0 {
			t.Errorf("exact %v, by the index %v: %v", exact.Scores, hits.Scores, err)
		}
		return built, exact.Rows[0]
	}
	if built, _ := search(); !built {
		t.Error("no index was built")
	}
	if built, _ := search(); built {
		t.Error("the index was built again")
	}
	writeShards(t, dir, 8, 200, 400) // the rows of another seed place
	if built, _ := search(); built {
		t.Error("the index of the same rows in other shards was built again")
	}
	all[len(all)/2]++
	writeRows(t, dir, all, 8, 200, 400)
	if built, _ := search(); !built {
		t.Error("the index of other rows was used")
	}
}

// What is cut, incomplete or points elsewhere is refused with what to do.
func TestOpenRefuses(t *testing.T) {
	edit := func(change func(m *Manifest)) func(dir string) error {
		return func(dir string) error {
			m, err := ReadManifest(dir)
			if err != nil {
				return err
			}
			change(m)
			return m.Write(dir)
		}
	}
	for want, spoil := range map[string]func(dir string) error{
		"is not complete":                   edit(func(m *Manifest) { m.Complete = false }),
		"which is not a name in the folder": edit(func(m *Manifest) { m.Shards[0].Names = "../x.jsonl" }),
		"its side must be":                  edit(func(m *Manifest) { m.Side = "both" }),
		"it has version 2":                  edit(func(m *Manifest) { m.Version = 2 }),
		"its shards have 15":                edit(func(m *Manifest) { m.Rows = 16 }),
		"it has 300 bytes, and index.json says 152: run the same embed again": func(
			dir string) error {
			return os.Truncate(filepath.Join(dir, "images-00001.safetensors"), 300)
		},
		"it has 27 bytes, and index.json says ": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "images-00000.jsonl"), []byte(strings.Repeat("{}\n", 9)), 0o666)
		},
		"neither features.safetensors nor index.json": func(dir string) error {
			return os.Remove(filepath.Join(dir,
				ManifestFile))
		},
	} {
		dir := t.TempDir()
		writeShards(t, dir, 4, 10, 5)
		check.OK(t, spoil(dir))
		if g, err := Open(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
			if err == nil {
				g.Close()
			}
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) ||
		!strings.Contains(err.Error(), "give a folder that embed wrote") {
		t.Errorf("no folder: %v", err)
	}
}

// FuzzManifest: whatever is in an index.json, it is refused or can be written again.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"version":1,"side":"image","dim":2,"rows":1,"shards":[{"features":"a","rows":1,"inputs":1}]}`))
	f.Add([]byte(`{"version":1,"side":"text","dim":2,"rows":-1,"shards":[{"features":"/etc/passwd","rows":-1}]}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer budgettest.Within(t, len(b))()
		m, err := parseManifest(b)
		if err != nil {
			return
		}
		for _, s := range m.Shards {
			if strings.ContainsAny(s.Features+s.Names, "/") {
				t.Errorf("a shard points to %q", s.Features+s.Names)
			}
		}
		again := check.Get(json.Marshal(m))(t)
		if _, err := parseManifest(again); err != nil {
			t.Errorf("%s is not read again: %v", again, err)
		}
	})
}
