package model

import (
	"slices"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/rng"
)

// TestKeepRows: class tokens and as many patches as asked for, in order, each patch as often as
// any other.
func TestKeepRows(t *testing.T) {
	const n, tokens, classes, kept, draws = 3, 12, 2, 4, 2000
	var seen [tokens]int
	for i := range draws {
		dst := make([]int32, n*(classes+kept))
		keepRows(rng.New(1, rng.Patches, uint64(i)), dst, n, tokens, classes, kept)
		for image := range n {
			own := dst[image*(classes+kept):][:classes+kept]
			first := int32(image * tokens)
			if own[0] != first || own[1] != first+1 || !slices.IsSorted(own) || own[len(own)-1] >= first+tokens {
				t.Fatalf("image %d keeps %v", image, own)
			}
			if len(slices.Compact(slices.Clone(own))) != len(own) {
				t.Fatalf("image %d keeps a row twice: %v", image, own)
			}
			for _, r := range own[classes:] {
				seen[r-first]++
			}
		}
	}
	for p, count := range seen[classes:] { // of 6000, .4 each: 2400, standard deviation 38
		if count < 2200 || count > 2600 {
			t.Errorf("patch %d is kept %d times of %d", p, count, n*draws)
		}
	}
}

// TestKeptPatches: a training step sees other patches each time, the same ones when it is made
// again, and is cheaper; an encoding sees all.
func TestKeptPatches(t *testing.T) {
	for name, change := range map[string]func(c *config.Config){
		"clip":      func(*config.Config) {},
		"classes":   func(c *config.Config) { c.Model.Head.Topology = "Multi(4,2)" },
		"late":      func(c *config.Config) { c.Model.Head.Topology, c.Model.Head.TokenBlocks = "Multi(4,2)", 1 },
		"mean":      func(c *config.Config) { c.Model.Image.Pool = "mean" },
		"attention": func(c *config.Config) { c.Model.Image.Style = "siglip" },
		"registers": func(c *config.Config) { c.Model.Image.Style, c.Model.Image.Registers = "dinov2", 2 },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := tinyCLIP("sphere")
			change(&cfg)
			cfg.Model.Image.Patch = 4 // 16 patches
			all := buildCLIP(t, cfg)
			cfg.Model.Image.KeepPatches = 0.25
			some := buildCLIP(t, cfg)
			loss := func(m *Trainer, update int) float64 {
				s := m.feed(randomBatch(m, 1), Control{})
				s.Update, s.Counter = update, update
				return stepOf(t, m, s).Loss
			}
			first, second := loss(some, 1), loss(some, 2)
			if again := loss(some, 1); first != again || first == second || first == loss(all, 1) {
				t.Errorf("losses %v, %v and again %v", first, second, again)
			}
			a, b := all.step.machine.Profile().FLOPs, some.step.machine.Profile().FLOPs
			if b/3 >= a*8/10 { // of three steps and of one
				t.Errorf("%d operations a step with all patches, %d with a quarter", a, b/3)
			}
			if x, y := encodedImages(t, all), encodedImages(t, some); !slices.Equal(x, y) {
				t.Error("an encoding leaves patches out")
			}
		})
	}
}

// encodedImages are the features of a batch of images.
func encodedImages(t *testing.T, m *Trainer) []float32 {
	t.Helper()
	_, f := check.Get2(m.Image().Encode(t.Context(), m.feed(randomBatch(m, 1), Control{}).Batch))(t)
	return slices.Clone(f)
}
