package model

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/objectives"
)

// inMicroBatches is a configuration whose batches are cut into k.
func inMicroBatches(cfg config.Config, k int) config.Config {
	cfg.Train.BatchSize /= k
	cfg.Train.AccumulateSteps, cfg.Train.Accumulate = k, config.AccumulateFeatures
	return cfg
}

// microBatches cuts the batch of a step into k.
func microBatches(s *feed.Step, k int) (list []*feed.Step) {
	rows := s.Batch.Rows() / k
	for i := range k {
		x := batch.New(rows, s.Batch.Columns()...)
		for r := range rows {
			x.Row(r).Copy(s.Batch.Row(i*rows + r))
		}
		list = append(list, &feed.Step{Batch: x, Update: s.Update, Micro: i, Counter: s.Update*k + i, PerEpoch: s.PerEpoch})
	}
	return list
}

// compareInParts makes a step over all micro-batches and returns the sum of the gradients.
func compareInParts(t testing.TB, m *Trainer, parts []*feed.Step) (*Result, []float32) {
	t.Helper()
	for _, s := range parts {
		check.OK(t, m.Encode(t.Context(), s))
	}
	all := *parts[0]
	all.Batch, all.Counter = nil, all.Update
	res := check.Get(m.Compare(t.Context(), &all))(t)
	sum := slices.Clone(m.Params().Grads())
	for _, s := range parts {
		clear(m.Params().Grads())
		check.OK(t, m.Backward(t.Context(), s))
		for i, g := range m.Params().Grads() {
			sum[i] += g
		}
	}
	return res, sum
}

// comparedSystems are configurations whose losses read features alone.
func comparedSystems() map[string]config.Config {
	of := func(cfg config.Config, rows int, change func(c *config.Config, o *config.Objective)) config.Config {
		cfg.Train.BatchSize = rows
		change(&cfg, &cfg.Objective)
		return cfg
	}
	taught := func(c *config.Config, o *config.Objective) {
		c.Momentum.Enabled, c.Queue.Size, o.ITC.Weight, o.Distill.Alpha = true, 96, 1, 0.4
		o.Distill.RampSteps, o.Distill.RampEpochs = 1, 0
	}
	return map[string]config.Config{
		"contrast":           of(tinyCLIP("sphere"), 1024, func(*config.Config, *config.Objective) {}),
		"sigmoid, ids":       of(tinyCLIP("sphere"), 64, func(_ *config.Config, o *config.Objective) { o.SigLIP.Weight, o.ITC.Positives = 1, "id" }),
		"metric":             of(tinyCLIP("sphere"), 64, func(_ *config.Config, o *config.Objective) { o.ITC.Score, o.GSSF.Form = "gssf", "dense" }),
		"oblique":            of(tinyCLIP("Ob(4,2)"), 64, func(_ *config.Config, o *config.Objective) { o.ITC.Score = "angle" }),
		"class tokens":       of(tinyCLIP("Multi(2,4)"), 64, func(*config.Config, *config.Objective) {}),
		"euclid":             of(tinyCLIP("euclid"), 64, func(*config.Config, *config.Objective) {}),
		"queue":              of(tinyCLIP("sphere"), 32, taught),
		"intra, gssf, queue": of(tinyCLIP("sphere"), 32, func(c *config.Config, o *config.Objective) { taught(c, o); o.TCL.Intra, o.ITC.Score = true, "gssf" }),
		"geodesic": of(tinyCLIP("sphere"), 32, func(c *config.Config, o *config.Objective) {
			taught(c, o)
			c.Queue.Size, o.ITC.Score, o.Geodesic.Layers, o.Geodesic.Entries = 64, "geodesic", []int{3, 9}, 4
		}),
		"fused, dynamic momentum": of(tinyADCL("tucker", 3), 32, func(c *config.Config, o *config.Objective) {
			c.Queue.Size, c.Momentum.Rule, c.Model.Head.Style, c.Model.Head.Activation = 96, objectives.MomentumDynamic, encoders.HeadMLP, "tanh"
			o.ITC.InBatchWeight = 1
		}),
		"frozen image tower": of(tinyCLIP("sphere"), 64, func(c *config.Config, _ *config.Objective) { c.Model.Image.Freeze = true }),
		"no projections": of(tinyCLIP("sphere"), 64, func(c *config.Config, _ *config.Objective) {
			c.Model.Image.Freeze, c.Model.Text.Width, c.Model.Head.Dim, c.Model.Head.Identity = true, 16, 16, "both"
		}),
		"recomputed": of(tinyCLIP("sphere"), 64, func(c *config.Config, _ *config.Objective) { c.Compute.Recompute = true }),
		"heads": of(tinyHeads(), 64, func(c *config.Config, o *config.Objective) {
			c.Model.Heads.Dropout = 0
		}),
		"without fusion": of(tinyConfig(), 32, func(c *config.Config, o *config.Objective) {
			c.Queue.Size, o.ITM.Weight, o.MLM.Weight, c.Model.Text.FusionLayers = 96, 0, 0, 0
		}),
	}
}

// TestFeatureCache: a step over 8 micro-batches has the loss, the gradients by name to 1e-5 of
// their largest element, and the queue of a step over one batch of all pairs, also in later steps.
func TestFeatureCache(t *testing.T) {
	for name, cfg := range comparedSystems() {
		t.Run(name, func(t *testing.T) {
			const k = 8
			parts := inMicroBatches(cfg, k)
			check.OK(t, parts.Validate())
			whole, m := build(t, cfg, "builtin", 2), build(t, parts, "builtin", 2)
			for update := range 4 {
				b := randomPairs(whole, uint64(update))
				if cfg.Has(section.Stored) {
					b = randomFeatures(cfg, uint64(update))
				}
				for i := range b.IDs {
					b.IDs[i] = int32(i * 2 / 3)
				}
				for _, m := range []*Trainer{whole, m} {
					check.OK(t, m.Before(update))
				}
				s := whole.feed(b, Control{Step: update})
				s.PerEpoch = 100
				want := stepOf(t, whole, s)
				got, sum := compareInParts(t, m, microBatches(s, k))
				if !(math.Abs(got.Loss-want.Loss) <= 1e-5*math.Abs(want.Loss)) || len(got.Parts) != len(want.Parts) {
					t.Errorf("update %d: loss %v, of one batch %v (%v, %v)", update, got.Loss, want.Loss, got.Parts, want.Parts)
				}
				for _, q := range whole.Params().List() {
					if whole.Learnable(q.Name) != m.Learnable(q.Name) {
						t.Errorf("%s is trained: %t", q.Name, m.Learnable(q.Name))
					}
					if q.Locked {
						continue
					}
					rel, err := relative(sum[m.Params().Offset(q):][:q.Len()], whole.Params().Grad(q))
					if err != nil || !(rel <= 1e-5) {
						t.Errorf("update %d: gradient of %s differs by %.1e of its largest element (%v)", update, q.Name, rel, err)
					}
				}
				// The same values from here on: small differences grow from step to step.
				grads := whole.Params().Grads()
				for i, g := range grads {
					whole.Params().Values()[i] -= 0.05 * g
				}
				copy(m.Params().Values(), whole.Params().Values())
				for _, m := range []*Trainer{whole, m} {
					m.UpdateMomentum(0.9)
					check.OK(t, m.After())
				}
				if q := whole.Queue(); q != nil {
					p := m.Queue()
					rel, err := relative(p.Image, q.Image)
					if other, failed := relative(p.Text, q.Text); !(max(rel, other) <= 1e-5) || err != nil || failed != nil {
						t.Errorf("update %d: the queue differs by %.1e and %.1e", update, rel, other)
					}
					if !slices.Equal(p.IDs, q.IDs) || p.Pointer != q.Pointer || p.Filled != q.Filled {
						t.Errorf("update %d: the queue is at %d of %d, of one batch at %d of %d", update, p.Pointer, p.Filled, q.Pointer, q.Filled)
					}
					copy(p.Image, q.Image) // graphs must be built over the same
					copy(p.Text, q.Text)
				}
			}
		})
	}
}

// TestFeatureCacheMasks: both passes of a micro-batch have the bits of one: dropout masks, patches
// left out and features. Another update draws others.
func TestFeatureCacheMasks(t *testing.T) {
	cfg := tinyCLIP("sphere")
	cfg.Train.BatchSize, cfg.Model.Text.Dropout, cfg.Model.Image.KeepPatches = 12, 0.3, 0.5
	cfg.Momentum.Enabled, cfg.Queue.Size, cfg.Objective.ITC.Weight = true, 12, 1
	whole, m := build(t, cfg, "builtin", 2), build(t, inMicroBatches(cfg, 3), "builtin", 2)
	s := whole.feed(randomPairs(whole, 1), Control{})
	seen := map[float32]bool{}
	for update := range 2 {
		s.Update = update
		parts := microBatches(s, 3)
		compareInParts(t, m, parts)
		for i, side := range m.cache.online.sides {
			seen[side.all[0]] = true
			for k, s := range parts {
				check.OK(t, m.Backward(t.Context(), s))
				f, err := m.cache.online.machine.Value(side.features)
				if err != nil || !sameBits(f.F32, side.all[k*len(f.F32):][:len(f.F32)]) {
					t.Errorf("side %d, micro-batch %d: the second pass has other features (%v)", i, k, err)
				}
			}
		}
	}
	if len(seen) != 4 {
		t.Error("two updates have the same features: there are no masks")
	}
}

// TestFeatureCacheMemory: the memory of a step is that of a micro-batch and of the features, and
// the footprint says so before and after it is built.
func TestFeatureCacheMemory(t *testing.T) {
	cfg := tinyCLIP("sphere")
	cfg.Model.Image.Size, cfg.Model.Image.Patch, cfg.Train.BatchSize = 32, 4, 256
	whole, m := build(t, cfg, "builtin", 2), build(t, inMicroBatches(cfg, 16), "builtin", 2)
	one := cfg
	one.Train.BatchSize /= 16
	small := build(t, one, "builtin", 2).Footprint()
	all, parts := whole.Footprint(), m.Footprint()
	features, scores := int64(4*4*256*8), int64(4*256*256)
	if parts.Features != features {
		t.Errorf("features take %d bytes, want %d", parts.Features, features)
	}
	if got := m.step.machine.Memory() + m.cache.online.machine.Memory(); parts.Buffers != got || parts.Gradients != 2*all.Gradients || parts.Moments != all.Moments {
		t.Errorf("takes %v, of which %d are results", parts, got)
	}
	if parts.Buffers > small.Buffers+6*scores+8*features || parts.Buffers > all.Buffers/4 {
		t.Errorf("results take %d bytes, of one micro-batch %d, of one batch %d", parts.Buffers, small.Buffers, all.Buffers)
	}
	if e, err := Estimate(inMicroBatches(cfg, 16)); err != nil || e.Parameters > parts.Parameters || e.Gradients > parts.Gradients || e.Moments > parts.Moments || e.Buffers > parts.Buffers || e.Features != parts.Features || e.Batches < 18*16*3*32*32*4 {
		t.Errorf("the estimate %v is no lower limit of %v (%v)", e, parts, err)
	}
}

// tokenLoss is a loss that reads tokens.
type tokenLoss struct{ *objectives.ITC }

func (tokenLoss) Prepare(s *objectives.Step) { s.Reads.Online.Image.Tokens = true }

// classLoss is a loss that reads what is before a head.
type classLoss struct{}

func (classLoss) Build(s *objectives.Step) []objectives.Part {
	return []objectives.Part{{Name: "classes", Node: s.Backbone(s.Online.Image)}}
}

// TestFeatureCacheErrors: what reads more than features is refused when the model is built, and a
// model is not asked for the other kind of step.
func TestFeatureCacheErrors(t *testing.T) {
	cfg := tinyCLIP("sphere")
	cfg.Train.BatchSize = 8
	parts := inMicroBatches(cfg, 2)
	for want, l := range map[string]objectives.Loss{
		`train.accumulate: must be "gradients" with a loss that reads tokens`: tokenLoss{&objectives.ITC{InBatchWeight: 1}},
		`set train.accumulate = "gradients"`:                                  classLoss{},
	} {
		if _, err := New(parts, Options{Engine: newEngine(t), Vocab: tinyVocab, MaskID: 4, Losses: []objectives.Loss{l}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	m, whole := build(t, parts, "builtin", 1), build(t, cfg, "builtin", 1)
	s := whole.feed(randomPairs(whole, 1), Control{})
	check.Fails(m.Step(t.Context(), microBatches(s, 2)[0]))(t, "Compare")
	_, err := whole.Compare(t.Context(), s)
	for _, err := range []error{err, whole.Encode(t.Context(), s), whole.Backward(t.Context(), s)} {
		check.Error(t, err, "train.accumulate")
	}
}
