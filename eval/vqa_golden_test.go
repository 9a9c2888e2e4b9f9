package eval

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// TestVQAGolden compares with the published rules in Python (tools/goldens/vqa.py).
func TestVQAGolden(t *testing.T) {
	b := check.Get(os.ReadFile("testdata/vqa.json"))(t)
	var g struct {
		Normalized [][2]string
		Questions  []struct {
			Answer   string
			Given    []string
			Accuracy float64
		}
	}
	if err := json.Unmarshal(b, &g); err != nil || len(g.Normalized) == 0 || len(g.Questions) == 0 {
		t.Fatal("no cases", err)
	}
	for _, c := range g.Normalized {
		if got := NormalizeVQA(c[0]); got != c[1] {
			t.Errorf("%q becomes %q, want %q", c[0], got, c[1])
		}
	}
	for _, q := range g.Questions {
		if got := VQAAccuracy(q.Answer, q.Given); !(math.Abs(got-q.Accuracy) <= 1e-12) {
			t.Errorf("%q of %q: %v, want %v", q.Answer, q.Given, got, q.Accuracy)
		}
	}
}
