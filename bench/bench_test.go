package bench

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
)

// tiny is a run of the trainer's tests.
const tiny = "../cmd/trainer/testdata/tiny.toml"

// TestPhases checks that the times of all phases make up the step.
func TestPhases(t *testing.T) {
	cfg := check.Get(config.Load(tiny, nil))(t)
	var shown []string
	r := check.Get(Measure(t.Context(), cfg, Options{Steps: 3, Warmup: 1, Peak: time.Millisecond,
		Progress: func(phase string, done, total int) { shown = append(shown, phase) }}))(t)
	var sum float64
	for _, p := range r.Phases {
		sum += p.Share
	}
	if sum < 0.95 || sum > 1.001 {
		t.Errorf("the phases are %.3f of the step: %+v", sum, r.Phases)
	}
	if r.First == nil || r.First.End < r.First.Begin || r.First.Begin <= 0 {
		t.Errorf("first step at %+v", r.First)
	}
	if !slices.Equal(slices.Compact(shown), []string{"warm-up", "measuring"}) {
		t.Errorf("progress %v", shown)
	}
}

// TestTablesInterrupted keeps the rows measured before an interruption.
func TestTablesInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	load := func(sets ...string) (config.Config, error) { return config.Load(tiny, sets) }
	a := check.Get(ParseAxis("batch=4,8,16"))(t)
	o := Options{Steps: 1, Peak: time.Millisecond, Row: func(string) { cancel() }}
	tables, err := Tables(ctx, []Axis{a}, load, o)
	if !errors.Is(err, context.Canceled) || len(tables) != 1 || len(tables[0].Rows) != 1 {
		t.Errorf("got %v and %+v", err, tables)
	}
}

func TestAxes(t *testing.T) {
	base := config.Default() // 6 text and 6 fusion layers, 512 positions
	plain := base
	plain.Model.Text.FusionLayers = 0
	for _, r := range []struct {
		base config.Config
		axis string
		want string
	}{
		{base, "batch=8", "train.batch_size=8"},
		{base, "queue = 0", "queue.size=0"},
		{base, "vocabulary=100", "data.vocab_size=100"},
		{base, "threads=2", "compute.threads=2"},
		{base, "tokens=20", "data.tokens=20"},
		{base, "tokens=600", "data.tokens=600 model.text.positions=600"},
		{base, "depth=4", "model.image.depth=4 model.text.layers=2 model.text.fusion_layers=2"},
		{base, "depth=5", "model.image.depth=5 model.text.layers=3 model.text.fusion_layers=2"},
		{base, "depth=1", "model.image.depth=1 model.text.layers=1 model.text.fusion_layers=1"},
		{plain, "depth=4", "model.image.depth=4 model.text.layers=4 model.text.fusion_layers=0"},
		{base, "momentum.enabled=true", "momentum.enabled=true"},
	} {
		a, err := ParseAxis(r.axis)
		if err != nil {
			t.Errorf("%s: %v", r.axis, err)
			continue
		}
		if got := strings.Join(a.sets(r.base, a.Values[0]), " "); got != r.want {
			t.Errorf("%s sets %s, want %s", r.axis, got, r.want)
		}
	}
}

// TestCompare looks at the numbers of a comparison by hand.
func TestCompare(t *testing.T) {
	before := Result{Config: "a", Engine: "plain", Threads: 1, StepMS: 200, Samples: 40, Peak: 100,
		Phases: []Time{{Name: "forward", MS: 80}}, Ops: []Time{{Name: "linear", MS: 50}, {Name: "gelu", MS: 10}}}
	now := Result{Config: "a", System: "albef", Precision: "bf16", Engine: "onednn", Threads: 2, Batch: 8, StepMS: 100, Samples: 80, Peak: 150,
		Phases: []Time{{Name: "forward", MS: 20}}, Ops: []Time{{Name: "linear", MS: 25}, {Name: "linear gelu", MS: 30}}}
	c := Compare("old.json", before, now)
	if want := []string{"engine differs: plain in old.json, onednn now", "threads differs: 1 in old.json, 2 now"}; !slices.Equal(c.Warnings, want) {
		t.Errorf("warnings %q, want %q", c.Warnings, want)
	}
	find := func(group, name string) Compared {
		for _, r := range c.Rows {
			if r.Group == group && r.Name == name {
				return r
			}
		}
		t.Errorf("no row for the %s %s", group, name)
		return Compared{}
	}
	for _, want := range []Compared{
		{"step", "step ms", 200, 100, 0.5}, {"step", "samples per second", 40, 80, 2}, {"step", "GEMM peak GFLOP/s", 100, 150, 1.5},
		{"step", "peak memory MB", 0, 0, 0}, {"phase", "forward", 80, 20, 0.25}, {"op", "linear", 50, 25, 0.5},
		{"op", "gelu", 10, 0, 0}, {"op", "linear gelu", 0, 30, 0},
	} {
		if got := find(want.Group, want.Name); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	if c.Speed() != 2 {
		t.Errorf("speed %v, want 2", c.Speed())
	}
}
