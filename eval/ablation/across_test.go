package ablation

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

const acrossMatrix = `
base = "a.toml"
metrics = ["eval/retrieval/first/i2t_r1", "seconds"]
seeds = [1, 2]
baseline = "ridge"
correct = "holm"
across = {key = "data.pairs.paired", values = [50, 100]}
[[run]]
name = "ridge"
[[run]]
name = "cca"
set = ["model.align.method=cca"]
[[run]]
name = "heads"
start = "cca"
`

// Every run is made with every value and starts from the run of the same value.
func TestAcross(t *testing.T) {
	m := check.Get(Parse("m.toml", []byte(acrossMatrix)))(t)
	var got []string
	for _, r := range m.Runs {
		got = append(got, r.Name+" <"+r.Start+"> "+strings.Join(r.Set, " "))
	}
	want := []string{
		"ridge, paired=50 <> data.pairs.paired=50", "cca, paired=50 <> data.pairs.paired=50 model.align.method=cca",
		"heads, paired=50 <cca, paired=50> data.pairs.paired=50", "ridge, paired=100 <> data.pairs.paired=100",
		"cca, paired=100 <> data.pairs.paired=100 model.align.method=cca",
		"heads, paired=100 <cca, paired=100> data.pairs.paired=100",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	for text, want := range map[string]string{
		`across = {key = "a"}`:                     "needs a key and values",
		`across = {values = [1]}`:                  "needs a key and values",
		`across = {key = "a", values = [2, 1]}`:    "must be numbers, rising",
		`across = {key = "a", values = ["x"]}`:     "must be numbers, rising",
		`across = {key = "a", value = [1]}`:        "unknown key",
		"correct = \"bonferroni\"\nbaseline = 'r'": `must be "holm"`,
	} {
		_, err := Parse("m.toml", []byte("base = \"a.toml\"\nmetrics = [\"loss\"]\n"+text+"\n[[run]]\nname = \"r\"\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A table per metric has a line per method and a column per value, each compared with the baseline
// at its value.
func TestAcrossTables(t *testing.T) {
	at := []float64{50, 100}
	r := Results{Seeds: []int64{1, 2, 3}, Baseline: "ridge", Across: "data.pairs.paired", Correct: Holm,
		Columns: []Column{{"eval/retrieval/first/i2t_r1", "i2t_r1", "higher"}, {"seconds", "seconds", "lower"}}}
	values := map[string][][]float64{"ridge": {{10, 11, 12}, {20, 22, 21}}, "cca": {{13, 14, 14.5}, {20, 22, 21}}}
	for _, method := range []string{"ridge", "cca"} {
		for k := range at {
			row := Row{Name: fmt.Sprintf("%s, paired=%g", method, at[k]), Method: method, At: &at[k]}
			for s, v := range values[method][k] {
				row.Trials = append(row.Trials,
					Trial{Seed: int64(s + 1), State: Done,
						Values: Values{"eval/retrieval/first/i2t_r1": v, "seconds": 1}})
			}
			r.Rows = append(r.Rows, row)
		}
	}
	r.Tabulate()
	if len(r.Tables) != 2 || len(r.Tables[0].Lines) != 2 || len(r.Tables[0].Values) != 2 {
		t.Fatalf("%+v", r.Tables)
	}
	cells := r.Tables[0].Lines[1].Cells
	near(t, "mean", *cells[0].Mean, 13.833333333333334, 1e-12)
	near(t, "difference at 50", *cells[0].Difference, 2.833333333333333, 1e-12)
	near(t, "difference at 100", *cells[1].Difference, 0, 1e-12)
	near(t, "corrected", *cells[0].ToBaseline.Holm, 2*cells[0].ToBaseline.P, 1e-12)
	near(t, "corrected, equal", *cells[1].ToBaseline.Holm, 1, 1e-12)
	if !cells[0].Best || !r.Tables[0].Lines[0].Cells[1].Best || !cells[1].Tied {
		t.Errorf("marks: %+v", r.Tables[0])
	}
	text := r.Markdown()
	for _, want := range []string{"## i2t_r1 \u2191 across paired", "| run   |", "50 |", "100 |",
		"**13.8 \u00b1 0.8** (+2.8, p 0.", "(Holm)"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	p := fmt.Sprintf(",best,%v,%v,", *cells[0].Difference, *cells[0].ToBaseline.Holm) // as in the other tables
	if csv := r.CSV(); !strings.Contains(csv, "\n,\"cca, paired=50\",,3,13.83") || !strings.Contains(csv, p) ||
		strings.Count(csv, "\n") != 5 {
		t.Errorf("table.csv:\n%s", csv)
	}
}

func TestHolmAdjust(t *testing.T) {
	for _, c := range []struct{ p, want []float64 }{ // as R's p.adjust has them
		{[]float64{0.01, 0.04, 0.03, 0.005}, []float64{0.03, 0.06, 0.06, 0.02}},
		{[]float64{0.6, 0.001, 0.7}, []float64{1, 0.003, 1}},
	} {
		for i, got := range HolmAdjust(c.p) {
			if !(math.Abs(got-c.want[i]) <= 1e-15) {
				t.Errorf("p %v: %v, want %v", c.p[i], got, c.want[i])
			}
		}
	}
}

// TestHolmOfTwins: a run that stands in two places is compared once, and both places have its p.
func TestHolmOfTwins(t *testing.T) {
	r := example()
	twin := row("better again", "k", [2]float64{111, 1}, [2]float64{120, 1.5}, [2]float64{130, 2})
	twin.Same = "better"
	r.Rows, r.Correct = append(r.Rows, twin), Holm
	for _, row := range r.Rows {
		if row.Name == "alike" { // compared with the same baseline, and a comparison of its own
			row.Name, row.Group, row.Same = "other", "k", ""
			r.Rows = append(r.Rows, row)
		}
	}
	r.Tabulate()
	of := map[string]*Test{}
	for _, table := range r.Tables {
		for _, l := range table.Lines {
			if x := l.Cells[0].ToBaseline; x != nil {
				of[l.Name] = x
			}
		}
	}
	want := HolmAdjust([]float64{of["better"].P, of["alike"].P, of["explodes"].P, of["other"].P})
	for i, name := range []string{"better", "alike", "explodes", "other"} {
		near(t, name, *of[name].Holm, want[i], 1e-12)
	}
	near(t, "better again", *of["better again"].Holm, *of["better"].Holm, 0)
	near(t, "of four", *of["better"].Holm, 4*of["better"].P, 1e-12)
}
