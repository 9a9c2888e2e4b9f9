package model

import (
	"errors"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// limitMemory makes a machine of n bytes for the length of a test.
func limitMemory(t *testing.T, n int64) {
	old := totalMemory
	totalMemory = func() int64 { return n }
	t.Cleanup(func() { totalMemory = old })
}

func TestFootprint(t *testing.T) {
	m := build(t, tinyConfig(), "auto", 1)
	f, n := m.Footprint(), 4*int64(m.params.Count())
	// 8 entries of 8 channels for two modalities and an id.
	want := Footprint{Parameters: n, Gradients: n, Moments: 2 * n, Momentum: 4 * int64(len(m.params.momentum)), Queue: 4 * 8 * 17, Buffers: m.Machine().Memory()}
	if f != want {
		t.Errorf("got %+v, want %+v", f, want)
	}
	if sum := 4*n + want.Momentum + want.Queue + want.Buffers; f.Total() != sum {
		t.Errorf("total %d, want %d", f.Total(), sum)
	}
	h := buildHeads(t, tinyHeads())
	n = 4 * int64(h.params.Count())
	if f := h.Footprint(); f.Parameters != n || f.Momentum != 0 || f.Queue != 0 || f.Buffers <= 0 {
		t.Errorf("heads: %+v", f)
	}
	cfg := tinyKLOT() // 5 pairs and 3 unpaired rows
	if f := buildKLOT(t, cfg, klotOptions(cfg, 3, 9)).Footprint(); f.Plans != 32*8*8 || f.Total() != f.Parameters+f.Gradients+f.Moments+f.Plans+f.Buffers {
		t.Errorf("transport plans: %+v", f)
	}
	if s := (Footprint{Parameters: 3 << 20, Queue: 3 << 29}).String(); s != "parameters 3 MB, queue 1.5 GB" {
		t.Errorf("printed as %q", s)
	}
}

// TestTooLarge refuses what the machine cannot hold, each time before it is taken.
func TestTooLarge(t *testing.T) {
	engine := newEngine(t)
	m := modelOn(t, tinyConfig(), engine)
	f := m.Footprint()
	for name, c := range map[string]struct {
		limit   int64
		buffers bool // known to the error
	}{
		"queue":      {f.Queue - 1, false},
		"parameters": {f.Queue + f.Parameters, false},
		"buffers":    {f.Total() - f.Buffers + f.Buffers/8, true},
	} {
		t.Run(name, func(t *testing.T) {
			limitMemory(t, c.limit)
			_, err := newModel(tinyConfig(), engine)
			var full *MemoryError
			if !errors.As(err, &full) || full.Limit != c.limit || full.Need.Total() <= c.limit || full.Need.Buffers > 0 != c.buffers {
				t.Fatalf("got %v", err)
			}
			if !strings.Contains(err.Error(), "this machine has") || !strings.Contains(err.Error(), ": lower ") {
				t.Errorf("got %v", err)
			}
		})
	}
	limitMemory(t, f.Total())
	if _, err := newModel(tinyConfig(), engine); err != nil {
		t.Error(err)
	}
	limitMemory(t, 0) // not known
	if _, err := newModel(tinyConfig(), engine); err != nil {
		t.Error(err)
	}
}

// TestPlansTooLarge: transport plans grow by the square of their rows, and the error says so.
func TestPlansTooLarge(t *testing.T) {
	cfg := tinyKLOT()
	cfg.Objective.KLOT.Rows = 1 << 16
	limitMemory(t, 64<<30)
	const want = "transport plans 128.0 GB"
	check.Error(t, Fits(cfg), want, ": lower train.batch_size or objective.klot.rows")
}
