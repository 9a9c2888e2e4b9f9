package interop

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/geoalign/geoalign"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/safetensors"
)

// TestTextZoo: whole folders of tiny models of texts that the real packages make give the same vectors of the same texts
// here, by geoalign.OpenEncoder, or are refused in a line. GEOALIGN_ZOO names families of interop/zoo_text.py.
func TestTextZoo(t *testing.T) {
	z := makeZoo(t, "zoo_text.py")
	var texts []string
	check.OK(t, json.Unmarshal(check.Get(os.ReadFile(filepath.Join(z.folder, "texts.json")))(t), &texts))
	z.each(t, func(t *testing.T, e *safetensors.File, path string, r *zooRow) error {
		enc, err := geoalign.OpenEncoder(path, geoalign.Set("compute.threads=1"))
		if err != nil {
			return err
		}
		defer enc.Close()
		var asked []string
		for _, i := range check.Get(e.Int64("rows"))(t) {
			asked = append(asked, texts[i])
		}
		want := check.Get(e.Float32("vectors"))(t)
		got := check.Get(enc.Texts(t.Context(), asked))(t)
		if len(got.Data) != len(want) {
			t.Fatalf("%d rows of %d, want %d numbers", got.Rows, got.Dim, len(want))
		}
		for i, x := range got.Data {
			d := math.Abs(float64(x - want[i]))
			if r.worst = max(r.worst, d); !(d <= 1e-4*max(1, math.Abs(float64(want[i])))) {
				t.Fatalf("%q: channel %d is %g, want %g", asked[i/got.Dim], i%got.Dim, x, want[i])
			}
		}
		return nil
	})
}
