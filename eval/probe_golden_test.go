package eval

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// TestProbeGolden compares weights, loss and predictions with scikit-learn's logistic regression
// (tools/goldens/probe.py).
func TestProbeGolden(t *testing.T) {
	b := check.Get(os.ReadFile("testdata/probe.json"))(t)
	var cases []struct {
		Classes   int       `json:"classes"`
		Dim       int       `json:"dim"`
		Decay     float64   `json:"decay"`
		Train     []float32 `json:"train"`
		Labels    []int32   `json:"train_labels"`
		Test      []float32 `json:"test"`
		Predicted []int32   `json:"predicted"`
		Loss      float64   `json:"loss"`
		Weight    []float64 `json:"weight"`
	}
	if err := json.Unmarshal(b, &cases); err != nil || len(cases) != 3 {
		t.Fatal(err)
	}
	for _, c := range cases {
		p := check.Get(FitProbe(t.Context(), probeEngine(t), c.Train, c.Labels,
			ProbeOptions{Classes: c.Classes, Decay: c.Decay}))(t)
		n := len(c.Labels)
		logits := make([]float32, n*c.Classes)
		p.logits(p.prepared(c.Train, n), p.weight, p.bias, n, logits)
		loss := 0.
		for i, l := range c.Labels {
			var sum float64
			for _, v := range logits[i*c.Classes:][:c.Classes] {
				sum += math.Exp(float64(v))
			}
			loss += (math.Log(sum) - float64(logits[i*c.Classes+int(l)])) / float64(n)
		}
		for i, w := range p.weight {
			loss += c.Decay / 2 * float64(w) * float64(w)
			if !(math.Abs(float64(w)-c.Weight[i]) <= 5e-3) {
				t.Errorf("%d classes: weight %d is %v, want %v", c.Classes, i, w, c.Weight[i])
			}
		}
		if !(math.Abs(loss-c.Loss) <= 2e-6) {
			t.Errorf("%d classes: loss %v, want %v", c.Classes, loss, c.Loss)
		}
		got, err := p.Predict(c.Test, len(c.Predicted))
		if err != nil || !slices.Equal(got, c.Predicted) {
			t.Errorf("%d classes: %v, want %v (%v)", c.Classes, got, c.Predicted, err)
		}
	}
}
