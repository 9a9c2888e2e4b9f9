package bench

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
)

// TestMeasuresPools runs the step of GeRA in small: pools and neighbours are made up, and the
// ops of the chunks are in the profile with their products.
func TestMeasuresPools(t *testing.T) {
	cfg, err := config.Load("../configs/bench/gera.toml", []string{"train.batch_size=6", "objective.geometric.neighbours=4", "objective.geometric.chunk=8",
		"model.heads.hidden=16", "model.heads.in_image=12", "model.heads.in_text=10", "model.head.dim=8"})
	if err != nil {
		t.Fatal(err)
	}
	r := check.Get(Measure(t.Context(), cfg, Options{Steps: 2, Warmup: 1, Peak: time.Millisecond}))(t)
	ops := map[string]Time{}
	for _, o := range r.Ops {
		ops[o.Name] = o
	}
	for _, name := range []string{"geometric pool", "geometric compare", "pool rows", "linear"} {
		if ops[name].MS <= 0 {
			t.Errorf("no time of %s in %v", name, slices.Collect(maps.Keys(ops)))
		}
	}
	// Forward, weights and the hidden values' gradient: five products of which two are of the
	// first layer and three of the second, for 24 points and 6 anchors a side.
	points := 2.0 * (24 + 6)
	if least := points * 2 * (2*10*16 + 3*16*8) / 1e9; r.GFLOP < least {
		t.Errorf("%v GFLOP, want at least %v: those of the chunks are missing", r.GFLOP, least)
	}
}
