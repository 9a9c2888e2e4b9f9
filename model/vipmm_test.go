package model

import (
	"math"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/objectives"
)

// tinyViPMM is the system of tools/goldens/vipmm.py: all losses of ViPMM, a teacher that sees a second view, and a
// queue.
func tinyViPMM(fusion string) config.Config {
	c := tinyADCL("tucker", 3)
	switch fusion {
	case "core":
		c.Objective.ADCL.Rank = 0
	case "attention":
		c.Objective.ADCL.Fusion = "attention"
	}
	c.Model.Image.Depth, c.Model.Text.Layers = 1, 1
	c.Model.Image.Style, c.Model.Text.Style = encoders.StyleViT, encoders.StyleBERT
	c.Model.Head.Style, c.Model.Head.Activation, c.Model.Head.Shared = encoders.HeadMLP, "tanh", 20
	c.Momentum.Rule, c.Data.Views, c.Data.Tokens = objectives.MomentumDynamic, 2, 7
	o := &c.Objective
	o.ADCL.Weight, o.ADCL.Temperature, o.ADCL.FusionTemperature = 0.04, 0.07, 0.1
	o.ITC.InBatchWeight, o.ITC.Temperature, o.ITC.LearnTemperature = 2, 0.1, false
	o.WordPatch = objectives.WordPatch{Weighted: section.Weigh(1), Temperature: 0.1, ContextTemperature: 0.2, AttentionScale: 1, Reduce: "mean"}
	o.TokenImage = objectives.TokenImage{Weighted: section.Weigh(1), Margin: 0.5, Negatives: "random"}
	o.TextSwap = objectives.TextSwap{Weighted: section.Weigh(1), Margin: 0.2, Alpha: 0.5, Probability: 0.5, Attention: "local"}
	return c
}

// TestGoldenViPMM compares a whole step with an independent PyTorch model, for each fusion of pairs: every loss to
// 1e-5, every gradient by name to 1e-4 of its largest element, the online weight, the twins after a step of gradient
// descent, and the queue behind it.
func TestGoldenViPMM(t *testing.T) {
	for _, fusion := range []string{"tucker", "core", "attention"} {
		t.Run(fusion, func(t *testing.T) {
			g := openGolden(t, "vipmm_"+fusion)
			m := newTrainer(t, tinyViPMM(fusion), Options{Engine: newEngine(t), Vocab: tinyVocab, Begin: 1, End: 1})
			g.give(m)
			g.giveQueue(m, 5, 5)
			b := g.fill(batch.New(5, m.Columns()...))
			step := &feed.Step{Batch: b}
			check.OK(t, m.step.inputs.Fill(m.step.machine, step))
			m.setPartners("token_image negatives", g.ints("input/negatives"))
			m.setPartners("text_swap texts", g.ints("input/swaps"))
			check.Get(m.run(t.Context(), step))(t)
			g.step(m)
			if len(m.step.parts) != 7 {
				t.Errorf("%d parts, want 7", len(m.step.parts))
			}
			online := min(max(m.TextAgreement(), 0), 1)
			if want := float64(g.floats("expect/online_weight")[0]); !(math.Abs(online-want) <= 1e-6) {
				t.Errorf("online weight %v, PyTorch %v", online, want)
			}
			for i, v := range m.params.Grads() {
				m.params.Values()[i] -= 0.05 * v
			}
			m.UpdateMomentum(1 - online)
			check.OK(t, m.After())
			twins := 0
			for _, q := range m.params.List() {
				if q.Momentum {
					twins++
					g.near("twin of "+q.Name, m.params.MomentumValue(q), "after/"+q.Name, 1e-5)
				}
			}
			if twins < 40 {
				t.Errorf("only %d parameters have twins", twins)
			}
			g.near("queue of images", m.queue.Image, "after/image_queue", 1e-5)
			g.near("queue of texts", m.queue.Text, "after/text_queue", 1e-5)
		})
	}
}

// setPartners sets the row that each is told from instead of what a loss has drawn; one that names itself has
// none.
func (p *Trainer) setPartners(name string, rows []int32) {
	index, there := p.step.inputs.Memory(name).([]int32), p.floats(name+" there")
	copy(index, rows)
	for i, j := range rows {
		if there[i] = 1; int(j) == i {
			there[i] = 0
		}
	}
}
