package model

import (
	"math"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
)

// geodesicModel returns the golden's model with a contrast by geodesic scores alone: a
// queue of 12 random rows, of which filled are, whose next batch of 4 is written to rows
// 10, 11, 0 and 1 once it is full. Where it is full its graphs are built.
func geodesicModel(t testing.TB, filled int, change func(*config.Config)) (*Trainer, Batch) {
	t.Helper()
	_, b, g := loadGolden(t, "id")
	cfg := tinyConfig()
	cfg.Queue.Size = 12
	cfg.Objective.ITC.InBatchWeight, cfg.Objective.ITM.Weight, cfg.Objective.MLM.Weight = 0, 0, 0
	cfg.Objective.ITC.Score = "geodesic"
	cfg.Objective.ITC.Temperature = 0.3
	cfg.Objective.Geodesic.Layers, cfg.Objective.Geodesic.Entries = []int{2, 5}, 3
	if change != nil {
		change(&cfg)
	}
	m := build(t, cfg, "builtin", 2)
	for _, q := range m.params.List() {
		if q.Name == temperatureName || q.Name == geodesicTemperatureName {
			continue
		}
		copy(m.params.Value(q), g.floats("param/"+q.Name))
		if q.Momentum {
			copy(m.params.MomentumValue(q), g.floats("momentum/"+q.Name))
		}
	}
	m.queue.Filled, m.queue.Pointer = filled, filled
	if filled == m.queue.size {
		m.queue.Pointer = 10
	}
	for j := range filled {
		m.queue.IDs[j] = int32(j % 10)
	}
	if m.graphs != nil {
		check.OK(t, m.graphs.before(0))
	}
	b.Masked, b.MaskPlaces, b.MaskLabels = nil, nil, nil
	return m, b
}

// gradientOf sets how a gradient passes the score.
func gradientOf(mode string) func(*config.Config) {
	return func(c *config.Config) { c.Objective.Geodesic.Gradient = mode }
}

// TestGeodesicGradientsAgainstFiniteDifferences perturbs parameters of both towers and
// the temperatures in each mode whose gradient is that of its score. The loss is near 3
// and known to about 3e-7; see TestGradientsAgainstFiniteDifferences for the bounds.
func TestGeodesicGradientsAgainstFiniteDifferences(t *testing.T) {
	for name, change := range map[string]func(*config.Config){
		"strict":                  gradientOf("strict"),
		"same_cluster":            gradientOf("same_cluster"),
		"soft_entry":              gradientOf("soft_entry"),
		"same_cluster+soft_entry": gradientOf("same_cluster+soft_entry"),
		"direct positives": func(c *config.Config) {
			c.Objective.Geodesic.Gradient, c.Objective.Geodesic.DirectPositives = "strict", true
		},
		"direct positives by id": func(c *config.Config) {
			c.Objective.Geodesic.Gradient, c.Objective.Geodesic.DirectPositives = "soft_entry", true
			c.Objective.ITC.Positives = "id"
		},
		"mix": func(c *config.Config) {
			c.Objective.Geodesic.Gradient, c.Objective.Geodesic.Mix = "same_cluster", 0.6
		},
		"temperature of its own": func(c *config.Config) {
			c.Objective.Geodesic.Gradient, c.Objective.Geodesic.Temperature = "soft_entry", 0.2
			c.Objective.ITC.TargetScore = "cosine"
		},
		"limit": func(c *config.Config) {
			c.Objective.Geodesic.Gradient, c.Objective.Geodesic.LimitPi = "soft_entry", 1
		},
		"weights": func(c *config.Config) {
			c.Objective.ITC.Score, c.Objective.Geodesic.Weigh = "cosine", 2
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, b := geodesicModel(t, 12, change)
			alpha := 0.0
			loss := func() float64 {
				return forward(t, m, b, Control{Alpha: alpha, UseQueue: true}).Loss
			}
			moved := 0.0
			for _, p := range []string{
				"image/patch_embed/weight", "image/blocks/01/mlp/fc2/weight", "image_proj/weight", "image_proj/bias",
				"text/embeddings/word/weight", "text/layers/00/attention/qkv/weight", "text_proj/weight", temperatureName, geodesicTemperatureName,
			} {
				q, ok := m.params.Get(p)
				if !ok {
					if p == geodesicTemperatureName && m.cfg.Objective.Geodesic.Temperature == 0 {
						continue
					}
					t.Fatalf("no parameter %s", p)
				}
				if alpha = 0.4; p == temperatureName || p == geodesicTemperatureName {
					alpha = 0 // the teacher's targets depend on them too, without gradient
				}
				moved = max(moved, checkEntries(t, m, q, 1, 0.004, loss))
			}
			if moved < 0.02 {
				t.Errorf("the largest gradient is %v: too small to be tested", moved)
			}
		})
	}
}

// TestGeodesicStartsAsCosine: before the queue is full, loss and gradients are those of
// cosines over the same columns, and but for rounding those of ALBEF's columns.
func TestGeodesicStartsAsCosine(t *testing.T) {
	run := func(filled int, change func(*config.Config)) (*Trainer, float64) {
		m, b := geodesicModel(t, filled, change)
		res := forward(t, m, b, Control{Alpha: 0.4, UseQueue: true})
		return m, res.Loss
	}
	pool := func(c *config.Config) { c.Objective.ITC.Score, c.Objective.Geodesic.Weigh = "cosine", 1 }
	plain := func(c *config.Config) { c.Objective.ITC.Score = "cosine" }
	for _, filled := range []int{0, 3, 8, 12} {
		for _, mode := range []string{"strict", "same_cluster+straight_through", "soft_entry"} {
			a, x := run(filled, gradientOf(mode))
			b, y := run(filled, pool)
			same := x == y
			for _, q := range a.params.List() {
				p, _ := b.params.Get(q.Name)
				same = same && slices.Equal(a.params.Grad(q), b.params.Grad(p))
			}
			if same != (filled < 12) {
				t.Errorf("%s, %d filled: loss %v, by cosines %v; all the same: %t", mode, filled, x, y, same)
			}
			if filled <= 8 { // nothing of the queue is overwritten
				if _, z := run(filled, plain); !(math.Abs(x-z) <= 2e-6*z) {
					t.Errorf("%s, %d filled: loss %v, with ALBEF's columns %v", mode, filled, x, z)
				}
			}
		}
	}
}

// TestGeodesicLossAgainstDefinition computes the loss of eq. 3 with labels at the
// insertion, across the end of the ring, and with all entries of an id as positives. The
// student is its own teacher, so that the features are known.
func TestGeodesicLossAgainstDefinition(t *testing.T) {
	for _, positives := range []string{"pair", "id"} {
		m, b := geodesicModel(t, 12, func(c *config.Config) {
			c.Objective.Geodesic.Gradient, c.Objective.ITC.Positives = "strict", positives
		})
		m.params.CopyToMomentum()
		const alpha = 0.4
		res := forward(t, m, b, Control{Alpha: alpha, UseQueue: true})
		if own := []int32{10, 11, 0, 1}; !slices.Equal(m.ints("own entries"), own) {
			t.Fatalf("labels %v, want %v", m.ints("own entries"), own)
		}
		k := check.Get(m.Features())(t)
		image, text := k.Image, k.Text
		tau, _ := m.params.Get(temperatureName)
		ids := slices.Clone(m.queue.IDs)
		for i, j := range m.ints("own entries") {
			ids[j] = b.IDs[i]
		}
		var want float64
		for _, d := range []struct {
			f, keys []float32
			queue   []float32
			g       graphLike
		}{
			{image, text, m.queue.Text, graphLike{m.graphs.Text.Centres, m.graphs.Text.Paths, m.graphs.Text.Used}},
			{text, image, m.queue.Image, graphLike{m.graphs.Image.Centres, m.graphs.Image.Paths, m.graphs.Image.Used}},
		} {
			const n, c = 12, 8
			rows := slices.Clone(d.queue)
			for i := range 4 {
				copy(rows[(10+i)%n*c:][:c], d.keys[i*c:][:c])
			}
			for i := range 4 {
				var logits, hard []float64
				from, delta := d.g.nearest(d.f[i*c:][:c])
				var count float64
				for j := range n {
					to, reach := d.g.nearest(rows[j*c:][:c])
					theta := delta + float64(d.g.paths[from*5+to]) + reach
					logits = append(logits, math.Cos(min(theta, 4*math.Pi)/4)/float64(m.params.Value(tau)[0]))
					y := 0.0
					if positives == "id" && ids[j] == b.IDs[i] || positives == "pair" && j == (10+i)%n {
						y = 1
					}
					hard, count = append(hard, y), count+y
				}
				var z float64
				for _, l := range logits {
					z += math.Exp(l)
				}
				for j, l := range logits {
					p := math.Exp(l) / z
					want -= ((1-alpha)*hard[j]/count + alpha*p) * math.Log(p) / 8
				}
			}
		}
		if !(math.Abs(res.Loss-want) <= 1e-5*want) {
			t.Errorf("%s: loss %v, want %v", positives, res.Loss, want)
		}
	}
}

// graphLike is what eq. 3 needs of a graph with rows of 8 channels.
type graphLike struct {
	centres, paths []float32
	used           int
}

// nearest returns the centre nearest to x and the angle to it.
func (g graphLike) nearest(x []float32) (int, float64) {
	best, most := -1, -2.0
	for k := range g.used {
		var s float64
		for d, v := range x {
			s += float64(v) * float64(g.centres[k*len(x)+d])
		}
		if s > most {
			best, most = k, s
		}
	}
	return best, math.Acos(min(max(most, -1+1e-6), 1-1e-6))
}

// TestGeodesicSteps trains a few steps with matching, by each kind of negatives, over the end of
// the ring and several rebuilds: everything stays finite.
func TestGeodesicSteps(t *testing.T) {
	for _, negatives := range []string{"score", "cosine", "geodesic"} {
		t.Run(negatives, func(t *testing.T) {
			m, b := geodesicModel(t, 0, func(c *config.Config) {
				c.Objective.ITM.Weight, c.Objective.ITM.Negatives, c.Objective.Geodesic.PeriodSteps = 1, negatives, 2
			})
			for i := range 8 {
				check.OK(t, m.graphs.before(i))
				res := step(t, m, b, Control{Alpha: 0.4, UseQueue: true, Step: i})
				if !finite(res.Loss) {
					t.Fatalf("step %d: loss %v", i, res.Loss)
				}
				if active := m.graphs.active(); active != (i >= 3) {
					t.Errorf("step %d: graphs are read: %t", i, active)
				}
			}
		})
	}
}

// TestWeighLowersLogits: logits are lowered by weigh times the teacher's score, once there
// is a graph to have one.
func TestWeighLowersLogits(t *testing.T) {
	for filled, want := range map[int]float32{12: -2, 8: 0} {
		m, b := geodesicModel(t, filled, func(c *config.Config) { c.Objective.ITC.Score, c.Objective.Geodesic.Weigh = "cosine", 2 })
		forward(t, m, b, Control{UseQueue: true})
		if got := m.floats("weight of the teacher's scores"); len(got) != 1 || got[0] != want {
			t.Errorf("%d filled: scores of the teacher are added %v times, want %v", filled, got, want)
		}
	}
}

// TestGeodesicTemperatureIsClamped: it has the range of the other one.
func TestGeodesicTemperatureIsClamped(t *testing.T) {
	m, _ := geodesicModel(t, 12, func(c *config.Config) {
		c.Objective.Geodesic.Temperature, c.Objective.ITC.TemperatureMin, c.Objective.ITC.TemperatureMax = 0.2, 0.1, 0.4
	})
	q, ok := m.params.Get(geodesicTemperatureName)
	if !ok {
		t.Fatal("there is no temperature of the geodesic's own")
	}
	for _, x := range []struct{ at, want float32 }{{0.05, 0.1}, {0.3, 0.3}, {0.7, 0.4}} {
		m.params.Value(q)[0] = x.at
		if m.ClampTemperature(); m.params.Value(q)[0] != x.want {
			t.Errorf("%v is clamped to %v, want %v", x.at, m.params.Value(q)[0], x.want)
		}
	}
}
