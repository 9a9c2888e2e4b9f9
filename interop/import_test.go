package interop

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/batch"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/weights"
)

// storedModel has a real package make a model of full size in a folder.
func storedModel(t *testing.T, family string) (folder string, expected *safetensors.File) {
	t.Helper()
	folder = t.TempDir()
	if out, err := exec.Command(python(t), "stored_models.py", family, folder).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if versions, err := os.ReadFile(filepath.Join(folder, "versions.txt")); err == nil {
		t.Logf("made by %s", versions)
	}
	moved := filepath.Join(t.TempDir(), "expected.safetensors") // a folder of weights has one file of them
	if err := os.Rename(filepath.Join(folder, "expected.safetensors"), moved); err != nil {
		t.Fatal(err)
	}
	expected, err := safetensors.Open(moved)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { expected.Close() })
	return folder, expected
}

// tolerance is the largest difference of an output.
const tolerance = 1e-4

// A model of full size of each family computes here what its package computes: dual encoders through import and
// the run that it makes, towers through their settings.
func TestPythonImport(t *testing.T) {
	for _, family := range []string{"bert", "roberta", "mpnet", "vit", "deit", "dinov2", "timm", "clip", "open_clip", "siglip", "albef"} {
		t.Run(family, func(t *testing.T) {
			folder, e := storedModel(t, family)
			words := 0 // of a text
			if info, ok := e.Lookup("input_ids"); ok {
				words = info.Shape[1]
			}
			compareOutputs(t, e, openStored(t, folder, words), words)
		})
	}
}

// compareOutputs encodes the inputs of a file and compares with its outputs.
func compareOutputs(t *testing.T, e *safetensors.File, p encoders, words int) {
	t.Helper()
	b, worst := batch.New(examples), 0.
	var lengths []int32
	if _, ok := e.Lookup("pixel_values"); ok {
		b.SetFloats(batch.Images, floats(t, e, "pixel_values"))
	}
	if words > 0 {
		lengths = ints(t, e, "lengths")
		b.SetInts(batch.Tokens, ints(t, e, "input_ids"))
		b.SetInts(batch.Lengths, lengths)
	}
	for _, side := range []struct {
		name, input string
		encoder     run.Encoder
	}{{"image", "pixel_values", p.image}, {"text", "input_ids", p.text}} {
		if _, ok := e.Lookup(side.input); !ok {
			continue
		}
		states, features, err := side.encoder.Encode(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		for name, got := range map[string][]float32{side.name + "_hidden": states, side.name + "_features": features} {
			if _, ok := e.Lookup(name); !ok {
				continue
			}
			want := floats(t, e, name)
			if len(got) != len(want) {
				t.Fatalf("%s: %d values, want %d", name, len(got), len(want))
			}
			for i := range want {
				if row := i * examples * words / len(want); name == "text_hidden" && row%words >= int(lengths[row/words]) {
					continue // padding
				}
				worst = math.Max(worst, math.Abs(float64(got[i]-want[i])))
			}
		}
	}
	t.Logf("largest difference %.1e", worst)
	if !(worst <= tolerance) {
		t.Errorf("the largest difference is %v, want at most %v", worst, tolerance)
	}
}

// examples is the number of inputs of a file.
const examples = 2

func floats(t *testing.T, e *safetensors.File, name string) []float32 {
	t.Helper()
	x, err := e.Float32(name)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func ints(t *testing.T, e *safetensors.File, name string) []int32 {
	t.Helper()
	list, err := e.Int64(name)
	if err != nil {
		t.Fatal(err)
	}
	x := make([]int32, len(list))
	for i, v := range list {
		x[i] = int32(v)
	}
	return x
}

// encoders are both sides of a model.
type encoders struct{ image, text run.Encoder }

// openStored opens stored weights: a run that import makes of them, or of one tower a model of its settings.
func openStored(t *testing.T, folder string, words int) encoders {
	t.Helper()
	m, err := weights.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	whole := m.Has("image/pos_embed") && m.Has("text/embeddings/word/weight")
	if whole {
		dir := filepath.Join(t.TempDir(), "run")
		r, err := run.Import(t.Context(), run.ImportOptions{From: folder, Out: dir, Set: []string{"data.tokens=" + strconv.Itoa(words)}})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s, %d numbers", r, r.Numbers)
		x, err := run.Open(dir, run.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { x.Close() })
		if err := x.Load(); err != nil {
			t.Fatal(err)
		}
		return encoders{x.Model.Image(), x.Model.Text()}
	}
	sets := []string{"model.system=clip", "model.text.fusion_layers=0", "objective.itm.weight=0", "objective.mlm.weight=0", "model.head.dim=768", "model.head.identity=both", "data.tokens=" + strconv.Itoa(max(2, words))}
	for _, s := range m.Settings() {
		sets = append(sets, s.String())
	}
	cfg, err := config.Parse("", nil, sets)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := compute.New(compute.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(engine.Close)
	o := model.Options{Engine: engine}
	if shape := m.Shape("text/embeddings/word/weight"); shape != nil {
		o.Vocab = shape[0]
	}
	p, err := model.Open(cfg, o, m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return encoders{p.Image(), p.Text()}
}
