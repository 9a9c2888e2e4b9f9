package model

import (
	"encoding/json"
	"flag"
	"math"
	"os"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

var update = flag.Bool("update", false, "write the golden files of this package")

// curveStep is what a step of the golden curve found.
type curveStep struct {
	Loss  float64            `json:"loss"`
	Parts map[string]float64 `json:"parts"`
}

// TestGoldenCurve runs five steps with queue, teacher and all losses, without and with
// dropout, and compares every number with testdata/curve*.json, which this test wrote
// at an earlier revision (go test ./model -run GoldenCurve -update). The curve without
// dropout is older than the layers that compute only what is read, which therefore
// change nothing but which dropout masks are drawn. The numbers agree to 1e-5 on any
// processor; with GOLDEN_EXACT=1 they must be the same bits, which is what a
// refactoring on one machine must keep.
func TestGoldenCurve(t *testing.T) {
	t.Run("plain", func(t *testing.T) { goldenCurve(t, 0, "testdata/curve_plain.json") })
	t.Run("dropout", func(t *testing.T) { goldenCurve(t, 0.1, "testdata/curve.json") })
}

func goldenCurve(t *testing.T, dropout float64, file string) {
	cfg := tinyConfig()
	cfg.Model.Text.Dropout = dropout
	cfg.Queue.Size = 6
	m := build(t, cfg, "plain", 1)
	var got []curveStep
	for i := range 5 {
		res := step(t, m, randomBatch(m, uint64(i%2)), Control{Step: i, Alpha: 0.1 * float64(i), UseQueue: i > 0})
		s := curveStep{res.Loss, map[string]float64{}}
		for _, p := range res.Parts {
			s.Parts[p.Name] = p.Value
		}
		got = append(got, s)
	}
	if *update {
		b := check.Get(json.MarshalIndent(got, "", " "))(t)
		check.OK(t, os.WriteFile(file, append(b, '\n'), 0o644))
	}
	var want []curveStep
	b := check.Get(os.ReadFile(file))(t)
	check.OK(t, json.Unmarshal(b, &want))
	if len(want) != len(got) {
		t.Fatalf("%s has %d steps, want %d", file, len(want), len(got))
	}
	exact := os.Getenv("GOLDEN_EXACT") == "1"
	compare := func(i int, name string, got, want float64) {
		tol := 1e-5 * math.Abs(want)
		if exact {
			tol = 0
		}
		if !(math.Abs(got-want) <= tol) {
			t.Errorf("step %d: %s is %v, was %v", i, name, got, want)
		}
	}
	for i := range got {
		compare(i, "loss", got[i].Loss, want[i].Loss)
		if len(got[i].Parts) != len(want[i].Parts) {
			t.Errorf("step %d has parts %v, want those of %v", i, got[i].Parts, want[i].Parts)
		}
		for name, v := range want[i].Parts {
			compare(i, name, got[i].Parts[name], v)
		}
	}
}
