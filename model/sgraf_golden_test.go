package model

import (
	"fmt"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/interact"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/objectives"
)

// tinySGRAF is a host with vectors of similarity of the sizes of tools/goldens/sgraf.py, without a metric.
func tinySGRAF(kind string) config.Config {
	c := tinyHost("vsepp")
	c.Model.Text.GRU.Directions = encoders.DirectionsMean
	c.Model.Interaction = interact.Options{Kind: kind, SimDim: 6, Steps: 2, Metric: interact.MetricSimilarity}
	return c
}

// hostScores are the scores of images [from, to) of a batch with all its texts, as evaluation makes them.
func hostScores(t *testing.T, m *Trainer, b *batch.Batch, from, to int) []float32 {
	t.Helper()
	encode := func(e *Encoder) ([]float32, []int32) {
		x := batch.New(b.Rows(), e.Columns()...)
		for i := range b.Rows() {
			x.Row(i).Copy(b.Row(i))
		}
		rows, n := check.Get2(e.EncodeTokens(t.Context(), x))(t)
		return slices.Clone(rows), slices.Clone(n)
	}
	x, nx := encode(m.Image())
	y, ny := encode(m.Text())
	size := len(x) / len(nx)
	scores := check.Get(m.Interaction().Scores(t.Context(), x[from*size:to*size], nx[from:to], y, ny))(t)
	return slices.Clone(scores)
}

// TestGoldenSGRAF compares scores, the loss and all gradients by name with PyTorch's modules, whose inputs have rubbish
// in the regions and words behind a length. Scores of a block are those of all.
func TestGoldenSGRAF(t *testing.T) {
	for _, kind := range []string{"sgr", "saf"} {
		t.Run(kind, func(t *testing.T) {
			g, cfg := openGolden(t, "host_"+kind), tinySGRAF(kind)
			if kind == "sgr" {
				cfg.Objective.ITC.Score, cfg.Objective.GSSF, cfg.Model.Interaction.Metric = "gssf", objectives.GSSF{Form: "dense"}, interact.MetricBoth
			}
			m := buildCLIP(t, cfg)
			b := g.hostStep(t, m)
			scores := hostScores(t, m, b, 0, 5)
			near(t, "scores", scores, g.floats("expect/scores"), 1e-5)
			near(t, "scores of a block", hostScores(t, m, b, 3, 5), scores[3*5:], 1e-6)
		})
	}
}

// TestSGRAFMetricStart: with a learned metric at any site, which starts as the identity, SGR and SAF score their pairs
// bit for bit as without one.
func TestSGRAFMetricStart(t *testing.T) {
	for _, kind := range []string{"sgr", "saf"} {
		g, plain := openGolden(t, "host_"+kind), buildCLIP(t, tinySGRAF(kind))
		want := hostScores(t, plain, hostBatch(plain, g), 0, 5)
		for _, form := range []string{"diag", "block_diag", "dense"} {
			for site, weights := range map[string]int{interact.MetricSimilarity: 1, interact.MetricAttention: 1, interact.MetricBoth: 2} {
				cfg := tinySGRAF(kind)
				cfg.Objective.ITC.Score, cfg.Objective.GSSF, cfg.Model.Interaction.Metric = "gssf", objectives.GSSF{Form: form, Blocks: 2}, site
				m := buildCLIP(t, cfg)
				for _, q := range plain.params.List() {
					same, _ := m.params.Get(q.Name)
					copy(m.params.Value(same), plain.params.Value(q))
				}
				if got := hostScores(t, m, hostBatch(m, g), 0, 5); !slices.Equal(got, want) {
					t.Errorf("%s with %s at %s starts with other scores", kind, form, site)
				}
				if more := len(m.params.List()) - len(plain.params.List()); more != weights {
					t.Errorf("%s with %s at %s has %d more parameters, want %d", kind, form, site, more, weights)
				}
			}
		}
	}
}

// TestSGRAFDropout: dropout in the pools changes the losses of steps and nothing of evaluation, and all losses of a
// step read one matrix of scores.
func TestSGRAFDropout(t *testing.T) {
	losses := map[string]bool{}
	for _, dropout := range []float64{0, .4} {
		cfg := tinySGRAF("saf")
		cfg.Model.Interaction.Dropout, cfg.Objective.CMPM = dropout, objectives.CMPM{Weighted: section.Weigh(1), Scale: 1}
		m, again := buildCLIP(t, cfg), buildCLIP(t, cfg)
		g := openGolden(t, "host_saf")
		b := hostBatch(m, g)
		if !slices.Equal(hostScores(t, m, b, 0, 5), hostScores(t, m, b, 0, 5)) {
			t.Error("evaluation draws masks")
		}
		for _, m := range []*Trainer{m, again} {
			r := stepOf(t, m, &feed.Step{Batch: b})
			losses[fmt.Sprint(r.Loss)] = true
		}
	}
	if len(losses) != 2 {
		t.Errorf("losses %v, want one without dropout and another one with it", losses)
	}
}
