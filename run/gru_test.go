package run

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/tasks/retrieval"
	"github.com/geoalign/geoalign/train"
)

// lossReporter keeps the loss of the last step.
type lossReporter struct {
	recorder
	loss float64
}

func (r *lossReporter) Steps(int, int, time.Duration) train.Hook {
	return train.Hook{Name: "loss", Stage: train.StageLog, After: func(_ context.Context, e *train.Event) error {
		r.loss = e.Result.Loss
		return nil
	}}
}

// TestGRULearns trains a dual encoder whose captions pass recurrent units on drawn scenes, in every
// reading direction: it knows far more of the batches than chance, its checkpoint scores the same
// when it is opened, and a pair is explained by its words.
func TestGRULearns(t *testing.T) {
	for _, c := range [][]string{
		{"model.text.gru.directions=forward", "model.text.layers=2", "model.text.dropout=0"},
		{"model.text.gru.directions=mean", "compute.precision=bf16"},
		{"model.text.gru.directions=concat", "model.text.pool=mean", "compute.recompute=true"},
	} {
		t.Run(strings.Join(c, " "), func(t *testing.T) {
			dir := t.TempDir()
			var seen lossReporter
			cfg := settings(t, dir, append([]string{"model.text.style=gru", "model.text.width=32", "model.text.gru.embedding=24", "model.text.positions=1", "model.text.heads=5",
				"train.max_steps=200", "train.eval_every_steps=0", "optimizer.lr=0.002", "data.overfit_samples=16", "train.log_every_steps=200"}, c...)...)
			result := trained(t, cfg, Options{Reporter: &seen})
			t.Logf("the loss is %v", seen.loss)
			if loss := seen.loss; !(loss < 0.5*math.Log(8)) {
				t.Errorf("the loss is %v, %v without knowledge", loss, math.Log(8))
			}
			o := check.Get(Open(dir, OpenOptions{}))(t)
			defer o.Close()
			s, err := o.Evaluate(t.Context(), retrieval.Name, "val", nil)
			if err != nil || s.(retrieval.Scores).First != result.Scores.(retrieval.Scores).First {
				t.Errorf("%v, error %v, want %v", s, err, result.Scores)
			}
		})
	}
}

// TestGRUUnread: keys of layers of attention are noted where recurrent units stand for them.
func TestGRUUnread(t *testing.T) {
	cfg := settings(t, t.TempDir(), "model.text.style=gru", "model.text.heads=5", "model.text.mlp=7", "model.text.activation=quick_gelu", "model.text.positions=3")
	var paths []string
	for _, u := range cfg.Unread() {
		paths = append(paths, u.Path)
	}
	want := []string{"model.text.heads", "model.text.mlp", "model.text.activation", "model.text.positions"}
	if !slices.Equal(paths, want) {
		t.Errorf("unread are %v, want %v", paths, want)
	}
	if cfg = settings(t, t.TempDir(), "model.text.gru.embedding=7"); len(cfg.Unread()) != 1 || cfg.Unread()[0].Path != "model.text.gru.embedding" {
		t.Errorf("unread of a transformer are %v", cfg.Unread())
	}
	if _, err := config.Load("testdata/scenes.toml", []string{"model.text.style=gru", "model.text.width=17", "model.text.gru.directions=concat"}); err == nil || !strings.Contains(err.Error(), "model.text.width: must be even") {
		t.Errorf("an odd width of two directions: %v", err)
	}
}
