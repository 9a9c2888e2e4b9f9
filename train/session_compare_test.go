package train

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config"
)

// comparedSets make a dual encoder of the tiny configuration, with a teacher and a queue, whose
// losses compare the pairs of all micro-batches.
func comparedSets(more ...string) []string {
	return append([]string{"model.system=clip", "model.text.fusion_layers=0", "objective.itm.weight=0", "objective.mlm.weight=0", "eval.rerank_top=0",
		"train.accumulate=features"}, more...)
}

// TestComparedSession: a session over 4 micro-batches of 4 makes the updates of one over batches of
// 16, and its records say so.
func TestComparedSession(t *testing.T) {
	plain := []string{"model.text.dropout=0", "queue.start_steps=1", "optimizer.eps=0.001", "data.scenes.epoch_samples=64"}
	whole := small(t, 0, 0, comparedSets(append(plain, "train.batch_size=16")...)...)
	parts := small(t, 0, 0, comparedSets(append(plain, "train.batch_size=4", "train.accumulate_steps=4")...)...)
	for i := range 5 {
		want, got := whole.must(t, i), parts.must(t, i)
		if !(math.Abs(got.Loss-want.Loss) <= 1e-4*want.Loss) || !(math.Abs(got.GradNorm-want.GradNorm) <= 1e-3*want.GradNorm) || got.Samples != 16 || got.LR != want.LR || len(got.Parts) != len(want.Parts) {
			t.Errorf("step %d: %+v, of one batch %+v", i, got, want)
		}
	}
	a, b := parts.state(), whole.state()
	for name, x := range a {
		for i, v := range x {
			if !(math.Abs(float64(v-b[name][i])) <= 1e-3) {
				t.Fatalf("%s differs: %v, of one batch %v", name, v, b[name][i])
			}
		}
	}
}

// TestComparedResume: a run goes on from a checkpoint with the same bits.
func TestComparedResume(t *testing.T) {
	sets := comparedSets("train.batch_size=4", "train.accumulate_steps=3", "model.image.keep_patches=0.5")
	whole := small(t, 0, 0, sets...)
	for i := range 3 {
		whole.must(t, i)
	}
	sameResumed(t, whole, 3, sets...)
}

// TestComparedNonFinite: a number that is not finite in any micro-batch leaves everything as it was
// but the place in the data, and the next step is made.
func TestComparedNonFinite(t *testing.T) {
	for _, check := range []string{"false", "true"} {
		s := small(t, 13, 14, comparedSets("train.batch_size=4", "train.accumulate_steps=3", "compute.check_nan="+check)...)
		s.must(t, 0)
		before := s.state()
		_, err := s.Step(t.Context(), 1)
		var bad *NonFiniteError
		if !errors.As(err, &bad) {
			t.Fatalf("check_nan %s: got %v", check, err)
		}
		after := s.state()
		if after["position"][0] != 24 {
			t.Errorf("check_nan %s: the place in the data is %v, want 24", check, after["position"])
		}
		after["position"] = before["position"]
		sameMemory(t, "after a bad step", after, before)
		if r := s.must(t, 2); !finite(r.Loss) {
			t.Errorf("check_nan %s: loss %v", check, r.Loss)
		}
	}
}

// TestComparedSystem: a system that cannot compare is refused.
func TestComparedSystem(t *testing.T) {
	s := small(t, 0, 0, comparedSets("train.batch_size=4", "train.accumulate_steps=2")...)
	cfg, err := config.Load("../cmd/trainer/testdata/tiny.toml", comparedSets("train.batch_size=4", "train.accumulate_steps=2"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = NewSession(cfg, Options{Engine: nil, Model: &averaged{System: s.model}, Stream: nil})
	if err == nil {
		t.Fatal("a system without Compare is trained")
	}
	if !strings.Contains(err.Error(), "train.accumulate") {
		t.Errorf("got %v", err)
	}
}
