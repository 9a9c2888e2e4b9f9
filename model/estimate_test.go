package model

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/check"
)

// The estimate is at most what a model takes, in each of its parts, and no small part of
// its parameters.
func TestEstimate(t *testing.T) {
	for name, change := range map[string]func(*config.Config){
		"albef":     func(*config.Config) {},
		"recompute": func(c *config.Config) { c.Compute.Recompute = true },
		"deep":      func(c *config.Config) { c.Model.Image.Depth, c.Model.Text.Layers, c.Compute.Recompute = 6, 5, true },
		"no teacher": func(c *config.Config) {
			c.Momentum.Enabled, c.Queue.Size, c.Objective.Distill.Alpha = false, 0, 0
			c.Objective.ITC.Weight, c.Objective.ITC.InBatchWeight = 0, 1
		},
		"bf16":   func(c *config.Config) { c.Compute.Precision = "bf16" },
		"clip":   func(c *config.Config) { *c = tinyCLIP("sphere") },
		"multi":  func(c *config.Config) { *c = tinyCLIP("Multi(4,2)") },
		"moco":   func(c *config.Config) { *c = tinyViews(t, "moco") },
		"swav":   func(c *config.Config) { *c = tinyViews(t, "swav") },
		"resnet": func(c *config.Config) { *c = tinyViews(t, "swav", narrow...) },
		"frozen stages": func(c *config.Config) {
			*c = tinyViews(t, "moco", append(slices.Clone(narrow), "model.image.resnet.depth=50", "model.image.resnet.frozen_stages=3")...)
		},
		"simcse":     func(c *config.Config) { *c = tinySimCSE(t) },
		"triplets":   func(c *config.Config) { *c = tinySimCSE(t, triplets...) },
		"mcse":       func(c *config.Config) { *c = tinyMCSE() },
		"pairs":      func(c *config.Config) { *c = tinyPairs(t, "snli") },
		"joint":      func(c *config.Config) { *c = tinyPairs(t, "rte", "objective.sentence_pairs.encoding=joint") },
		"every idea": func(c *config.Config) { *c = everyIdea() },
		"tokens": func(c *config.Config) {
			*c = tinyFILIP("max_ave")
			c.Train.BatchSize = 20 // most of the memory is places
		},
		"vectors": func(c *config.Config) {
			*c = tinySGRAF("sgr")
			c.Model.Interaction.SimDim, c.Model.Interaction.Steps = 64, 4 // most of the weights
		},
		"matching": func(c *config.Config) {
			*c = tinyCLIP("sphere")
			c.Model.System, c.Model.Head.Dim = "matching", 24 // as wide as texts
		},
		"recurrent": func(c *config.Config) { *c = tinyHost("vsepp"); c.Model.Text.Layers, c.Model.Text.Width = 2, 32 },
		"side by side": func(c *config.Config) {
			*c = tinyHost("vsepp")
			c.Model.Text.GRU.Directions, c.Model.Text.Layers, c.Model.Text.Width = encoders.DirectionsConcat, 3, 32
		},
		"captioning": func(c *config.Config) { *c = tinyHost("vsrn_caption"); c.Train.BatchSize = 9 },
		"heads":      func(c *config.Config) { *c = tinyHeads() },
		"full core":  func(c *config.Config) { *c = tinyADCL("tucker", 0); c.Queue.Size = 200 },
		"ranks":      func(c *config.Config) { *c = tinyADCL("tucker", 100) },
		"mlp head":   func(c *config.Config) { *c = tinyCLIP("sphere"); c.Model.Head.Style, c.Model.Head.Shared = "mlp", 80 },
		"plans":      func(c *config.Config) { *c = tinyKLOT() },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := tinyConfig()
			change(&cfg)
			least := check.Get(Estimate(cfg))(t)
			m, err := newModel(cfg, newEngine(t))
			switch {
			case name == "heads":
				m = buildHeads(t, cfg)
			case name == "plans":
				m = buildKLOT(t, cfg, klotOptions(cfg, 3, 9))
			case err != nil:
				t.Fatal(err)
			}
			f := m.Footprint()
			if least.Queue != f.Queue || least.Plans != f.Plans || least.Parameters > f.Parameters || least.Gradients > f.Gradients || least.Moments > f.Moments || least.Momentum > f.Momentum ||
				least.Buffers > f.Buffers {
				t.Errorf("estimated %+v of %+v", least, f)
			}
			if least.Parameters < f.Parameters/2 || least.Batches == 0 {
				t.Errorf("estimated only %+v of %+v", least, f)
			}
			sized := check.Get(modelOf(cfg, Options{}, nil))(t)
			p := estimate{sized}
			_, kept := p.sizes()
			results, held := p.resultBytes(kept), f.Buffers+m.Machine().Borrowed()
			if results == 0 || results > held || least.Buffers != max(results-least.Gradients, 0) {
				t.Errorf("estimated results of %d bytes, %d of them beside %d of gradients; they take %d", results, least.Buffers, least.Gradients, held)
			}
		})
	}
}

// What configurations at their limits need can be counted, and is refused before anything
// is built.
func TestEstimateOfTheLargest(t *testing.T) {
	limitMemory(t, 1<<40)
	for name, change := range map[string]func(*config.Config){
		"tower": func(c *config.Config) {
			c.Model.Image.Depth, c.Model.Image.Width, c.Model.Image.MLP = 128, 1<<16, 1<<18
		},
		"text": func(c *config.Config) {
			c.Model.Text.Layers, c.Model.Text.FusionLayers, c.Model.Text.Width, c.Model.Text.MLP = 128, 128, 1<<16, 1<<18
		},
		"batch": func(c *config.Config) {
			c.Train.BatchSize, c.Queue.Size = 1<<16, 1<<24
			c.Model.Image.Size, c.Model.Image.Patch = 1<<13, 32
		},
		"queue": func(c *config.Config) { c.Queue.Size, c.Model.Head.Dim = 1<<24, 1<<16 },
		"prefetch": func(c *config.Config) {
			c.Data.Prefetch, c.Data.Workers, c.Model.Image.Size = 1<<10, 1<<10, 1<<13
			c.Train.BatchSize = 1 << 12
		},
		"hidden": func(c *config.Config) { *c = tinyHeads(); c.Model.Heads.InImage, c.Model.Heads.Hidden = 1<<20, 1<<20 },
	} {
		cfg := tinyConfig()
		change(&cfg)
		f, err := Estimate(cfg)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, n := range []int64{f.Parameters, f.Momentum, f.Queue, f.Plans, f.Buffers, f.Batches, f.Total()} {
			if n < 0 || n > math.MaxInt64/4 {
				t.Errorf("%s: %+v", name, f)
			}
		}
		full := (*MemoryError)(nil)
		if err := Fits(cfg); !errors.As(err, &full) {
			t.Errorf("%s: fits: %v, %+v", name, err, f)
		} else if name == "prefetch" && !strings.HasSuffix(err.Error(), "lower data.prefetch, data.workers, train.batch_size or the image size") {
			t.Error(err)
		}
	}
}

// TestEstimateThere: where results may take half, those that find no room among the gradients, which do not, are fewer
// than half.
func TestEstimateThere(t *testing.T) {
	const gradients = 100
	for _, results := range []int64{50, 150, 250, 400} {
		f := Footprint{Gradients: 2 * gradients, Moments: 2 * gradients, Buffers: max(results-gradients, 0)} // of micro-batches
		if got, want := f.there(true).Buffers, max(results/2-gradients, 0); got != want {
			t.Errorf("of %d bytes of results %d beside the gradients, want %d", results, got, want)
		}
		if got := f.there(false).Buffers; got != f.Buffers {
			t.Errorf("%d in float32, want %d", got, f.Buffers)
		}
	}
}
