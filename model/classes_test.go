package model

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/safetensors"
)

// tinyClasses is the classifier in tools/goldens/classification.py.
func tinyClasses(t testing.TB, sets ...string) config.Config {
	t.Helper()
	cfg := check.Get(config.Load("", append([]string{
		"model.system=classes", "model.image.size=8", "model.image.patch=4", "model.image.depth=2", "model.image.width=16", "model.image.heads=2",
		"model.head.dim=16", "momentum.enabled=false", "queue.size=0", "train.batch_size=4",
		"objective.itc.weight=0", "objective.itm.weight=0", "objective.mlm.weight=0", "objective.distill.alpha=0", "objective.classes.weight=1",
	}, sets...)))(t)
	return cfg
}

// fiveClasses are their names.
var fiveClasses = []string{"cat", "dog", "emu", "fox", "gnu"}

// TestGoldenClasses compares steps of fine-tuning for classification with PyTorch: losses to 1e-5, every gradient by
// name to 1e-4 of its largest element, and the logits of images that are not mixed.
func TestGoldenClasses(t *testing.T) {
	for name, cfg := range map[string]config.Config{
		"plain":  tinyClasses(t),
		"mixup":  tinyClasses(t, "objective.classes.mixup=0.8", "objective.classes.norm=true", "run.seed=6"),
		"cutmix": tinyClasses(t, "objective.classes.cutmix=1", "objective.classes.smoothing=0", "model.image.pool=mean", "run.seed=3"),
	} {
		t.Run(name, func(t *testing.T) {
			file := check.Get(safetensors.Open("testdata/classes_" + name + ".safetensors"))(t)
			t.Cleanup(func() { file.Close() })
			g := golden{t, file}
			m := newTrainer(t, cfg, Options{Engine: newEngine(t), Vocab: tinyVocab, Classes: fiveClasses})
			for _, q := range m.params.List() {
				copy(m.params.Value(q), g.floats("param/"+q.Name))
			}
			x := batch.New(4, m.Columns()...)
			copy(x.Floats(batch.Images), g.floats("input/images"))
			copy(x.Ints(batch.Labels), g.ints("input/labels"))
			res := stepOf(t, m, &feed.Step{Batch: x})
			if want := float64(g.floats("expect/loss")[0]); !(math.Abs(res.Loss-want) <= 1e-5*max(1, want)) {
				t.Errorf("the loss is %v, PyTorch says %v", res.Loss, want)
			}
			if !slices.Equal(x.Floats(batch.Images), g.floats("input/images")) {
				t.Error("the images of the batch were changed")
			}
			worst, most := "", 0.0
			for _, q := range m.params.List() {
				rel, err := relative(m.params.Grad(q), g.floats("grad/"+q.Name))
				if err != nil {
					t.Fatalf("%s: %v", q.Name, err)
				}
				if rel > most {
					most, worst = rel, q.Name
				}
			}
			if t.Logf("largest difference of a gradient: %.1e (%s)", most, worst); !(most <= 1e-4) {
				t.Errorf("gradient of %s differs by %.1e of its largest element", worst, most)
			}
			want := g.floats("expect/logits")
			for _, n := range []int{4, 3} { // of any number of images
				part := batch.New(n, m.Classifier().Columns()...)
				copy(part.Floats(batch.Images), x.Floats(batch.Images))
				got := check.Get(m.Classifier().Logits(t.Context(), part))(t)
				if rel, err := relative(got, want[:n*len(fiveClasses)]); err != nil || !(rel <= 1e-5) {
					t.Errorf("logits of %d images differ by %.1e (%v)", n, rel, err)
				}
			}
		})
	}
}

// TestClassesOfTowers: a residual network tells classes too, another step mixes by another draw, and a model without
// classes says so.
func TestClassesOfTowers(t *testing.T) {
	cfg := tinyClasses(t, "model.image.style=resnet", "model.image.resnet.depth=18", "model.image.size=32", "model.head.dim=512",
		"objective.classes.mixup=1", "objective.classes.cutmix=1")
	m := newTrainer(t, cfg, Options{Engine: newEngine(t), Vocab: tinyVocab, Classes: fiveClasses})
	x := batch.New(4, m.Columns()...)
	for i := range x.Floats(batch.Images) {
		x.Floats(batch.Images)[i] = float32(math.Sin(float64(i * i)))
	}
	copy(x.Ints(batch.Labels), []int32{0, 1, 2, 3})
	var losses []float64
	for _, counter := range []int{0, 1, 0} {
		res := stepOf(t, m, &feed.Step{Batch: x, Counter: counter})
		losses = append(losses, res.Loss)
	}
	if losses[0] == losses[1] || losses[0] != losses[2] {
		t.Errorf("losses %v of the draws 0, 1 and 0", losses)
	}
	if columns, err := Columns(cfg); err != nil || !slices.ContainsFunc(columns, func(c batch.Column) bool { return c.Name == batch.Labels }) {
		t.Errorf("columns %v, %v", columns, err)
	}
	if _, err := New(cfg, Options{Engine: newEngine(t), Vocab: tinyVocab}); err == nil || !strings.Contains(err.Error(), "want at least 2 classes (got 0)") {
		t.Error(err)
	}
}
