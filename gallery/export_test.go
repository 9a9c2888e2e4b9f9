package gallery

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/search"
)

// Flat indices of FAISS 1.15.1, as faiss.write_index wrote them: of the rows (0.6, 0.8) and (0, 1) by their products, of
// (3, 4) and (0, 2) by their distances.
const (
	faissFlatIP = "4978464902000000020000000000000000001000000000000000100000000000010000000004000000000000009a99193fcdcc4c3f000000000000803f"
	faissFlatL2 = "49784632020000000200000000000000000010000000000000001000000000000101000000040000000000000000004040000080400000000000000040"
)

// TestExport: files have the rows that are there now, with what is known of them, in their order.
func TestExport(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	writeRows(t, dir, []float32{1, 0, 3, 4, 5, 5}, 2, 2, 1)
	m := check.Get(ReadManifest(dir))(t)
	m.Meta = Meta{}
	check.OK(t, m.Write(dir))
	w := check.Get(OpenWriter(dir, nil))(t)
	g := w.Gallery()
	ids := []string{check.Get(g.Item(Image, 0))(t).ID, check.Get(g.Item(Image, 1))(t).ID, check.Get(g.Item(Image, 2))(t).ID}
	check.Get(w.Delete([]string{ids[0], ids[2]}))(t)
	check.Get(w.Put([]Put{{ID: "new", Features: []float32{0, 2}, Payload: []byte(`{"k": "a \"b\""}`)}}))(t)
	export := func(metric search.Metric, name string) []byte {
		t.Helper()
		check.OK(t, g.CompareBy(metric))
		v := check.Get(g.View(Image, Image))(t)
		if n := check.Get(v.Export(t.Context(), at(name)))(t); n != 2 {
			t.Errorf("%s: %d rows", name, n)
		}
		return check.Get(os.ReadFile(at(name)))(t)
	}
	for _, c := range []struct {
		metric     search.Metric
		name, want string
	}{{search.Cosine, "x.faiss", faissFlatIP}, {search.L2, "y.faiss", faissFlatL2}} {
		if got := hex.EncodeToString(export(c.metric, c.name)); got != c.want {
			t.Errorf("%s: %s", c.name, got)
		}
	}
	lines := `{"id":"` + ids[1] + `","name":"` + ids[1] + `"}` + "\n" + `{"id":"new","name":"new","payload":{"k":"a \"b\""}}` + "\n"
	if got := string(check.Get(os.ReadFile(at("x.jsonl")))(t)); got != lines {
		t.Errorf("lines %s", got)
	}
	export(search.Cosine, "x.npy")
	x := check.Get(features.OpenMatrix(at("x.npy"), ""))(t)
	defer x.Close()
	rows := make([]float32, 4)
	if check.OK(t, x.ReadRows(0, rows)); x.Rows() != 2 || !slices.Equal(rows, []float32{3, 4, 0, 2}) {
		t.Errorf("%d rows, %v", x.Rows(), rows)
	}
	want := "id,name,caption,payload,features\n" + ids[1] + "," + ids[1] + `,,,"[3,4]"` + "\n" +
		`new,new,,"{""k"":""a \""b\""""}","[0,2]"` + "\n"
	if got := string(export(search.Cosine, "x.csv")); got != want {
		t.Errorf("got %s want %s", got, want)
	}
	v := check.Get(g.View(Image, Image))(t)
	if _, err := v.Export(t.Context(), at("x.bin")); err == nil || !strings.Contains(err.Error(), "end in .npy, .parquet, .csv, .faiss") {
		t.Error(err)
	}
	check.Get(w.Delete([]string{ids[1], "new"}))(t)
	if _, err := v.Export(t.Context(), at("none.npy")); err == nil || !strings.Contains(err.Error(), "has no rows of the side image to export") {
		t.Error(err)
	}
	check.OK(t, w.Close())
	check.OK(t, g.Close())
}
