package model

import (
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
)

// TestFrozenTowers: a frozen tower has no gradients, no twin and no memory for either, the step
// computes less, and what is not frozen is trained as before.
func TestFrozenTowers(t *testing.T) {
	for name, base := range map[string]config.Config{"albef": allOn(), "clip": tinyCLIP("sphere"), "moco": tinyViews(t, "moco")} {
		for _, side := range []string{"image", "text"} {
			if name == "moco" && side == "text" {
				continue
			}
			t.Run(name+"/"+side, func(t *testing.T) {
				cfg := base
				free := build(t, cfg, "builtin", 2)
				if side == "image" {
					cfg.Model.Image.Freeze = true
				} else {
					cfg.Model.Text.Freeze = true
				}
				check.OK(t, cfg.Validate())
				m := build(t, cfg, "builtin", 2)
				// Of the text side of ALBEF, the fusion layers and the head of masked words are
				// no part of the tower.
				tower := func(q *Param) bool {
					return strings.HasPrefix(q.Name, side+"/") && !strings.HasPrefix(q.Name, "text/layers/02") && !strings.HasPrefix(q.Name, "text/layers/03") && !strings.HasPrefix(q.Name, "text/mlm/")
				}
				locked := 0
				for _, q := range m.Params().List() {
					if q.Locked != tower(q) || q.Locked && (q.Momentum || m.Learnable(q.Name) || m.Params().Grad(q) != nil) || !q.Locked && !m.Learnable(q.Name) && free.Learnable(q.Name) {
						t.Errorf("%s: locked %v, with a twin %v, learned %v", q.Name, q.Locked, q.Momentum, m.Learnable(q.Name))
					}
					if q.Locked {
						locked += q.Len()
					}
				}
				if locked == 0 || len(m.Params().Grads()) != m.Params().Count()-locked || len(m.Params().Values()) != len(m.Params().Grads()) {
					t.Errorf("%d values are locked, %d of %d have gradients", locked, len(m.Params().Grads()), m.Params().Count())
				}
				before, after := free.Footprint(), m.Footprint()
				if n := 4 * int64(locked); after.Gradients != before.Gradients-n || after.Moments != before.Moments-2*n || after.Buffers >= before.Buffers || before.Momentum > 0 && after.Momentum >= before.Momentum {
					t.Errorf("takes %v, %v without", after, before)
				}
				for _, m := range []*Trainer{m, free} {
					b := viewsBatch(1)
					if name != "moco" {
						b = randomBatch(m, 1)
					}
					forward(t, m, b, Control{})
				}
				if a, b := free.step.machine.Profile().FLOPs, m.step.machine.Profile().FLOPs; b >= a {
					t.Errorf("%d operations a step, %d without", b, a)
				}
				if g := m.Params().Grads(); !slices.ContainsFunc(g, func(v float32) bool { return v != 0 }) {
					t.Error("nothing has a gradient")
				}
				if e, err := Estimate(cfg); err != nil || e.Parameters > after.Parameters || e.Gradients > after.Gradients || e.Moments > after.Moments || e.Momentum > after.Momentum || e.Buffers > after.Buffers {
					t.Errorf("the estimate %v is no lower limit of %v (%v)", e, after, err)
				}
			})
		}
	}
}

// TestFrozenTeacher: the teacher's frozen tower is the online one, computed once.
func TestFrozenTeacher(t *testing.T) {
	cfg := tinyCLIP("sphere")
	cfg.Momentum.Enabled, cfg.Queue.Size, cfg.Objective.ITC.Weight = true, 16, 1
	flops := func() int64 {
		m := build(t, cfg, "builtin", 2)
		stepOf(t, m, m.feed(randomBatch(m, 1), Control{}))
		return m.step.machine.Profile().FLOPs
	}
	taught := flops()
	cfg.Model.Image.Freeze, cfg.Model.Text.Freeze = true, true
	frozen := flops()
	cfg.Momentum.Enabled, cfg.Queue.Size, cfg.Objective.ITC.Weight = false, 0, 0
	if alone := flops(); frozen >= taught/3 || frozen-alone > alone/4 {
		t.Errorf("%d operations a step of a teacher, %d with frozen towers, %d of these without a teacher", taught, frozen, alone)
	}
}
