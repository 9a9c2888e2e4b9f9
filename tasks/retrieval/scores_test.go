package retrieval

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// ranked is an outcome whose recalls are first and, if not 0, rerank.
func ranked(first, rerank float64, keepBy string) Scores {
	all := func(r float64) eval.Metrics {
		d := eval.Direction{R1: r, R5: r, R10: r}
		return eval.Metrics{I2T: d, T2I: d}
	}
	r := Scores{Score: "cosine", First: all(first), Chance: all(2), KeepBy: keepBy}
	if rerank != 0 {
		m := all(rerank)
		r.Rerank = &m
	}
	return r
}

// train.keep_best_by says which ranking compares checkpoints, and line, table and JSON tell.
func TestKeepBestBy(t *testing.T) {
	const first, rerank = "eval/retrieval/first/r_mean", "eval/retrieval/rerank/r_mean"
	for _, c := range []struct {
		scores Scores
		want   checkpoint.Metric
		told   string
	}{
		{ranked(80, 70, "better"), checkpoint.Metric{Name: first, Value: 80}, "cosine"},
		{ranked(70, 80, "better"), checkpoint.Metric{Name: rerank, Value: 80}, "re-ranked"},
		{ranked(70, 80, ""), checkpoint.Metric{Name: rerank, Value: 80}, "re-ranked"},
		{ranked(70, 80, eval.First), checkpoint.Metric{Name: first, Value: 70}, "cosine"},
		{ranked(80, 70, eval.Reranked), checkpoint.Metric{Name: rerank, Value: 70}, "re-ranked"},
		{ranked(80, 0, eval.Reranked), checkpoint.Metric{Name: first, Value: 80}, ""},
		{ranked(80, 0, "better"), checkpoint.Metric{Name: first, Value: 80}, ""},
	} {
		if got := c.scores.Metric(); got != c.want {
			t.Errorf("%+v: metric %v, want %v", c.scores, got, c.want)
		}
		if values := c.scores.Values(); values[strings.TrimPrefix(c.want.Name, Task.Prefix())] != c.want.Value {
			t.Errorf("the log has no %v", c.want)
		}
		line, table := c.scores.Line(), c.scores.Table()
		if told := strings.Contains(line, "compared by "+c.told); told != (c.told != "") {
			t.Errorf("line %q", line)
		}
		if told := strings.Contains(table, "recalls of: "+c.told); told != (c.told != "") {
			t.Errorf("table %s", table)
		}
	}
}

// A number that train.keep_best_by names is what line, table and JSON say, re-ranked or not.
func TestKeepBestByNumber(t *testing.T) {
	const by = "eval/retrieval/first/i2t_r1"
	for _, s := range []Scores{ranked(70, 80, by), ranked(70, 0, by)} {
		text := check.Get(json.Marshal(s.JSON("val", "ck")))(t)
		for _, want := range []string{"checkpoints compared by " + by, "Checkpoints are compared by " + by + " (train.keep_best_by).", `"metric":"` + by + `"`} {
			if all := s.Line() + s.Table() + string(text); !strings.Contains(all, want) || strings.Contains(all, "recalls of:") {
				t.Errorf("%q is not in %s", want, all)
			}
		}
	}
}

// Both rankings and chance reach the log, the line and the JSON, whose keys are in the order
// of the table; the names without a ranking are those of the last one.
func TestRetrievalScores(t *testing.T) {
	both, one := ranked(82, 72, ""), ranked(82, 0, "")
	values := both.Values()
	for name, want := range map[string]float64{"i2t_r1": 72, "first/i2t_r1": 82, "rerank/t2i_r10": 72, "chance/r_mean": 2} {
		if values[name] != want {
			t.Errorf("%s = %v, want %v", name, values[name], want)
		}
	}
	if v := one.Values(); len(values) != 4*14 || len(v) != 3*14 || v["i2t_r1"] != 82 || v["first/i2t_r1"] != 82 {
		t.Errorf("%d and %d values", len(values), len(v))
	}
	if want := "image to text / text to image: cosine R@1 82.0 / 82.0 R@10 82.0 / 82.0 mean 82.0, re-ranked R@1 72.0 / 72.0 R@10 72.0 / 72.0 mean 72.0, checkpoints compared by cosine"; both.Line() != want {
		t.Errorf("line %q", both.Line())
	}
	text := check.Get(json.Marshal(both.JSON("val", "runs/x")))(t)
	for _, pattern := range []string{
		`"first":\{"i2t_r1":82,"i2t_r5":82,"i2t_r10":82,"i2t_mean_rank":0,.*"r_mean":82\}`, `"rerank":\{"i2t_r1":72,`, `"chance":\{"i2t_r1":2,`,
		`"metric":"eval/retrieval/first/r_mean"`,
	} {
		if !regexp.MustCompile(pattern).Match(text) {
			t.Errorf("%s is not in %s", pattern, text)
		}
	}
	if text, _ := json.Marshal(one.JSON("val", "runs/x")); strings.Contains(string(text), "rerank") {
		t.Errorf("a re-ranking that was not made is in %s", text)
	}
}
