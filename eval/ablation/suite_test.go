package ablation

import (
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

const suiteText = `
title = "T"
[[features]]
out = "a.npy"
model = "m"
texts = "t.txt"
[[matrix]]
file = "m.toml"
where = "here"
[[matrix.claim]]
idea = "Heads"
paper = "P, table 1"
run = "heads"
at = 50.0
more = "m.md"
`

func TestSuiteRefuses(t *testing.T) {
	check.Get(ParseSuite("s.toml", []byte(suiteText)))(t)
	for change, want := range map[string]string{
		`texts = "t.txt"|`:                    "needs images or texts",
		`texts =|images = "x"` + "\ntexts =":  "needs images or texts",
		`model = "m"|`:                        "needs out, the file to write, and model",
		`file = "m.toml"|`:                    "matrix[1].file",
		`paper =|papers =`:                    "unknown key",
		`[[matrix.claim]]|[[matrix.claimed]]`: "unknown key",
		`title = "T"|title = 1`:               "line 2",
	} {
		old, new, _ := strings.Cut(change, "|")
		if _, err := ParseSuite("s.toml", []byte(strings.Replace(suiteText, old, new, 1))); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", change, err)
		}
	}
	m := check.Get(Parse("m.toml", []byte(acrossMatrix)))(t)
	at := 50.0
	list := check.Get(m.Claimed("s", []Claim{{Idea: "i", Run: "heads", At: &at}}))(t)
	if list[0].Baseline != "ridge" || list[0].Metric != m.Metrics[0] {
		t.Errorf("%+v", list[0])
	}
	for want, c := range map[string]Claim{"is not a run of the matrix": {Idea: "i", Run: "heads"},
		"is not one of the matrix": {Idea: "i", Run: "heads", At: &at, Metric: "loss"}, "what is compared": {Run: "heads", At: &at}} {
		if _, err := m.Claimed("s", []Claim{c}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// found is a claim over runs with these values of seeds 1, 2, ...
func found(t *testing.T, run, base []float64) Finding {
	t.Helper()
	const metric = "eval/retrieval/first/r_mean"
	r := &Results{Columns: []Column{{metric, "r_mean", "higher"}}}
	for name, values := range map[string][]float64{"heads": run, "ridge": base} {
		row := Row{Name: name}
		for i, v := range values {
			row.Trials = append(row.Trials, Trial{Seed: int64(i + 1), State: Done, Values: Values{metric: v}})
		}
		row.Trials = append(row.Trials, Trial{Seed: 99, State: Failed})
		r.Rows = append(r.Rows, row)
	}
	s := NewSuiteResults("m", "here", r, []Claim{{Idea: "Heads", Run: "heads", Baseline: "ridge", Metric: metric}})
	if len(s.Findings) != 1 {
		t.Fatalf("%+v", s)
	}
	f := s.Findings[0]
	f.Holm = f.P
	return f
}

// Differences 1, 2, 3: t = 2 / (1/sqrt 3) = 3.464 with two degrees of freedom, p = 1 - t/sqrt(2+t^2) = 0.0742.
func TestFinding(t *testing.T) {
	f := found(t, []float64{11, 13, 15, 80}, []float64{10, 11, 12})
	near(t, "effect", f.Effect, 2, 1e-12)
	near(t, "p", *f.P, 0.07417990022744853, 1e-9)
	near(t, "mean of the run, of common seeds", f.Means[0], 13, 1e-12)
	if f.Seeds != 3 || f.Verdict() != "cannot be told" {
		t.Errorf("%d seeds: %s", f.Seeds, f.Verdict())
	}
	up, down := []float64{11, 12.1, 13, 14.2, 15.1}, []float64{10, 11, 12, 13, 14}
	f = found(t, up, down)
	if got := f.Verdict(); got != "helps" || !f.BySeed.Excludes() || f.ByQuery != nil {
		t.Errorf("%s: %+v", got, f)
	}
	if got := found(t, down, up).Verdict(); got != "hurts" {
		t.Error(got)
	}
	f.OverQueries([]float64{1, 0, 0, 5}, []float64{0, 3, 0, 1}) // test images do not tell
	if got := f.Verdict(); got != "cannot be told" {
		t.Errorf("%s: %+v", got, f)
	}
	f = found(t, up[:2], down[:2])
	if got := f.Verdict(); f.P != nil || f.BySeed != nil || got != "cannot be told from 2 of at least 3 seeds" {
		t.Errorf("%s: %+v", got, f)
	}
	// All seeds agree: only test images tell, and their p is that of the paired test.
	f = found(t, []float64{2, 2, 2}, []float64{1, 1, 1})
	if f.P != nil || f.BySeed != nil {
		t.Errorf("p of equal differences: %+v", f)
	}
	f.OverQueries([]float64{1, 2, 3}, []float64{0, 0, 0})
	near(t, "p of test images", *f.P, 0.07417990022744853, 1e-9)
}

// The p of all findings are corrected together.
func TestSuiteTable(t *testing.T) {
	at := 50.0
	p, q := 0.01, 0.04
	f := Finding{Claim: Claim{Idea: "A|B", Paper: "P, table 1", Run: "r", Baseline: "b", At: &at, More: "m.md",
		Metric: "eval/retrieval/first/i2t_r1"}, Means: [2]float64{12, 10}, Effect: 2, Seeds: 10, P: &p,
		BySeed: &Interval{1, 3}, ByQuery: &Interval{0.5, 4}}
	g := f
	g.P, g.Effect, g.Metric, g.More, g.ByQuery = &q, -1, "eval/zeroshot/top1", "", nil
	g.BySeed = &Interval{-2, -0.5}
	few := g
	few.P, few.Seeds, few.BySeed = nil, 2, nil
	got := SuiteTable([]*SuiteResults{{Matrix: "m1", Where: "here", Findings: []Finding{f, few}},
		{Matrix: "m2", Where: "there", Findings: []Finding{g}}})
	for _, want := range []string{
		`| **A\|B** (P, table 1) | here, 50 pairs | +2.0 R@1 i2t (12.0, b 10.0) | +1.0 to +3.0; +0.5 to +4.0 | 10 | 0.020 | [helps](m.md) | ` + "`m1` |",
		"| -1.0 zeroshot top1 (12.0, b 10.0) | -; - | 2 | - | cannot be told from 2 of at least 3 seeds | `m1` |",
		"| -2.0 to -0.5; - | 10 | 0.040 | hurts | `m2` |",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}
