package model

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
)

// tinyClasses is the classifier in tools/goldens/classification.py.
func tinyClasses(t testing.TB, sets ...string) config.Config {
	t.Helper()
	return check.Get(config.Load("", append([]string{
		"model.system=classes", "model.image.size=8", "model.image.patch=4", "model.image.depth=2", "model.image.width=16", "model.image.heads=2",
		"model.head.dim=16", "momentum.enabled=false", "queue.size=0", "train.batch_size=4",
		"objective.itc.weight=0", "objective.itm.weight=0", "objective.mlm.weight=0", "objective.distill.alpha=0", "objective.classes.weight=1",
	}, sets...)))(t)
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
			g := openGolden(t, "classes_"+name)
			m := newTrainer(t, cfg, Options{Engine: newEngine(t), Vocab: tinyVocab, Classes: fiveClasses})
			g.giveAll(m)
			x := g.fill(batch.New(4, m.Columns()...))
			g.value("loss", stepOf(t, m, &feed.Step{Batch: x}).Loss)
			if !slices.Equal(x.Floats(batch.Images), g.floats("input/images")) {
				t.Error("the images of the batch were changed")
			}
			g.gradients(m)
			want := g.floats("expect/logits")
			for _, n := range []int{4, 3} { // of any number of images
				part := batch.New(n, m.Classifier().Columns()...)
				copy(part.Floats(batch.Images), x.Floats(batch.Images))
				got := check.Get(m.Classifier().Logits(t.Context(), part))(t)
				near(t, fmt.Sprintf("logits of %d images", n), got, want[:n*len(fiveClasses)], 1e-5)
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
	check.Fails(New(cfg, Options{Engine: newEngine(t), Vocab: tinyVocab}))(t, "want at least 2 classes (got 0)")
}
