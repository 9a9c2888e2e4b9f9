package ablation

import (
	"encoding/csv"
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// row is a run whose trials have the values of rsum and loss.
func row(name, group string, values ...[2]float64) Row {
	r := Row{Name: name, Group: group}
	for i, v := range values {
		r.Trials = append(r.Trials, Trial{Seed: int64(i + 1), State: Done,
			Values: map[string]float64{"eval/retrieval/rsum": v[0], "loss": v[1]}})
	}
	return r
}

func example() *Results {
	failed := row("explodes", "", [2]float64{1, 1}, [2]float64{1, 1}, [2]float64{1, 1})
	failed.Trials[1] = Trial{Seed: 2, State: Failed, Error: "loss is\n NaN"}
	hidden := row("warm", "", [2]float64{900, 0}, [2]float64{900, 0}, [2]float64{900, 0})
	hidden.Hidden = true
	waiting := row("later", "k")
	waiting.Trials = []Trial{{Seed: 1, State: Missing}, {Seed: 2, State: Missing}, {Seed: 3, State: Missing}}
	r := &Results{
		Title: "T", Base: "a.toml", Seeds: []int64{1, 2, 3}, Baseline: "plain",
		Columns: []Column{{"eval/retrieval/rsum", "rsum", "higher"}, {"loss", "loss", "lower"}},
		Rows: []Row{
			hidden,
			row("plain", "", [2]float64{100, 2}, [2]float64{110, 2.5}, [2]float64{120, 3}),
			row("better", "", [2]float64{111, 1}, [2]float64{120, 1.5}, [2]float64{130, 2}),
			row("alike", "", [2]float64{105, 1.1}, [2]float64{118, 1.2}, [2]float64{141, 2.2}),
			failed,
			waiting,
		},
	}
	r.Tabulate()
	return r
}

// The legend says which ranking the columns that name none compare.
func TestLastRanking(t *testing.T) {
	r := example()
	for i := range r.Rows {
		r.Rows[i].Rerank = r.Rows[i].Name == "plain" || r.Rows[i].Hidden
	}
	if want := ` Re-ranked by the matching head in "plain", by the pair score in the others: rsum.`; !strings.Contains(
		r.Legend(), want) {
		t.Errorf("%q is not in %q", want, r.Legend())
	}
	for i := range r.Rows {
		r.Rows[i].Rerank = true
	}
	if want := " Re-ranked by the matching head: rsum."; !strings.Contains(r.Legend(), want) {
		t.Errorf("%q is not in %q", want, r.Legend())
	}
	r.Columns = []Column{{"eval/retrieval/first/rsum", "rsum (pair score)", "higher"}, {"loss", "loss", "lower"}}
	if s := r.Legend(); strings.Contains(s, "matching head") || strings.Contains(s, "pair score") {
		t.Errorf("columns that name their ranking are explained: %q", s)
	}
}

// The values of a trial are in the order of the numbers in their names, and read back.
func TestValuesJSON(t *testing.T) {
	want := Values{"eval/retrieval/i2t_r10": 3, "eval/retrieval/i2t_r5": 2, "eval/retrieval/i2t_r1": 1, "loss": 0.5}
	text, err := json.Marshal(want)
	if err != nil || string(text) != `{"eval/retrieval/i2t_r1":1,"eval/retrieval/i2t_r5":2,"eval/retrieval/i2t_r10":3,"loss":0.5}` {
		t.Errorf("%s (%v)", text, err)
	}
	var got Values
	if err := json.Unmarshal(text, &got); err != nil || !maps.Equal(got, want) {
		t.Errorf("%v (%v)", got, err)
	}
}

// A run that is the same as another one is counted once, a hidden one too. Only what is still to
// be made is a run that is not done.
func TestProgress(t *testing.T) {
	r := example()
	same := row("again", "", [2]float64{100, 2}, [2]float64{110, 2.5}, [2]float64{120, 3})
	same.Same = "plain"
	r.Rows = append(r.Rows, same)
	if got := r.Progress(); got != "14 of 18, 1 failed" { // 3 of 3, 3, 3, 3, 2 and one failed, none of 3
		t.Errorf("got %s", got)
	}
	r.Rows = r.Rows[:len(r.Rows)-2] // without the one that waits
	r.Tabulate()
	if got := r.Legend(); strings.Contains(got, "Not all runs are done") ||
		!strings.Contains(got, "A run that failed with a seed is not marked") {
		t.Errorf("a failed run counts as one to be made: %s", got)
	}
}

// By hand: plain has mean 110 and deviation 10; better differs from it by 11, 10, 10,
// mean 31/3 with a standard error of 1/3, t = 31, so p = 1 - 31/sqrt(963) = 0.00104.
// alike differs by 5, 8, 21: t = 2.308, p = 1 - t/sqrt(2+t^2) = 0.147, and in its loss by
// -0.9, -1.3, -0.8: t = 6.547, p = 0.0225. explodes lacks a seed and has no spread, so the
// test is Welch's with 2 degrees: t = 109 sqrt(3)/10, p = 0.0028, and 1.5 sqrt(3)/0.5, p = 0.0351.
// It failed once and is therefore not the best.
func TestMarkdown(t *testing.T) {
	got := example().Markdown()
	squeeze := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	for _, w := range []string{
		"# T",
		"| run | rsum \u2191 | loss \u2193 | |",
		"| plain | *110.0 \u00b1 10.0* | 2.500 \u00b1 0.500 | |",
		"| better | *120.3 \u00b1 9.5* (+10.3, p 0.001) | **1.500 \u00b1 0.500** (-1.000, p < 0.001) | |",
		"| alike | **121.3 \u00b1 18.2** (+11.3, p 0.15) | *1.500 \u00b1 0.608* (-1.000, p 0.023) | |",
		"| explodes | 1.0 \u00b1 0.0 (-109.0, p 0.003) | 1.000 \u00b1 0.000 (-1.500, p 0.035) | seed 2 failed |",
		"## k",
		"| later | - | - | not run |",
		"seeds 1, 2, 3.", `difference to "plain"`, "Not all runs are done.",
		"By the pair score: rsum. A run that failed", "Failed: explodes, seed 2: loss is NaN",
	} {
		if !strings.Contains(squeeze(got), w) {
			t.Errorf("%q is not in\n%s", w, got)
		}
	}
	if strings.Contains(got, "warm") {
		t.Errorf("a hidden run is in the table:\n%s", got)
	}
	for _, line := range strings.Split(got, "\n") { // columns stand in line
		if strings.HasPrefix(line, "|") && strings.Count(line, "|") < 4 {
			t.Errorf("a short line: %s", line)
		}
	}
}

// A table in which a run is the same as the baseline needs no further row of it.
func TestBaselineStandsOnce(t *testing.T) {
	same := row("k=1", "k", [2]float64{0, 2})
	same.Same = "a"
	r := &Results{Seeds: []int64{7}, Baseline: "a", Columns: []Column{{"loss", "loss", "lower"}},
		Rows: []Row{row("a", "", [2]float64{0, 2}), same, row("k=2", "k", [2]float64{0, 1}), row("l=2", "l", [2]float64{0, 1})}}
	r.Tabulate()
	if len(r.Tables) != 2 || len(r.Tables[0].Lines) != 2 || len(r.Tables[1].Lines) != 2 {
		t.Fatalf("%+v", r.Tables)
	}
	if got := r.Tables[0].Lines[0]; got.Name != "k=1" || got.Note != `the same as "a"` ||
		got.Cells[0].Difference != nil {
		t.Errorf("%+v", got)
	}
	if got := r.Tables[1].Lines; got[0].Name != "a" || got[1].Cells[0].Difference == nil {
		t.Errorf("%+v", got)
	}
}

// A name with the mark between columns makes no column, neither of its own line nor of one that is the same.
func TestNameOfColumns(t *testing.T) {
	same := row("k=1", "", [2]float64{0, 2})
	same.Same = "a|b"
	r := &Results{Seeds: []int64{7}, Columns: []Column{{"loss", "loss", "lower"}}, Rows: []Row{row("a|b", "", [2]float64{0, 2}), same}}
	r.Tabulate()
	for line := range strings.Lines(r.Markdown()) {
		if n := strings.Count(line, "|") - strings.Count(line, `\|`); strings.HasPrefix(line, "|") && n != 4 {
			t.Errorf("%d marks in %s", n, line)
		}
	}
}

func TestOneSeed(t *testing.T) {
	r := &Results{Seeds: []int64{7}, Baseline: "a", Columns: []Column{{"loss", "loss", "lower"}},
		Rows: []Row{row("a", "", [2]float64{0, 2}), row("b", "", [2]float64{0, 1}), row("c", "", [2]float64{0, 1})}}
	r.Tabulate()
	got := r.Markdown()
	for _, w := range []string{"One seed (7)", " 2.000 |", "**1.000** (-1.000) |", "*1.000* (-1.000) |"} {
		if !strings.Contains(got, w) {
			t.Errorf("%q is not in\n%s", w, got)
		}
	}
	if !r.Complete || strings.Contains(got, "Not all") {
		t.Error("every run is done")
	}
}

func TestNothingIsBest(t *testing.T) {
	r := &Results{Seeds: []int64{1}, Columns: []Column{{"loss", "loss", "none"}},
		Rows: []Row{row("a", "", [2]float64{0, 2}), row("b", "", [2]float64{0, 1})}}
	r.Tabulate()
	if got := strings.SplitN(r.Markdown(), "One seed", 2)[0]; strings.Contains(got, "*") {
		t.Errorf("%s", got)
	}
}

func TestDigits(t *testing.T) {
	for _, c := range []struct {
		mean float64
		want string
	}{{12345.6, "12346"}, {123.45, "123.5"}, {1.23456, "1.235"}, {0.000012345, "0.0000123"}, {0, "0.000"}} {
		r := &Results{Seeds: []int64{1}, Columns: []Column{{"loss", "loss", "lower"}}, Rows: []Row{row("a", "", [2]float64{0, c.mean})}}
		r.Tabulate()
		if got := r.Markdown(); !strings.Contains(got, " "+c.want+" |") {
			t.Errorf("%v: want %s in\n%s", c.mean, c.want, got)
		}
	}
}

func TestCSVAndJSON(t *testing.T) {
	r := example()
	lines := check.Get(csv.NewReader(strings.NewReader(r.CSV())).ReadAll())(t)
	if len(lines) != 1+4+2 || lines[0][4] != "eval/retrieval/rsum mean" { // the baseline stands in both tables
		t.Fatalf("%q", lines)
	}
	if got := strings.Join(lines[3][:8],
		"|"); got != "|alike||3|121.33333333333333|18.230011885167087|best|11.333333333333329" {
		t.Errorf("got %s", got)
	}
	raw := check.Get(json.Marshal(r))(t)
	var back Results
	check.OK(t, json.Unmarshal(raw, &back))
	back.Tabulate()
	if back.Markdown() != r.Markdown() {
		t.Errorf("another table from the JSON:\n%s", back.Markdown())
	}
}
