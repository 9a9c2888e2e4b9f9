package model

import (
	"cmp"
	"math"
	"slices"
	"testing"
)

// TestGradientsAgainstFiniteDifferences perturbs entries of parameters of every kind
// in the whole step, all losses on, teacher and queue included. The loss is a float32
// near 7, known to about 5e-7 of it; with the five-point formula at h = 0.01 that is a
// noise of 4e-4 in the derivative and a truncation error of order h^4. So the three
// entries with the largest gradient of each parameter must agree to 1% of the largest
// and 1e-3.
func TestGradientsAgainstFiniteDifferences(t *testing.T) {
	m, b, _ := loadGolden(t, "pair")
	temperature, _ := m.params.Get(temperatureName)
	m.params.Value(temperature)[0] = 0.3 // a smoother loss than at 0.07
	loss := func(alpha float64) float64 {
		res := forward(t, m, b, Control{Alpha: alpha, UseQueue: true})
		var s float64 // the parts have a digit more than their sum
		for _, p := range res.Parts {
			switch p.Name {
			case "itc", "itm", "mlm":
				s += p.Value
			case "itc_in_batch":
				s += 0.5 * p.Value
			}
		}
		return s
	}
	checkDifferences(t, m, loss, []string{
		"image/cls_token", "image/pos_embed", "image/patch_embed/weight", "image/blocks/00/attn/qkv/weight",
		"image/blocks/01/mlp/fc2/bias", "image/norm/weight", "image_proj/weight",
		"text/embeddings/word/weight", "text/embeddings/position/weight", "text/embeddings/norm/bias",
		"text/layers/00/attention/qkv/weight", "text/layers/02/crossattention/kv/weight",
		"text/layers/03/crossattention/norm/weight", "text/layers/03/ffn/intermediate/weight",
		"text/mlm/dense/weight", "text/mlm/bias", "text_proj/bias", "itm_head/weight", "temperature",
	})
}

// checkDifferences compares the gradients of a step, which loss runs with a given share of
// distillation, with finite differences of what it returns: of the three entries of each
// parameter with the largest gradient.
func checkDifferences(t *testing.T, m *Trainer, loss func(alpha float64) float64, names []string) {
	for _, name := range names {
		q, ok := m.params.Get(name)
		if !ok {
			t.Fatalf("no parameter %s", name)
		}
		alpha := 0.4
		if name == temperatureName {
			alpha = 0 // the teacher's targets depend on it too, without gradient
		}
		checkEntries(t, m, q, 3, 0.01, func() float64 { return loss(alpha) })
	}
}

// checkEntries compares the entries of a parameter with the largest gradients, n of them, with finite differences of a
// loss to 1 % of the largest and 1e-3, and returns the largest.
func checkEntries(t *testing.T, m *Trainer, q *Param, n int, h float64, loss func() float64) float64 {
	t.Helper()
	loss()
	g, x := slices.Clone(m.params.Grad(q)), m.params.Value(q)
	order := make([]int, len(g))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		return cmp.Compare(math.Abs(float64(g[j])), math.Abs(float64(g[i])))
	})
	largest := math.Abs(float64(g[order[0]]))
	for _, i := range order[:min(n, len(order))] {
		old := x[i]
		at := func(d float64) float64 {
			x[i] = old + float32(d)
			defer func() { x[i] = old }()
			return loss()
		}
		want := (8*(at(h)-at(-h)) - (at(2*h) - at(-2*h))) / (12 * h)
		if got := float64(g[i]); !(math.Abs(got-want) <= 0.01*largest+1e-3) {
			t.Errorf("gradient of %s[%d] is %v, finite differences say %v", q.Name, i, got, want)
		}
	}
	return largest
}

// TestMatryoshkaAgainstFiniteDifferences: leading channels are contrasted with those of the teacher and of the queue, and
// within the batch, and their gradients are those of the sum of all parts.
func TestMatryoshkaAgainstFiniteDifferences(t *testing.T) {
	cfg := tinyConfig()
	cfg.Objective.ITM.Weight, cfg.Objective.MLM.Weight, cfg.Model.Text.Dropout = 0, 0, 0
	cfg.Objective.Matryoshka.Dims = []int{3, 5}
	m := build(t, cfg, "plain", 1)
	b := randomBatch(m, 4)
	temperature, _ := m.params.Get(temperatureName)
	m.params.Value(temperature)[0] = 0.3
	var parts map[string]float64
	checkDifferences(t, m, func(alpha float64) float64 {
		parts = partsOf(forward(t, m, b, Control{Alpha: alpha, UseQueue: true}))
		sum := 0.0
		for _, d := range []string{"", "_3", "_5"} {
			sum += parts["itc"+d] + 0.5*parts["itc_in_batch"+d]
		}
		return sum
	}, []string{"image_proj/weight", "text_proj/bias", "temperature"})
	if len(parts) != 6 || parts["itc_3"] == parts["itc"] || parts["itc_5"] == parts["itc_3"] {
		t.Errorf("parts %v", parts)
	}
}
