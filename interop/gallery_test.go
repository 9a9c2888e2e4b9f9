package interop

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/gallery"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/run/embed"
	"github.com/geoalign/geoalign/search"
)

// TestGalleryExport: FAISS, DuckDB and a reader of CSV find in exported files what a search of the gallery finds. FAISS
// writes the files that it read with the same bytes.
func TestGalleryExport(t *testing.T) {
	const n, c, row = 300, 24, 7
	interpreter, dir := python(t), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	r := rand.New(rand.NewPCG(1, 2))
	check.OK(t, features.Write(at("rows.npy"), func(emit func([]float32) error) error {
		x := make([]float32, c)
		for range n {
			for i := range x {
				x[i] = float32(r.NormFloat64())
			}
			if err := emit(x); err != nil {
				return err
			}
		}
		return nil
	}))
	var lines strings.Builder
	for i := range n {
		fmt.Fprintf(&lines, "{\"id\":\"r%d\",\"payload\":{\"k\":%d,\"text\":\"a \\\"q\\\", b\\nc\"}}\n", i, i%10)
	}
	check.OK(t, os.WriteFile(at("rows.jsonl"), []byte(lines.String()), 0o666))
	check.Get(embed.ImportRows(t.Context(), at("rows.npy"), at("g"), embed.ImportOptions{}))(t)
	g := check.Get(gallery.Open(at("g")))(t)
	defer g.Close()
	e := check.Get(compute.New(compute.Options{}))(t)
	defer e.Close()
	find := func(metric search.Metric, filter string, names ...string) *search.Hits {
		check.OK(t, g.CompareBy(metric))
		v := check.Get(g.View(gallery.Image, gallery.Image))(t)
		for _, name := range names {
			check.Get(v.Export(t.Context(), at(name)))(t)
		}
		o := gallery.Options{K: 5, Exact: true}
		if filter != "" {
			o.Rows = check.Get(g.Select(gallery.Image, check.Get(gallery.ParseFilter([]byte(filter)))(t)))(t)
		}
		return check.Get(v.Search(t.Context(), e, check.Get(g.Row(gallery.Image, row))(t), o))(t)
	}
	cosine, l2 := find(search.Cosine, "", "x.faiss", "x.npy", "x.parquet", "x.csv"), find(search.L2, "", "y.faiss")
	chosen := find(search.Cosine, `{"k": {"lt": 3}}`)
	b, err := exec.Command(interpreter, "gallery_load.py", dir, fmt.Sprint(row)).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, err.(*exec.ExitError).Stderr)
	}
	type flat struct {
		Rows   []int32
		Scores []float32
		Same   bool
	}
	var got struct {
		X, Y    flat
		Parquet [][3]any
		CSV     struct {
			Equal   bool
			ID      string
			Payload map[string]any
		}
	}
	check.OK(t, json.Unmarshal(b, &got))
	near := func(a, b float64) bool { return math.Abs(a-b) < 1e-5 }
	for k := range 5 {
		if !near(float64(got.X.Scores[k]), float64(cosine.Scores[k])) || math.Abs(float64(got.Y.Scores[k]-l2.Scores[k]*l2.Scores[k])) > 1e-4 {
			t.Errorf("scores %v and %v, want %v and squares of %v", got.X.Scores, got.Y.Scores, cosine.Scores, l2.Scores)
		}
		if p := got.Parquet[k]; p[0] != fmt.Sprint("r", chosen.Rows[k]) || p[1] != fmt.Sprint(chosen.Rows[k]%10) || !near(p[2].(float64), float64(chosen.Scores[k])) {
			t.Errorf("DuckDB finds %v, want row %d of %v", p, chosen.Rows[k], chosen.Scores[k])
		}
	}
	if !slices.Equal(got.X.Rows, cosine.Rows) || !slices.Equal(got.Y.Rows, l2.Rows) || !got.X.Same || !got.Y.Same {
		t.Errorf("FAISS finds %+v and %+v, want %v and %v", got.X, got.Y, cosine.Rows, l2.Rows)
	}
	if !got.CSV.Equal || got.CSV.ID != "r7" || got.CSV.Payload["text"] != "a \"q\", b\nc" {
		t.Errorf("%+v", got.CSV)
	}
}
