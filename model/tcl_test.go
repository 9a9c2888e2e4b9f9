package model

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/objectives"
)

// tclConfig is the model of tools/goldens/tcl.py.
func tclConfig(mode string) config.Config {
	cfg := tinyConfig()
	cfg.Data.Views = 2
	cfg.Objective.ITC.InBatchWeight = 0
	cfg.Objective.ITC.Positives = mode
	cfg.Objective.TCL = objectives.TCL{Intra: true, Local: true, Grid: map[string]int{"pair": 1, "id": 2}[mode]}
	return cfg
}

// loadTCL returns the golden model and its batch.
func loadTCL(t testing.TB, mode string) (*Trainer, Batch, golden) {
	g, m := openGolden(t, "tcl_"+mode), modelOn(t, tclConfig(mode), newEngine(t))
	g.give(m)
	g.giveQueue(m, 5, 5)
	return m, g.batch(m), g
}

// TestTCLGoldenStep compares a step with all six terms, two views and everything else of ALBEF with PyTorch.
func TestTCLGoldenStep(t *testing.T) {
	for _, mode := range []string{"pair", "id"} {
		t.Run(mode, func(t *testing.T) {
			m, b, g := loadTCL(t, mode)
			g.run(m, b, 0.4)
			g.step(m)
			if n := len(m.step.parts); n != 8 { // and the accuracy of matching, which is not compared
				t.Errorf("%d values, want three parts, four further terms and an accuracy", n)
			}
		})
	}
}

// TestTCLTerms switches the terms on one at a time: the contrast is the mean of what is
// there, and without further terms it is that of ALBEF.
func TestTCLTerms(t *testing.T) {
	values := func(intra, local bool, views int) map[string]float64 {
		cfg := tclConfig("pair")
		cfg.Data.Views = views
		cfg.Objective.TCL.Intra, cfg.Objective.TCL.Local = intra, local
		m := build(t, cfg, "builtin", 2)
		b := randomBatch(m, 5)
		b.Views = nil
		if views > 1 {
			b.Views = slices.Clone(b.Images)
			slices.Reverse(b.Views)
		}
		out := map[string]float64{}
		for _, p := range step(t, m, b, Control{}).Parts {
			out[p.Name] = p.Value
		}
		return out
	}
	for _, views := range []int{1, 2} {
		plain, intra, local, both := values(false, false, views), values(true, false, views), values(false, true, views), values(true, true, views)
		if _, ok := plain["itc_i2i"]; ok {
			t.Error("a term that is off is logged")
		}
		i, l := intra["itc_i2i"]+intra["itc_t2t"], local["itc_local_image"]+local["itc_local_text"]
		for _, c := range []struct {
			what      string
			got, want float64
		}{
			{"intra", intra["itc"], (2*plain["itc"] + i) / 4},
			{"local", local["itc"], (2*plain["itc"] + l) / 4},
			{"all", both["itc"], (2*plain["itc"] + i + l) / 6},
		} {
			if !(math.Abs(c.got-c.want) <= 1e-5*c.want) {
				t.Errorf("%d views, %s: the contrast is %v, the mean of its terms %v", views, c.what, c.got, c.want)
			}
		}
	}
}

// TestViewsReachTheTeacherAlone: another second view changes momentum features and no
// online ones, and with one view the teacher sees the first.
func TestViewsReachTheTeacherAlone(t *testing.T) {
	m, b, _ := loadTCL(t, "pair")
	run := func() (loss float64, features []float32) {
		res := forward(t, m, b, Control{UseQueue: true})
		k := check.Get(m.Features())(t)
		for _, p := range res.Parts {
			if p.Name == "mlm" { // without alpha it reads the first views alone
				loss = p.Value
			}
		}
		return loss, slices.Clone(k.Image)
	}
	mlm, first := run()
	b.Views = slices.Clone(b.Images)
	again, second := run()
	if mlm != again {
		t.Errorf("the second view changes masked language modelling: %v and %v", mlm, again)
	}
	if sameBits(first, second) {
		t.Error("the teacher does not see the second view")
	}
	b.Views = nil
	if _, err := m.Forward(b, Control{}); err == nil {
		t.Error("a batch without second views is accepted")
	}
}

// TestTCLGradients perturbs parameters in the step with all terms, as
// TestGradientsAgainstFiniteDifferences does.
func TestTCLGradients(t *testing.T) {
	m, b, _ := loadTCL(t, "id")
	temperature, _ := m.params.Get(temperatureName)
	m.params.Value(temperature)[0] = 0.3
	checkDifferences(t, m, func(float64) float64 {
		var s float64
		for _, p := range forward(t, m, b, Control{UseQueue: true}).Parts {
			if !p.Measure {
				s += p.Value
			}
		}
		return s
	}, []string{"image_proj/weight", "text_proj/bias", "image/norm/weight", "text/embeddings/norm/bias", "temperature"})
}

// TestTCLInThePool: with the geodesic score and no graph yet the terms are those of the
// cosine, over the pool that the queue is with the batch in it.
func TestTCLInThePool(t *testing.T) {
	var want []float64
	for _, score := range []string{"cosine", "geodesic"} {
		cfg := tclConfig("pair")
		cfg.Objective.ITC.Score = score
		cfg.Objective.Geodesic.Layers = []int{2, 4}
		m := build(t, cfg, "builtin", 2)
		var got []float64
		for i := range 2 { // then the queue of 8 is full, and a pool holds fewer columns
			b := randomBatch(m, uint64(i))
			b.Views = b.Images
			for _, p := range step(t, m, b, Control{Step: i, UseQueue: true}).Parts {
				if p.Name == "itc" || p.Name == "itc_i2i" || p.Name == "itc_t2t" {
					got = append(got, math.Round(p.Value*1e4))
				}
			}
		}
		if want == nil {
			want = got
		} else if len(got) != 6 || !slices.Equal(got, want) {
			t.Errorf("in a pool: %v, beside the queue %v", got, want)
		}
	}
}

// TestLocalTermsAreCosines: features of any length have the local terms of their directions.
func TestLocalTermsAreCosines(t *testing.T) {
	cfg := tclConfig("id")
	cfg.Data.Views, cfg.Model.Head.Topology = 1, "euclid"
	cfg.Objective.ITC.Score, cfg.Objective.ITC.TargetScore = "l2", "l2"
	m := build(t, cfg, "auto", 2)
	x := randomBatch(m, 9)
	local := func() (values []float64) {
		res := forward(t, m, x, Control{Alpha: 0.4})
		for _, p := range res.Parts {
			if strings.HasPrefix(p.Name, "itc_local") {
				values = append(values, p.Value)
			}
		}
		return values
	}
	before := local()
	for _, q := range m.params.List() {
		if strings.HasPrefix(q.Name, "image_proj/") || strings.HasPrefix(q.Name, "text_proj/") {
			for i := range m.params.Value(q) {
				m.params.Value(q)[i] *= 3
				m.params.MomentumValue(q)[i] *= 5
			}
		}
	}
	after := local()
	if len(before) != 2 || len(after) != 2 {
		t.Fatalf("local terms %v and %v, want 2", before, after)
	}
	for i := range before {
		if !(math.Abs(after[i]-before[i]) <= 1e-5*before[i]) {
			t.Errorf("local term %d is %v, with longer features %v", i, before[i], after[i])
		}
	}
}
