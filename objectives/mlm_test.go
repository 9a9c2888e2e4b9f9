package objectives

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gorgonia.org/gorgonia"
)

// TestMaskedLMAgainstOracle: hard labels with rows left out, and distillation.
func TestMaskedLMAgainstOracle(t *testing.T) {
	const rows, vocab = 5, 7
	r := rand.New(rand.NewPCG(4, 4))
	labels := []int32{3, -100, 0, 6, -100}
	for _, c := range []struct {
		scale, alpha float64
		soft         bool
	}{{1, 0, false}, {1, .4, true}, {1, 1, true}, {1e4, .4, true}} {
		logits, teacher := make([]float32, rows*vocab), make([]float32, rows*vocab)
		for i := range logits {
			logits[i], teacher[i] = float32(c.scale*r.NormFloat64()), float32(c.scale*r.NormFloat64())
		}
		n := newBench(t)
		x := n.floats("logits", logits, rows, vocab)
		var soft, alpha *gorgonia.Node
		if c.soft {
			soft, alpha = n.floats("teacher", teacher, rows, vocab), n.floats("alpha", []float32{float32(c.alpha)})
		}
		oracle := func() float64 {
			s, hard, tm := make([][]float64, rows), make([][]float64, rows), make([][]float64, rows)
			for i := range rows {
				for j := range vocab {
					s[i] = append(s[i], float64(logits[i*vocab+j]))
					tm[i] = append(tm[i], float64(teacher[i*vocab+j]))
				}
				if labels[i] >= 0 {
					hard[i] = make([]float64, vocab)
					hard[i][labels[i]] = 1
				}
			}
			if !c.soft {
				tm = nil
			}
			return softLoss(s, hard, tm, c.alpha)
		}
		loss, grads := n.lossAndGrads(MaskedLM(x, soft, n.ints("labels", labels...), alpha), x)
		near(t, "loss", loss, oracle(), 1e-6)
		if c.scale == 1 {
			nearAll(t, "gradient", grads[0], fdGrad(logits, oracle), 1e-4)
		}
		for i, v := range grads[0] {
			if math.IsNaN(float64(v)) || labels[i/vocab] < 0 && v != 0 {
				t.Errorf("gradient of row %d is %v", i/vocab, v)
			}
		}
	}
}

// TestMaskedLMWithoutLabels: no token selected is a loss of 0, not the mean of nothing.
func TestMaskedLMWithoutLabels(t *testing.T) {
	n := newBench(t)
	x := n.floats("logits", []float32{1, 2, 3, 4}, 2, 2)
	loss, grads := n.lossAndGrads(MaskedLM(x, n.floats("teacher", []float32{4, 3, 2, 1}, 2, 2), n.ints("labels", -100, -100), n.floats("alpha", []float32{.4})), x)
	if loss != 0 {
		t.Errorf("loss %v, want 0", loss)
	}
	for _, v := range grads[0] {
		if v != 0 {
			t.Errorf("gradients %v, want 0", grads[0])
		}
	}
}

// TestMaskCapacity: the mean plus six standard deviations, up to a multiple of 8.
func TestMaskCapacity(t *testing.T) {
	for _, c := range []struct {
		b, l int
		p    float64
		want int
	}{
		// 32*29 = 928 tokens: mean 139.2, sigma 10.877; 204.5 -> 208.
		{32, 30, 0.15, 208},
		// 2*4 = 8 tokens: mean 1.2 + 6*1.01 = 7.3 -> 8.
		{2, 5, 0.15, 8},
		// 1*4 = 4 tokens: never more than all.
		{1, 5, 0.15, 4},
		{4, 10, 1, 36},
		// 1 token: room for one row even if none is ever selected.
		{1, 2, 0, 1},
	} {
		if got := MaskCapacity(c.b, c.l, c.p); got != c.want {
			t.Errorf("%d texts of %d, %g: %d, want %d", c.b, c.l, c.p, got, c.want)
		}
	}
}

// TestPlacesOfFusedTexts: places count within the batch, and the fused texts stand behind
// those of other losses.
func TestPlacesOfFusedTexts(t *testing.T) {
	m := newPlaces(3)
	m.set([]int32{0, 3, 9}, 2, 4) // in texts 0, 0 and 2 of four tokens each
	if want := []int32{8, 11, 17}; !slices.Equal(m.rows, want) {
		t.Errorf("rows %v, want %v", m.rows, want)
	}
	if want := []int32{2, 2, 4}; !slices.Equal(m.texts, want) {
		t.Errorf("texts %v, want %v", m.texts, want)
	}
}
