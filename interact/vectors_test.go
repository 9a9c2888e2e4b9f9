package interact

import (
	"math"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/nn"
)

// TestVectorsTokens: only tokens that take part count, and a text without words has the score 0.
func TestVectorsTokens(t *testing.T) {
	for _, steps := range []int{0, 2} {
		m := Vectors{Dim: 6, Scale: 9, Steps: steps}
		s := newStore(.3)
		x, y := s.pair(false)
		score := m.Scores(&encoders.Context{}, encoders.NewScope(s), x, y)
		want := s.run(t, score)[0]
		for side, length := range map[string]int{"images": imageLen, "texts": textLen} {
			v := s.floatsOf(side)
			for i := 0; i < len(v)/channels; i++ {
				place, end := i%length, length
				if side == "texts" {
					end = int(textLengths[i/length]) - 1
				}
				if place < 1 || place >= end {
					for c := range channels {
						v[i*channels+c] = float32(c) - 3
					}
				}
			}
		}
		if got := s.run(t, score)[0]; !slices.Equal(got, want) {
			t.Errorf("%d steps: tokens that take no part change the scores %v to %v", steps, want, got)
		}
		for at, v := range want {
			if empty := textLengths[at%numTexts] <= 2; empty != (v == 0) || !(v >= 0 && v < 1) {
				t.Errorf("%d steps: score %d is %v", steps, at, v)
			}
		}
		s.values["lengths"] = make([]int32, numTexts) // as evaluation fills a block up
		for _, v := range s.run(t, score)[0] {
			if v != 0 {
				t.Errorf("%d steps: texts without words have the score %v", steps, v)
			}
		}
	}
}

// TestVectorsStart: metrics at either site and both start as none, to the bit.
func TestVectorsStart(t *testing.T) {
	for _, plain := range []Vectors{{Dim: 6, Scale: 9, Steps: 2}, {Dim: 6, Scale: 9}} {
		startsAsWithout(t, func(attention, similarity encoders.Metric) encoders.Interaction {
			m := plain
			m.Attention, m.Similarity = attention, similarity
			return m
		})
	}
}

// TestVectorsMetric: metrics and pools have the gradients of finite differences. Twice the metric is another similarity but
// the same attention, which divides by the norms of its products.
func TestVectorsMetric(t *testing.T) {
	metric := encoders.Metric{Form: "diag", Dim: channels}
	for name, m := range map[string]Vectors{
		"attention":  {Dim: 6, Scale: 9, Attention: metric},
		"similarity": {Dim: 6, Scale: 9, Steps: 1, Similarity: metric},
	} {
		s := newStore(.4)
		x, y := s.pair(false)
		score := m.Scores(&encoders.Context{}, encoders.NewScope(s), x, y)
		before := s.run(t, score)[0]
		names := []string{"gssf/attention/weight", "images", "texts", "interaction/text/common", "interaction/image/local/weight"}
		if name == "similarity" {
			names[0] = "gssf/weight"
		}
		s.checkGradients(t, arith.Sum(nn.ScaleColumns(score, s.floats("slopes", []float32{10, -20, 30, 5}, numTexts))), names...)
		for i := range s.floatsOf(names[0]) {
			s.floatsOf(names[0])[i] *= 2
		}
		if after := s.run(t, score)[0]; !(math.Abs(float64(after[0]-before[0])) <= 1e-6 == (name == "attention")) {
			t.Errorf("%s: twice the metric makes %v of %v", name, after[0], before[0])
		}
	}
}
