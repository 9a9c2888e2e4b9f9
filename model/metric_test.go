package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/objectives"
)

// metricForms are settings of objective.gssf over a head of 8 channels, with the number of their weights.
var metricForms = map[string]struct {
	objectives.GSSF
	weights int
}{
	"diag":                {objectives.GSSF{Form: "diag"}, 8},
	"block_diag":          {objectives.GSSF{Form: "block_diag", Blocks: 2}, 32},
	"dense":               {objectives.GSSF{Form: "dense"}, 64},
	"dense decayed":       {objectives.GSSF{Form: "dense", Decay: 0.1, DecayTo: "identity"}, 64},
	"sparse":              {objectives.GSSF{Form: "sparse", L1: 0.1}, 64},
	"low_rank":            {objectives.GSSF{Form: "low_rank", Rank: 8}, 128},
	"low_rank, 3":         {objectives.GSSF{Form: "low_rank", Rank: 3}, 48},
	"low_rank, symmetric": {objectives.GSSF{Form: "low_rank", Rank: 8, Symmetric: true}, 64},
	"mlp":                 {objectives.GSSF{Form: "mlp", Hidden: 6}, 2*6*8 + 2*6},
}

// TestMetricForms: every form has its weights and starts as the cosine, bit for bit in loss and gradients, where it is
// said to. With other weights the scores of stored features are those that the loss of a step reads, and so, where
// there is something to fold, are the products of texts with images folded once.
func TestMetricForms(t *testing.T) {
	cosine := build(t, tinyCLIP("sphere"), "builtin", 1)
	b := randomPairs(cosine, 3)
	want := forward(t, cosine, b, Control{})
	for name, form := range metricForms {
		cfg := tinyCLIP("sphere")
		cfg.Objective.ITC.Score, cfg.Objective.GSSF = "gssf", form.GSSF
		m := build(t, cfg, "builtin", 1)
		got := forward(t, m, b, Control{})
		if name != "low_rank, 3" && !slices.Equal(got.Parts, want.Parts) {
			t.Errorf("%s starts at %v, the cosine at %v", name, got.Parts, want.Parts)
		}
		count := 0
		r := rand.New(rand.NewPCG(4, 5))
		for _, q := range m.params.List() {
			if q.Group != encoders.GroupMetric {
				if p, _ := cosine.params.Get(q.Name); name != "low_rank, 3" && !sameBits(m.params.Grad(q), cosine.params.Grad(p)) {
					t.Errorf("%s: the gradient of %s is another than that of the cosine", name, q.Name)
				}
				continue
			}
			count += q.Len()
			for i := range m.params.Value(q) {
				m.params.Value(q)[i] += float32(0.5 * r.NormFloat64())
			}
		}
		if count != form.weights {
			t.Errorf("%s: %d weights, want %d", name, count, form.weights)
		}
		metricOfStoredFeatures(t, name, m, b)
	}
}

// TestMetricRandomStart: weights that start at random have the variance of one over those of a row.
func TestMetricRandomStart(t *testing.T) {
	for form, variance := range map[string]float64{"diag": 1, "block_diag": 0.25, "dense": 0.125, "sparse": 0.125} {
		cfg := tinyCLIP("sphere")
		cfg.Objective.ITC.Score, cfg.Objective.GSSF = "gssf", objectives.GSSF{Form: form, Blocks: 2, L1: 1, Start: "random"}
		q, _ := build(t, cfg, "builtin", 1).params.Get("gssf/weight")
		m := build(t, cfg, "builtin", 1)
		sum := 0.0
		for _, w := range m.params.Value(q) {
			sum += float64(w) * float64(w)
			if limit := math.Sqrt(3 * variance); !(math.Abs(float64(w)) <= limit) {
				t.Errorf("%s: a weight of %v, at most %v", form, w, limit)
			}
		}
		if got := sum / float64(q.Len()); got < variance/2 || got > 2*variance {
			t.Errorf("%s: a variance of %v, want %v", form, got, variance)
		}
	}
}

// metricOfStoredFeatures compares the loss of a step with its definition over stored features.
func metricOfStoredFeatures(t *testing.T, name string, m *Trainer, b Batch) {
	t.Helper()
	got := forward(t, m, b, Control{})
	batch := m.feed(b, Control{}).Batch
	_, x := check.Get2(m.Image().Encode(t.Context(), batch))(t)
	_, y := check.Get2(m.Text().Encode(t.Context(), batch))(t)
	score := check.Get(m.PairScore())(t)
	n, c := m.cfg.Train.BatchSize, m.Dim()
	rows := make([]float32, n*n)
	check.OK(t, score.Rows(m.engine, x, n, y, n, rows))
	loss := 0.0
	for i := range n {
		var row, column float64
		for j := range n {
			row += math.Exp(float64(rows[i*n+j]) / m.Temperature())
			column += math.Exp(float64(rows[j*n+i]) / m.Temperature())
		}
		loss += (math.Log(row) + math.Log(column) - 2*float64(rows[i*n+i])/m.Temperature()) / float64(2*n)
	}
	if !(math.Abs(got.Loss-loss) <= 1e-5*loss) {
		t.Errorf("%s: loss %v, by stored features %v", name, got.Loss, loss)
	}
	if score.Folds() != (m.cfg.Objective.GSSF.Form != "mlp") {
		t.Errorf("%s folds: %t", name, score.Folds())
	}
	if !score.Folds() {
		return
	}
	folded := make([]float32, n*c)
	check.OK(t, score.FoldImages(folded, x, n))
	for i := range n {
		for j := range n {
			var dot float64
			for k := range c {
				dot += float64(folded[i*c+k]) * float64(y[j*c+k])
			}
			if !(math.Abs(dot-float64(rows[i*n+j])) <= 1e-6) {
				t.Errorf("%s: pair %d, %d: folded %v, want %v", name, i, j, dot, rows[i*n+j])
			}
		}
	}
}

// TestMetricDropout: a step leaves out weights of W by its key, the same in every loss, and evaluation none.
func TestMetricDropout(t *testing.T) {
	cfg := tinyCLIP("sphere")
	cfg.Objective.ITC.Score, cfg.Objective.GSSF = "gssf", objectives.GSSF{Form: "dense", Dropout: 0.5}
	cfg.Objective.Hinge = objectives.Hinge{Weighted: section.Weigh(1), Margin: 0.2, Negatives: "all"}
	m := build(t, cfg, "builtin", 1)
	b := randomPairs(m, 3)
	loss := map[float64]bool{}
	q, _ := m.params.Get("gssf/weight")
	for step := range 4 {
		s := m.feed(b, Control{})
		s.Counter = step
		r := stepOf(t, m, s)
		loss[r.Loss] = true
		// Where a weight is left out it has no gradient of either loss.
		if n := len(m.params.Grad(q)); n != 64 {
			t.Fatal(n)
		}
		zeros := 0
		for _, g := range m.params.Grad(q) {
			if g == 0 {
				zeros++
			}
		}
		if zeros < 12 || zeros > 52 {
			t.Errorf("step %d: %d of 64 weights have no gradient, want about half", step, zeros)
		}
	}
	if len(loss) < 4 {
		t.Errorf("%d different losses in 4 steps", len(loss))
	}
	score, err := m.PairScore()
	if err != nil || score.Terms[0].Metric.Weight[0] != 1 {
		t.Errorf("evaluation: %v, %v", score.Terms, err)
	}
}

// TestMetricPulls: what pulls at W is a trait of it.
func TestMetricPulls(t *testing.T) {
	for name, want := range map[string]encoders.Pull{"dense decayed": {Decay: 0.1, Identity: true, Side: 8}, "sparse": {L1: 0.1, Side: 8}, "dense": {}} {
		cfg := tinyCLIP("sphere")
		cfg.Objective.ITC.Score, cfg.Objective.GSSF = "gssf", metricForms[name].GSSF
		m := build(t, cfg, "builtin", 1)
		q, _ := m.params.Get("gssf/weight")
		if q.Pull != want {
			t.Errorf("%s: %+v, want %+v", name, q.Pull, want)
		}
	}
}
