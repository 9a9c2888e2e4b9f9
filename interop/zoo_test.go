package interop

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/weights"
)

// TestZoo: tiny models of odd settings that the real packages make compute here what they compute there, or are refused
// in a line. GEOALIGN_ZOO names families of interop/zoo.py, all without it.
func TestZoo(t *testing.T) {
	z := makeZoo(t, "zoo.py")
	z.each(t, func(t *testing.T, e *safetensors.File, path string, r *zooRow) error {
		m, err := weights.Open(path)
		if err != nil {
			return err
		}
		defer m.Close()
		if len(m.Unlike) > 0 { // import refuses it
			return fmt.Errorf("unlike: %v", m.Unlike[0])
		}
		words := 0
		if info, ok := e.Lookup("input_ids"); ok {
			words = info.Shape[1]
		}
		var p encoders
		if m.Encoder.Side == "" { // both towers are one encoder of pairs
			p = openStored(t, path, words).encoders
		} else {
			p = openTower(t, m, words)
		}
		r.worst = max(r.worst, compareOutputs(t, e, p, words))
		if _, ok := e.Lookup("image_hidden_exact"); ok {
			exact, none := floats(t, e, "image_hidden_exact"), func(int) bool { return false }
			b := batch.New(examples)
			b.SetFloats(batch.Images, floats(t, e, "pixel_values"))
			states, _ := check.Get2(p.image.Encode(t.Context(), b))(t)
			name := filepath.Base(path)
			r.here64 = max(r.here64, largestDifference(t, name, states, exact, 1, none))
			r.package64 = max(r.package64, largestDifference(t, name, floats(t, e, "image_hidden"), exact, 1, none))
		}
		return nil
	})
}

// zoo is a folder of tiny models, FAMILY-NUMBER, with what their packages compute in FAMILY-NUMBER.safetensors.
type zoo struct{ folder string }

// zooRow is what became of the models of a family.
type zooRow struct {
	equal, refused int
	worst          float64
	package64      float64 // of the package's float32 from its float64
	here64         float64 // of what is computed here from that
}

// makeZoo has a script make the models.
func makeZoo(t *testing.T, script string) zoo {
	t.Helper()
	z := zoo{t.TempDir()}
	c := exec.CommandContext(t.Context(), python(t), append([]string{script, z.folder},
		strings.Fields(os.Getenv("GEOALIGN_ZOO"))...)...)
	c.Env = append(os.Environ(), "HF_HUB_OFFLINE=1", "CUDA_VISIBLE_DEVICES=")
	out, err := c.CombinedOutput()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) && failed.ExitCode() == lacksPackage {
		t.Skip(strings.TrimSpace(string(out)))
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return z
}

// each compares every model, in a test of its own, and prints a table of the families. The error of compare is that of a
// model that is refused, which must be one clear line.
func (z zoo) each(t *testing.T, compare func(t *testing.T, e *safetensors.File, path string, r *zooRow) error) {
	families := map[string]*zooRow{}
	for _, outputs := range check.Get(filepath.Glob(filepath.Join(z.folder, "*.safetensors")))(t) {
		path := strings.TrimSuffix(outputs, ".safetensors")
		name := filepath.Base(path)
		family := name[:strings.LastIndexByte(name, '-')]
		if families[family] == nil {
			families[family] = &zooRow{}
		}
		r := families[family]
		t.Run(name, func(t *testing.T) {
			e := check.Get(safetensors.Open(outputs))(t)
			defer e.Close()
			err := compare(t, e, path, r)
			if err == nil {
				r.equal++
				return
			}
			r.refused++
			t.Log(err)
			if text := strings.ReplaceAll(err.Error(), z.folder, ""); strings.Contains(text, "\n") || len(text) > 400 {
				t.Errorf("a refusal is one clear line (got %v)", err)
			}
		})
	}
	text := ""
	for _, name := range slices.Sorted(maps.Keys(families)) {
		r := families[name]
		text += fmt.Sprintf("\n| %s | %d | %d | %.1e |", name, r.equal, r.refused, r.worst)
		if r.here64 > 0 {
			t.Logf("%s: from the package's float64 its float32 differs by %.1e, and float32 here by %.1e", name, r.package64, r.here64)
		}
	}
	t.Logf("made by %s\n| family | models | refused | largest difference |\n|---|---|---|---|%s",
		check.Get(os.ReadFile(filepath.Join(z.folder, "versions.txt")))(t), text)
}

// openTower opens one tower by its settings, with a tiny one of the other side.
func openTower(t *testing.T, m *weights.Model, words int) encoders {
	t.Helper()
	sets := []string{"model.system=clip", "model.text.fusion_layers=0", "objective.itm.weight=0",
		"objective.mlm.weight=0", "model.head.dim=8", "model.text.layers=1", "model.text.width=8", "model.text.heads=1",
		"model.image.size=8", "model.image.patch=4", "model.image.depth=1", "model.image.width=8", "model.image.heads=1"}
	for _, s := range m.Settings() {
		if s.Key != "data.tokens" {
			sets = append(sets, s.String())
		}
	}
	sets = append(sets, fmt.Sprintf("data.tokens=%d", max(2, words)))
	cfg := check.Get(config.Parse("", nil, sets))(t)
	side, width := "text", cfg.Model.Text.Width
	if words == 0 {
		side, width = "image", cfg.Model.Image.TokenWidth()
	}
	cfg = check.Get(config.Parse("", nil, append(sets, fmt.Sprintf("model.head.dim=%d", width), "model.head.identity="+side,
		"model.head.topology=euclid", "eval.score=inner", "objective.itc.score=inner")))(t)
	engine := check.Get(compute.New(compute.Options{}))(t)
	t.Cleanup(engine.Close)
	o := model.Options{Engine: engine, Vocab: 9}
	if shape := m.Shape("text/embeddings/word/weight"); shape != nil {
		o.Vocab = shape[0]
	}
	p := check.Get(model.Open(cfg, o, m))(t)
	t.Cleanup(func() { p.Close() })
	return encoders{p.Image(), p.Text()}
}
