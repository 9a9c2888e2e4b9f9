package interop

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/safetensors"
)

// TestTextZoo: whole folders of tiny models of texts that the real packages make give the same vectors of the same texts
// here, by geoalign.OpenEncoder, or are refused in a line. GEOALIGN_ZOO names families of interop/zoo_text.py.
func TestTextZoo(t *testing.T) {
	folder := t.TempDir()
	script := exec.CommandContext(t.Context(), python(t), append([]string{"zoo_text.py", folder},
		strings.Fields(os.Getenv("GEOALIGN_ZOO"))...)...)
	script.Env = append(os.Environ(), "HF_HUB_OFFLINE=1", "CUDA_VISIBLE_DEVICES=")
	out, err := script.CombinedOutput()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) && failed.ExitCode() == lacksPackage {
		t.Skip(strings.TrimSpace(string(out)))
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var texts []string
	check.OK(t, json.Unmarshal(check.Get(os.ReadFile(filepath.Join(folder, "texts.json")))(t), &texts))
	type row struct {
		equal, refused int
		worst          float64
	}
	families := map[string]*row{}
	for _, path := range check.Get(filepath.Glob(filepath.Join(folder, "*.safetensors")))(t) {
		name := strings.TrimSuffix(filepath.Base(path), ".safetensors")
		family := name[:strings.LastIndexByte(name, '-')]
		if families[family] == nil {
			families[family] = &row{}
		}
		r := families[family]
		t.Run(name, func(t *testing.T) {
			e := check.Get(safetensors.Open(path))(t)
			defer e.Close()
			enc, err := geoalign.OpenEncoder(strings.TrimSuffix(path, ".safetensors"), geoalign.Set("compute.threads=1"))
			if err != nil {
				r.refused++
				t.Log(err)
				if text := strings.ReplaceAll(err.Error(), folder, ""); strings.Contains(text, "\n") || len(text) > 400 {
					t.Errorf("a refusal is one clear line (got %v)", err)
				}
				return
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
			r.equal++
		})
	}
	text := ""
	for _, name := range slices.Sorted(maps.Keys(families)) {
		r := families[name]
		text += fmt.Sprintf("\n| %s | %d | %d | %.1e |", name, r.equal, r.refused, r.worst)
	}
	t.Logf("made by %s\n| family | models | refused | largest difference |\n|---|---|---|---|%s",
		check.Get(os.ReadFile(filepath.Join(folder, "versions.txt")))(t), text)
}
