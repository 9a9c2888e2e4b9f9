package convert

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/filetest"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/train/checkpoint"
	"github.com/geoalign/geoalign/train/runlog"
	"github.com/geoalign/geoalign/weights"
	"github.com/geoalign/geoalign/weights/weightstest"
)

// golden opens what a package computed of a stored model.
func expected(t *testing.T, name string) *safetensors.File {
	t.Helper()
	f := check.Get(safetensors.Open(filepath.Join(weightstest.Folder(t, name), "expected.safetensors")))(t)
	t.Cleanup(func() { f.Close() })
	return f
}

// imported makes a run of a stored model.
func imported(t *testing.T, name string, sets ...string) (*Imported, string) {
	t.Helper()
	dir, from := t.TempDir(), weightstest.Stored(t, name)
	r, err := Import(t.Context(), ImportOptions{From: from, Out: dir, Set: append([]string{"train.batch_size=2", "data.tokens=6", "data.vocab=" + filepath.Join(from, "vocab.txt"), "data.template=file"}, sets...)})
	if err != nil {
		t.Fatal(err)
	}
	return r, dir
}

// What the configuration or its base says comes before how such models are trained.
func TestImportConfigured(t *testing.T) {
	dir, from := t.TempDir(), weightstest.Stored(t, "clip")
	for name, text := range map[string]string{"base.toml": "version = 2\n[data]\nclean = \"albef\"\n", "own.toml": "base = \"base.toml\"\nversion = 2\n[model.text]\ndropout = 0.25\n"} {
		check.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
	}
	for file, want := range map[string]string{"": "none 0", "base.toml": "albef 0", "own.toml": "albef 0.25"} {
		o := ImportOptions{From: from, Out: filepath.Join(dir, "run "+file), Set: []string{"train.batch_size=2", "data.tokens=6", "data.vocab=" + filepath.Join(from, "vocab.txt"), "data.template=file"}}
		if file != "" {
			o.File = filepath.Join(dir, file)
		}
		check.Get(Import(t.Context(), o))(t)
		cfg := check.Get(config.Load(filepath.Join(o.Out, runlog.ConfigFile), nil))(t)
		if got := fmt.Sprint(cfg.Data.Clean, " ", cfg.Model.Text.Dropout); got != want {
			t.Errorf("with %q: %s, want %s", file, got, want)
		}
	}
}

// A run of stored weights computes what the package that made them computes.
func TestImportComputes(t *testing.T) {
	two := []string{"model.image.heads=2", "model.text.heads=2"} // its files say none
	heads := map[string][]string{"clip_mtob": append(two, "model.text.positions=21"), "clip_mtob_ref": two}
	for _, name := range []string{"clip", "open_clip", "siglip", "clip_mtob", "clip_mtob_ref"} {
		_, dir := imported(t, name, heads[name]...)
		tr := check.Get(run.Open(dir, run.OpenOptions{}))(t)
		defer tr.Close()
		check.OK(t, tr.Load())
		e, b := expected(t, name), batch.New(2)
		pixels := check.Get(e.Float32("pixel_values"))(t)
		b.SetFloats(batch.Images, pixels)
		_, got := check.Get2(tr.Model.Image().Encode(t.Context(), b))(t)
		want := check.Get(e.Float32("image_features"))(t)
		for i := range want {
			if !(math.Abs(float64(got[i]-want[i])) <= 2e-5) {
				t.Fatalf("%s: feature %d is %v, want %v", name, i, got[i], want[i])
			}
		}
	}
}

// A checkpoint of ALBEF becomes one with its parameters, twins and queue, bit for bit.
func TestImportALBEF(t *testing.T) {
	r, dir := imported(t, "albef", "model.image.heads=2", "model.text.heads=2")
	if len(r.Fresh)+len(r.Unread)+len(r.Unknown) > 0 || len(r.Read) < 80 || !strings.Contains(r.String(), "heads the image tower has") {
		t.Errorf("%+v", r)
	}
	m := check.Get(weights.Open(filepath.Join(weightstest.Folder(t, "albef"), "checkpoint_03.pth")))(t)
	defer m.Close()
	c := check.Get(checkpoint.Load(dir))(t)
	defer c.Close()
	for group, prefix := range map[string]string{"model": "", "momentum": "momentum/", "queue": "queue/"} {
		list := check.Get(c.Tensors(group))(t)
		differ := false
		for _, x := range list {
			if x.Name == "ids" {
				continue
			}
			want, own, got := make([]float32, x.Len()), make([]float32, x.Len()), make([]float32, x.Len())
			check.OK(t, errors.Join(m.Read(prefix+x.Name, x.Shape, want), c.ReadFloat32(group, x.Name, x.Shape, got)))
			if !slices.Equal(got, want) {
				t.Errorf("%s of %s differs", x.Name, group)
			}
			differ = differ || group == "momentum" && m.Read(x.Name, x.Shape, own) == nil && !slices.Equal(own, want)
		}
		if group == "momentum" && !differ {
			t.Error("twins are equal to parameters, so the test shows nothing")
		}
	}
	var queue struct{ Pointer, Filled int }
	if err := c.Counters("queue", &queue); err != nil || queue.Filled != 4 || queue.Pointer != 0 {
		t.Errorf("%+v %v", queue, err)
	}
	tuned, err := run.FinetuneConfig(dir, "", run.OpenOptions{Set: []string{"run.out=" + t.TempDir(), "data.scenes.val_samples=8", "data.scenes.epoch_samples=8", "train.max_steps=1", "model.image.size=16", "eval.rerank_top=2"}})
	if err != nil {
		t.Fatal(err)
	}
	run := check.Get(run.New(t.Context(), tuned, run.Options{}))(t)
	defer run.Close()
	check.Get(run.Train(t.Context()))(t)
}

// What cannot be imported is refused with its cure, and nothing is left behind.
func TestImportRefused(t *testing.T) {
	keep := func(string) bool { return false }
	scale := func(name string) bool { return name == "logit_scale" }
	short := func(folder string) {
		filetest.Write(t, filepath.Join(folder, "vocab.txt"), "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n")
	}
	for name, c := range map[string]struct {
		family  string
		prepare func(folder string)
		sets    []string
		allow   bool
		want    string // empty: no error
	}{
		"no vocabulary":       {"clip", func(folder string) { os.Remove(filepath.Join(folder, "vocab.txt")) }, nil, false, "data.vocab: must name the vocabulary of the weights in "},
		"another vocabulary":  {"clip", func(folder string) { short(folder) }, []string{"data.vocab=" + filepath.Join(weightstest.Stored(t, "clip"), "vocab.txt")}, false, "data.vocab: has another vocabulary, of 24 tokens, than the weights"},
		"a smaller one":       {"clip", short, nil, false, ""},
		"missing":             {"clip", func(folder string) { weightstest.Without(t, folder, scale, "") }, nil, false, "lacks 1 parameters of the model (logit_scale): --allow-missing starts them"},
		"missing and allowed": {"clip", func(folder string) { weightstest.Without(t, folder, scale, "") }, nil, true, ""},
		"not a number":        {"clip", func(folder string) { weightstest.Without(t, folder, keep, "visual_projection.weight") }, nil, false, `tensor "image_proj/weight": it has numbers that are not finite`},
		"another width":       {"clip", nil, []string{"model.image.width=16", "model.head.dim=4"}, false, "--set model.image.width=8 --set model.head.dim=6"},
		"another mean":        {"clip", nil, []string{"model.image.mean=[0.5, 0.5, 0.5]"}, false, "--set 'model.image.mean=[0.48145466,0.4578275,0.40821073]'"},
		"another pool": {"open_clip", func(folder string) {
			path := filepath.Join(folder, "open_clip_config.json")
			text, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(path, []byte(strings.Replace(string(text), `"vision_cfg": {`, `"vision_cfg": {"pool_type": "none",`, 1)), 0o666)
			}
			if err != nil {
				t.Fatal(err)
			}
		}, nil, false, `features would be others than those of the weights: the image tower has pool_type = "none", `},
		"a shard that is not there": {"clip", func(folder string) {
			os.Remove(filepath.Join(folder, "model.safetensors"))
			text := `{"weight_map": {"logit_scale": "model-00001-of-00002.safetensors"}}`
			check.OK(t, os.WriteFile(filepath.Join(folder, "model.safetensors.index.json"), []byte(text), 0o666))
		}, nil, false, "names the shard model-00001-of-00002.safetensors, which is not beside it: download it"},
	} {
		t.Run(name, func(t *testing.T) {
			folder, dir := weightstest.Stored(t, c.family), filepath.Join(t.TempDir(), "run")
			if c.prepare != nil {
				c.prepare(folder)
			}
			_, err := Import(t.Context(), ImportOptions{From: folder, Out: dir, Set: append([]string{"train.batch_size=2", "data.tokens=6"}, c.sets...), AllowMissing: c.allow})
			_, made := os.Stat(dir)
			if c.want == "" {
				if err != nil || made != nil {
					t.Fatal(err, made)
				}
				return
			}
			check.Error(t, err, c.want)
			if made == nil {
				t.Error("the folder is left behind")
			}
		})
	}
	_, dir := imported(t, "clip")
	if _, err := Import(t.Context(), ImportOptions{From: weightstest.Stored(t, "clip"), Out: dir, Set: []string{"train.batch_size=2", "data.tokens=6"}}); err == nil || !strings.Contains(err.Error(), "holds a run already") {
		t.Errorf("a run is overwritten: %v", err)
	}
}

// TestNoClassTokenInImport: neither is one taken for a text by weights that were trained with one.
func TestNoClassTokenInImport(t *testing.T) {
	vocab := []string{`"[PAD]": 0`}
	for i := 1; i < 24; i++ {
		vocab = append(vocab, fmt.Sprintf(`"w%d": %d`, i, i))
	}
	folder := t.TempDir()
	file := filepath.Join(folder, "tokenizer.json")
	text := `{"added_tokens": [], "model": {"type": "WordPiece", "unk_token": "w1", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": {` + strings.Join(vocab, ", ") + `}}}`
	check.OK(t, os.WriteFile(file, []byte(text), 0o666))
	_, err := Import(t.Context(), ImportOptions{From: weightstest.Folder(t, "albef") + "/checkpoint_03.pth", Out: filepath.Join(folder, "run"), Set: []string{"data.vocab=" + file, "data.template=file", "data.tokens=6", "train.batch_size=2", "model.image.heads=2", "model.text.heads=2"}})
	check.Error(t, err, "model.text.pool: must be mean or end")
}
