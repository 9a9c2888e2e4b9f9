package bench

import (
	"slices"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/model"
)

// systems are the overrides that make tiny one of every system.
var systems = map[string][]string{
	"albef": nil,
	"clip": {"model.system=clip", "model.text.fusion_layers=0", "momentum.enabled=false", "queue.size=0", "objective.itc.weight=0",
		"objective.distill.alpha=0", "objective.itm.weight=0", "objective.mlm.weight=0", "eval.rerank_top=0"},
	"moco": {"model.system=moco", "objective.itm.weight=0", "objective.mlm.weight=0", "objective.itc.in_batch_weight=0",
		"objective.distill.alpha=0", "data.views=2", "eval.rerank_top=0"},
	"swav": {"model.system=swav", "momentum.enabled=false", "objective.itm.weight=0", "objective.mlm.weight=0", "objective.itc.in_batch_weight=0",
		"objective.distill.alpha=0", "data.views=2", "eval.rerank_top=0"},
	"matching": {"model.system=matching", "data.kind=regions", "data.regions.source=scenes", "data.regions.most=5", "data.regions.width=7", "model.image.style=regions", "model.text.fusion_layers=0",
		"momentum.enabled=false", "queue.size=0", "objective.itc.weight=0", "objective.distill.alpha=0", "objective.itm.weight=0", "objective.mlm.weight=0", "objective.hinge.weight=1", "eval.rerank_top=0"},
	"heads": {"model.system=heads", "data.kind=pairs", "data.pairs.image=a.npy", "data.pairs.text=b.npy", "model.heads.in_image=6", "model.heads.in_text=5",
		"momentum.enabled=false", "queue.size=0", "objective.itc.weight=0", "objective.distill.alpha=0", "objective.itm.weight=0", "objective.mlm.weight=0", "eval.rerank_top=0"},
}

// workloadOf is the workload of tiny with overrides.
func workloadOf(t *testing.T, sets ...string) *workload {
	t.Helper()
	_, w := configured(t, sets...)
	return w
}

// configured is the configuration of tiny with overrides and its workload.
func configured(t *testing.T, sets ...string) (config.Config, *workload) {
	t.Helper()
	cfg := check.Get(config.Load(tiny, sets))(t)
	e := check.Get(compute.New(compute.Options{Threads: 1}))(t)
	t.Cleanup(e.Close)
	w := check.Get(newWorkload(cfg, e, parallel.Single{}))(t)
	return cfg, w
}

// firstStep returns the parts of the loss in the first step.
func firstStep(t *testing.T, w *workload) []model.Part {
	t.Helper()
	r := check.Get(w.Step(t.Context(), &w.feed))(t)
	return slices.Clone(r.Parts)
}

// TestWorkloadBatches: every column of every system's batch is filled: noise that is
// another one in each column, texts of full length, ids that count the rows.
func TestWorkloadBatches(t *testing.T) {
	for system, sets := range systems {
		w := workloadOf(t, sets...)
		b := w.feed.Batch
		if err := batch.Check(w.Columns(), b.Columns()); err != nil || b.Rows() != 8 {
			t.Errorf("%s: %d rows, %v", system, b.Rows(), err)
		}
		var starts []float32
		for _, c := range b.Columns() {
			x := b.Ints(c.Name)
			switch c.Name {
			case batch.IDs:
				if !slices.Equal(x, []int32{0, 1, 2, 3, 4, 5, 6, 7}) {
					t.Errorf("%s: ids %v", system, x)
				}
			case batch.Lengths:
				if !slices.Equal(x, slices.Repeat([]int32{16}, 8)) {
					t.Errorf("%s: lengths %v", system, x)
				}
			case batch.RegionLengths:
				if !slices.Equal(x, slices.Repeat([]int32{5}, 8)) {
					t.Errorf("%s: regions %v", system, x)
				}
			case batch.Tokens:
				if slices.Min(x) < 0 || slices.Max(x) >= 120 || len(slices.Compact(slices.Sorted(slices.Values(x)))) < 40 {
					t.Errorf("%s: tokens %v", system, x)
				}
			default:
				f := b.Floats(c.Name)
				if len(f) == 0 || slices.Contains(f, 0) || slices.Contains(starts, f[0]) {
					t.Errorf("%s: column %v of %d values starts with %v", system, c, len(f), f[:min(3, len(f))])
				}
				starts = append(starts, f[0])
			}
		}
		if _, views := batch.Find(b.Columns(), batch.Views); views != (system == "moco" || system == "swav") || len(starts) == 0 {
			t.Errorf("%s: columns %v", system, b.Columns())
		}
		if q := w.Queue(); q != nil && (q.Filled != q.Size() || slices.Contains(q.Image, 0)) {
			t.Errorf("%s: %d of %d entries in the queue", system, q.Filled, q.Size())
		}
		if err := w.forward(t.Context(), 0); err != nil {
			t.Errorf("%s: %v", system, err)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestWorkloadIsMidRun: ramps are over and the queue is read, so that a configuration with
// ramps makes the step of one without.
func TestWorkloadIsMidRun(t *testing.T) {
	ramped := workloadOf(t, "queue.start_steps=3", "objective.distill.ramp_steps=10")
	got := firstStep(t, ramped)
	if want := firstStep(t, workloadOf(t, "queue.start_steps=0", "objective.distill.ramp_steps=0")); !slices.Equal(got, want) {
		t.Errorf("%v, without ramps %v", got, want)
	}
	ramped.feed.Update = 0
	if slices.Equal(firstStep(t, ramped), got) {
		t.Error("the first step of a run is the same, so the test shows little")
	}
}

// TestWorkloadMasks: every step draws masks of its own.
func TestWorkloadMasks(t *testing.T) {
	w := workloadOf(t, "model.text.dropout=0")
	mlm := func(parts []model.Part) float64 {
		i := slices.IndexFunc(parts, func(p model.Part) bool { return p.Name == "mlm" })
		if i < 0 {
			t.Fatalf("no mlm among %v", parts)
		}
		return parts[i].Value
	}
	first := mlm(firstStep(t, w))
	w.feed.Counter = 1
	second := mlm(firstStep(t, w))
	w.feed.Counter = 0
	if again := mlm(firstStep(t, w)); first == second || first != again {
		t.Errorf("loss %v, then %v, and %v with the masks of the first", first, second, again)
	}
}
