package interop

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/weights"
)

// architecture is what timm's own model has.
type architecture struct {
	Heads      int     `json:"heads"`
	Eps        float64 `json:"eps"`
	Activation string  `json:"activation"`
	Pool       string  `json:"pool"`
	PoolHeads  int     `json:"pool_heads"`
	Refused    bool    `json:"refused"` // no tower here computes it

	Rotary    string  `json:"rotary"`
	Theta     float64 `json:"theta"`
	Reference float64 `json:"reference"`
	Offset    float64 `json:"offset"`
	Columns   bool    `json:"columns_first"`
	Adjacent  bool    `json:"adjacent"`
}

// TestArchitectures: what no tensor shows of a vision transformer of timm is taken from the name of its architecture as
// the package has it, for all names that it has.
func TestArchitectures(t *testing.T) {
	folder := t.TempDir()
	script := exec.CommandContext(t.Context(), python(t), "architectures.py", folder)
	script.Env = append(os.Environ(), "HF_HUB_OFFLINE=1", "CUDA_VISIBLE_DEVICES=")
	out, err := script.CombinedOutput()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) && failed.ExitCode() == lacksPackage {
		t.Skip(strings.TrimSpace(string(out)))
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	all := map[string]architecture{}
	check.OK(t, json.Unmarshal(check.Get(os.ReadFile(filepath.Join(folder, "architectures.json")))(t), &all))
	read := 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		a := all[name]
		m, err := weights.Open(filepath.Join(folder, name))
		if err != nil { // a refusal in a line, whether a tower here could compute it or not
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		is := map[string]string{"activation": `"gelu"`, "eps": "0", "block.rotary": `""`, "block.theta": "10000", "block.reference": "0",
			"block.offset": "0", "block.columns_first": "false", "block.adjacent": "false"}
		for _, s := range m.Settings() {
			if key, ok := strings.CutPrefix(s.Key, "model.image."); ok {
				is[key] = s.Value
			}
		}
		if unlike := len(m.Unlike) > 0; unlike || a.Refused {
			if unlike != a.Refused {
				t.Errorf("%s: it is read: %t, %v", name, !unlike, m.Unlike)
			}
			m.Close()
			continue
		}
		read++
		quoted := func(s string) string { return fmt.Sprintf("%q", s) }
		want := map[string]string{"heads": fmt.Sprint(a.Heads), "pool": quoted(a.Pool), "block.rotary": quoted(a.Rotary)}
		if is["activation"] != `"swiglu"` || a.Activation != "silu" { // which is SwiGLU's
			want["activation"] = quoted(a.Activation)
		}
		usual := 1e-6
		if is["style"] == `"clip"` {
			usual = 1e-5
		}
		if is["eps"] == "0" {
			is["eps"] = fmt.Sprint(usual)
		}
		want["eps"] = fmt.Sprint(a.Eps)
		if a.Rotary != "" {
			want["block.theta"], want["block.offset"] = fmt.Sprint(a.Theta), fmt.Sprint(a.Offset)
			want["block.reference"] = fmt.Sprint(a.Reference)
			want["block.columns_first"], want["block.adjacent"] = fmt.Sprint(a.Columns), fmt.Sprint(a.Adjacent)
		}
		if heads := is["block.pool_heads"]; a.PoolHeads != 0 && a.PoolHeads != a.Heads && heads != fmt.Sprint(a.PoolHeads) {
			t.Errorf("%s: the pool has %s heads, want %d", name, heads, a.PoolHeads)
		}
		for _, key := range slices.Sorted(maps.Keys(want)) {
			if is[key] != want[key] {
				t.Errorf("%s: model.image.%s is %s, want %s", name, key, is[key], want[key])
			}
		}
		m.Close()
	}
	if read < len(all)*3/4 {
		t.Errorf("too few are read")
	}
	t.Logf("%d of %d architectures are read", read, len(all))
}
