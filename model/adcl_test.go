package model

import (
	"math"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/objectives"
)

// tinyADCL is a dual encoder with a teacher, a queue of which 5 of 8 entries are filled, and the contrasts of ViPMM.
func tinyADCL(fusion string, rank int) config.Config {
	c := tinyCLIP("sphere")
	c.Momentum.Enabled, c.Queue.Size = true, 8
	c.Objective.ADCL = objectives.ADCL{Weighted: section.Weigh(0.5), Temperature: 0.2, Fusion: fusion, FusionTemperature: 0.4, Dim: 6, Rank: rank}
	c.Objective.ITC.InBatchWeight = 0
	return c
}

// unitRows returns the rows of a feature as vectors.
func unitRows(x []float32, c int) (rows [][]float64) {
	for ; len(x) > 0; x = x[c:] {
		row, sum := make([]float64, c), 0.0
		for i, v := range x[:c] {
			row[i], sum = float64(v), sum+float64(v)*float64(v)
		}
		for i := range row {
			row[i] /= math.Sqrt(sum)
		}
		rows = append(rows, row)
	}
	return rows
}

func dot(x, y []float64) (s float64) {
	for i, v := range x {
		s += v * y[i]
	}
	return s
}

// naiveContrast is the mean of -log softmax of the first score of each row, over tau.
func naiveContrast(scores [][]float64, tau float64) float64 {
	loss := 0.0
	for _, row := range scores {
		sum := 0.0
		for _, s := range row {
			sum += math.Exp((s - row[0]) / tau)
		}
		loss += math.Log(sum) / float64(len(scores))
	}
	return loss
}

// naiveQueueContrast is L_t2v of texts x, their own images and a queue of images (ViPMM, algorithm 1).
func naiveQueueContrast(x, own, queue [][]float64, tau float64) float64 {
	var scores [][]float64
	for i := range x {
		row := []float64{dot(x[i], own[i])}
		for _, q := range queue {
			row = append(row, dot(x[i], q))
		}
		scores = append(scores, row)
	}
	return naiveContrast(scores, tau)
}

// TestNaiveQueueContrast by hand: of the scores 1, 0 and -1, the first is right with 1/(1 + 1/e + 1/e^2).
func TestNaiveQueueContrast(t *testing.T) {
	x := [][]float64{{1, 0}}
	if got := naiveQueueContrast(x, x, [][]float64{{0, 1}, {-1, 0}}, 1); !(math.Abs(got-0.4076059644) <= 1e-9) {
		t.Errorf("got %v", got)
	}
}

// TestADCL compares both contrasts with their definitions over the features that the model gives: the queue's own
// entries alone are wrong answers, those that were never filled are none, and nothing of it reads the queue before
// queue.start_steps.
func TestADCL(t *testing.T) {
	for name, cfg := range map[string]config.Config{
		"tucker": tinyADCL("tucker", 3), "full core": tinyADCL("tucker", 0), "attention": tinyADCL("attention", 0), "none": tinyADCL("none", 0),
		"albef": func() config.Config {
			c := tinyConfig()
			c.Model.Text.Dropout, c.Momentum.Dropout = 0, false
			c.Objective.ADCL = tinyADCL("tucker", 2).Objective.ADCL
			return c
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			m := build(t, cfg, "plain", 1)
			b := randomBatch(m, 3)
			for i := range m.params.momentum { // another model than the student
				m.params.momentum[i] *= 1 + 0.1*float32(math.Sin(float64(i)))
			}
			m.queue.Filled, m.queue.Pointer = 5, 5
			c, tau := cfg.Model.Head.Dim, cfg.Objective.ADCL.Temperature
			for _, filled := range []int{5, 0} {
				r := forward(t, m, b, Control{UseQueue: filled > 0})
				parts := partsOf(r)
				keys := check.Get(m.Features())(t)
				own := [2][][]float64{unitRows(slices.Clone(keys.Image), c), unitRows(slices.Clone(keys.Text), c)}
				var online [2][][]float64
				for i, e := range []*Encoder{m.Image(), m.Text()} {
					_, f := check.Get2(e.Encode(t.Context(), m.feed(b, Control{}).Batch))(t)
					online[i] = unitRows(f, c)
				}
				queues := [2][][]float64{unitRows(m.queue.Image, c)[:filled], unitRows(m.queue.Text, c)[:filled]}
				want := map[string]float64{
					"adcl_t2v": naiveQueueContrast(online[1], own[0], queues[0], tau),
					"adcl_v2t": naiveQueueContrast(online[0], own[1], queues[1], tau),
				}
				for name, w := range want {
					if got, ok := parts[name]; !ok || !(math.Abs(got-w) <= 1e-5) {
						t.Errorf("%d entries: %s is %v, want %v", filled, name, got, w)
					}
				}
				fused, ok := parts["adcl_fused"]
				if ok != (cfg.Objective.ADCL.Fusion != "none") {
					t.Fatalf("parts %v", parts)
				}
				if name == "tucker" {
					if w := m.naiveFused(online, own, 3, cfg.Objective.ADCL.FusionTemperature); !(math.Abs(fused-w) <= 1e-5) {
						t.Errorf("adcl_fused is %v, want %v", fused, w)
					}
				}
			}
			for _, q := range m.params.List() {
				if q.Momentum && len(q.Name) > 4 && q.Name[:5] == "adcl/" {
					t.Errorf("%s has a twin", q.Name)
				}
			}
		})
	}
}

// TestADCLOfOnePair: in a batch of one the fused pair is the only answer, so that its contrast is 0, and so are those
// with a queue that nothing has entered; gradients are finite.
func TestADCLOfOnePair(t *testing.T) {
	for _, fusion := range []string{"tucker", "attention"} {
		cfg := tinyADCL(fusion, 2)
		cfg.Train.BatchSize = 1
		m := build(t, cfg, "plain", 1)
		r := forward(t, m, randomBatch(m, 3), Control{})
		for _, p := range r.Parts {
			if !(math.Abs(p.Value) <= 1e-6) {
				t.Errorf("%s: %s is %v, want 0", fusion, p.Name, p.Value)
			}
		}
		if len(r.Parts) != 3 || slices.ContainsFunc(m.params.Grads(), func(v float32) bool { return !finite(float64(v)) }) {
			t.Errorf("%s: parts %v or a gradient that is not finite", fusion, r.Parts)
		}
	}
}

// naiveFused is L_q with a core of a rank.
func (p *Trainer) naiveFused(online, teacher [2][][]float64, rank int, tau float64) float64 {
	product := func(name string, x []float64) (y []float64) {
		q, _ := p.params.Get(name)
		for w := p.params.Value(q); len(w) > 0; w = w[len(x):] {
			s := 0.0
			for i, v := range x {
				s += v * float64(w[i])
			}
			y = append(y, s)
		}
		return y
	}
	fuse := func(x [2][][]float64) (rows [][]float64) {
		for i, image := range x[0] {
			a, b := product("adcl/tucker/image/weight", image), product("adcl/tucker/text/weight", x[1][i])
			z := make([]float64, len(image))
			for k := range a {
				z[k%len(z)] += a[k] * b[k]
			}
			out := product("adcl/tucker/out/weight", z)
			length := math.Sqrt(dot(out, out))
			for k := range out {
				out[k] /= length
			}
			rows = append(rows, out)
		}
		return rows
	}
	q, aug := fuse(online), fuse(teacher)
	var scores [][]float64
	for i := range q {
		row := []float64{dot(q[i], aug[i])}
		for j := range aug {
			if j != i {
				row = append(row, dot(q[i], aug[j]))
			}
		}
		scores = append(scores, row)
	}
	return naiveContrast(scores, tau)
}
