package interop

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/images"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/convert"
	"github.com/geoalign/geoalign/weights"
)

// storedModel has a real package make a model of full size in a folder. It returns what the package computes, and which
// versions made it, or why none did.
func storedModel(t *testing.T, family string) (folder string, expected *safetensors.File, versions string) {
	t.Helper()
	folder = t.TempDir()
	script := exec.CommandContext(t.Context(), python(t), "stored_models.py", family, folder)
	script.Env = append(os.Environ(), "HF_HUB_OFFLINE=1", "CUDA_VISIBLE_DEVICES=")
	out, err := script.CombinedOutput()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) && failed.ExitCode() == lacksPackage {
		t.Skip(strings.TrimSpace(string(out)))
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text := check.Get(os.ReadFile(filepath.Join(folder, "versions.txt")))(t)
	moved := filepath.Join(t.TempDir(), "expected.safetensors") // a folder of weights has one file of them
	check.OK(t, os.Rename(filepath.Join(folder, "expected.safetensors"), moved))
	expected = check.Get(safetensors.Open(moved))(t)
	t.Cleanup(func() { expected.Close() })
	return folder, expected, string(text)
}

// lacksPackage is the exit status of a script whose interpreter lacks a package.
const lacksPackage = 77

// tolerance is the largest difference of an output.
const tolerance = 1e-4

// fullSize are models of full size, by the names of stored_models.py.
var fullSize = []struct{ family, of, size string }{
	{"bert", "BERT (Hugging Face)", "BERT-base"},
	{"roberta", "RoBERTa (Hugging Face)", "RoBERTa-base"},
	{"mpnet", "MPNet (Hugging Face)", "MPNet-base"},
	{"vit", "ViT (Hugging Face)", "ViT-B/16, 224 pixels"},
	{"deit", "DeiT (Hugging Face)", "DeiT-B/16 distilled, 224 pixels"},
	{"dinov2", "DINOv2 (Hugging Face)", "ViT-B/14, 518 pixels"},
	{"timm", "timm", "ViT-B/16, 224 pixels"},
	{"clip", "CLIP (Hugging Face)", "ViT-B/32, 224 pixels"},
	{"open_clip", "open_clip", "ViT-B/32, 224 pixels"},
	{"open_clip_timm", "open_clip with a tower of timm", "SigLIP ViT-B/16, 224 pixels"},
	{"siglip", "SigLIP (Hugging Face)", "ViT-B/16, 224 pixels"},
	{"albef", "ALBEF", "ViT-B/16, 256 pixels, and BERT-base with fusion layers"},
}

// A model of full size of each family computes here what its package computes: dual encoders through import and
// the run that it makes, towers through their settings. So it does of pictures, which the package's processor and the
// settings of the weights prepare.
func TestPythonImport(t *testing.T) {
	python(t)
	rows := []string{"| family | full size | parameters | largest difference | of pictures | values of pictures | by the default processor |", "|---|---|---|---|---|---|---|"}
	made := map[string]bool{}
	for _, c := range fullSize {
		row := fmt.Sprintf("| %s | %s | not compared, see the error | | | | |", c.of, c.size)
		t.Run(c.family, func(t *testing.T) {
			defer func() {
				if t.Skipped() {
					row = fmt.Sprintf("| %s | %s | skipped: its package is not there | | | | |", c.of, c.size)
				}
			}()
			folder, e, versions := storedModel(t, c.family)
			made[versions] = true
			words := 0 // of a text
			if info, ok := e.Lookup("input_ids"); ok {
				words = info.Shape[1]
			}
			s := openStored(t, folder, words)
			row = fmt.Sprintf("| %s | %s | %.0f million | %.1e | %s |", c.of, c.size, float64(s.numbers)/1e6,
				compareOutputs(t, e, s.encoders, words), comparePictures(t, e, folder, s))
		})
		rows = append(rows, row)
	}
	t.Logf("made by %s\n%s", strings.Join(slices.Sorted(maps.Keys(made)), "; "), strings.Join(rows, "\n"))
}

// compareOutputs encodes the inputs of a file, compares with its outputs, and returns the largest difference.
func compareOutputs(t *testing.T, e *safetensors.File, p encoders, words int) float64 {
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
		states, features := check.Get2(side.encoder.Encode(t.Context(), b))(t)
		for name, got := range map[string][]float32{side.name + "_hidden": states, side.name + "_features": features} {
			if _, ok := e.Lookup(name); !ok {
				continue
			}
			padding := func(row int) bool { return name == "text_hidden" && row%words >= int(lengths[row/words]) }
			worst = math.Max(worst, largestDifference(t, name, got, floats(t, e, name), words, padding))
		}
	}
	if !(worst <= tolerance) {
		t.Errorf("the largest difference is %v, want at most %v", worst, tolerance)
	}
	return worst
}

// largestDifference compares outputs of texts of words tokens, but for rows of padding.
func largestDifference(t *testing.T, name string, got, want []float32, words int,
	padding func(row int) bool) (worst float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", name, len(got), len(want))
	}
	for i := range want {
		if !padding(i * examples * words / len(want)) {
			worst = math.Max(worst, math.Abs(float64(got[i]-want[i])))
		}
	}
	return worst
}

// comparePictures prepares the pictures of a folder as the settings of its weights say, compares with what the
// package's processor makes of them, and their outputs with the package's. It returns the cells of a table: the largest
// difference of outputs, and of values between 0 and 255, by the processor of the package that resizes with Pillow, and
// by the one that it takes by default.
func comparePictures(t *testing.T, e *safetensors.File, folder string, s stored) string {
	t.Helper()
	if _, ok := e.Lookup("picture_pixels"); !ok {
		return "| |"
	}
	side := s.config.Model.Image.Size
	own := make([]float32, examples*3*side*side)
	for i := range examples {
		m := check.Get(images.DecodeFile(filepath.Join(folder, fmt.Sprintf("picture%d.png", i)), 0))(t)
		check.OK(t, (transform.Eval{Input: s.config.ImageInput(), Size: side}).Apply(m, nil,
			own[i*len(own)/examples:(i+1)*len(own)/examples]))
	}
	levels := func(name string) (most float64, share float64) {
		for i, v := range floats(t, e, name) {
			std := float64(s.config.ImageInput().Std[i/(side*side)%3])
			d := math.Abs(float64(own[i]-v)) * 255 * std
			if most = math.Max(most, d); d > 0.5 {
				share += 1 / float64(len(own))
			}
		}
		return most, share
	}
	most, _ := levels("picture_pixels")
	if most > 1e-3 {
		t.Errorf("a value of a picture differs by %.3f of 255", most)
	}
	other := ""
	if _, ok := e.Lookup("picture_default"); ok {
		most, share := levels("picture_default")
		// as far apart are both processors of the package
		if other = fmt.Sprintf("%.0f in %.2f%%", most, 100*share); most > 2.001 || share > 0.01 {
			t.Errorf("values of a picture by the default processor differ by %s", other)
		}
	}
	b := batch.New(examples)
	b.SetFloats(batch.Images, own)
	states, features := check.Get2(s.image.Encode(t.Context(), b))(t)
	worst := 0.
	for name, got := range map[string][]float32{"picture_image_hidden": states, "picture_image_features": features} {
		if _, ok := e.Lookup(name); ok {
			worst = math.Max(worst, largestDifference(t, name, got, floats(t, e, name), 1,
				func(int) bool { return false }))
		}
	}
	if !(worst <= tolerance) {
		t.Errorf("the largest difference of outputs of pictures is %v, want at most %v", worst, tolerance)
	}
	return fmt.Sprintf("%.1e | %.0f | %s", worst, most, other)
}

// examples is the number of inputs of a file.
const examples = 2

func floats(t *testing.T, e *safetensors.File, name string) []float32 {
	t.Helper()
	return check.Get(e.Float32(name))(t)
}

func ints(t *testing.T, e *safetensors.File, name string) []int32 {
	t.Helper()
	list := check.Get(e.Int64(name))(t)
	x := make([]int32, len(list))
	for i, v := range list {
		x[i] = int32(v)
	}
	return x
}

// encoders are both sides of a model.
type encoders struct{ image, text run.Encoder }

// stored is a model of stored weights with its configuration and the number of its parameters.
type stored struct {
	encoders
	config  config.Config
	numbers int
}

// openStored opens stored weights: a run that import makes of them, or of one tower a model of its settings.
func openStored(t *testing.T, folder string, words int) stored {
	t.Helper()
	m := check.Get(weights.Open(folder))(t)
	t.Cleanup(func() { m.Close() })
	whole := m.Encoder.Side == ""
	if whole {
		dir := filepath.Join(t.TempDir(), "run")
		r, err := convert.Import(t.Context(), convert.ImportOptions{From: folder, Out: dir, Set: []string{"data.tokens=" + strconv.Itoa(words)}})
		if err != nil {
			t.Fatal(err)
		}
		x := check.Get(run.Open(dir, run.OpenOptions{}))(t)
		t.Cleanup(func() { x.Close() })
		check.OK(t, x.Load())
		return stored{encoders{x.Model.Image(), x.Model.Text()}, x.Config, r.Numbers}
	}
	sets := []string{"model.system=clip", "model.text.fusion_layers=0", "objective.itm.weight=0",
		"objective.mlm.weight=0", "model.head.dim=768", "model.head.identity=both",
		"data.tokens=" + strconv.Itoa(max(2, words))}
	for _, s := range m.Settings() {
		sets = append(sets, s.String())
	}
	cfg := check.Get(config.Parse("", nil, sets))(t)
	engine := check.Get(compute.New(compute.Options{}))(t)
	t.Cleanup(engine.Close)
	o := model.Options{Engine: engine}
	if shape := m.Shape("text/embeddings/word/weight"); shape != nil {
		o.Vocab = shape[0]
	}
	p := check.Get(model.Open(cfg, o, m))(t)
	t.Cleanup(func() { p.Close() })
	numbers := 0
	for _, name := range m.Names() {
		n := 1
		for _, d := range m.Shape(name) {
			n *= d
		}
		numbers += n
	}
	return stored{encoders{p.Image(), p.Text()}, cfg, numbers}
}
