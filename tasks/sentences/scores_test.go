package sentences

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/data/sentencepairs"
	"github.com/geoalign/geoalign/data/table"
	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/report"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// sentenceOutcome is one of three tasks.
func sentenceOutcome(t *testing.T) Scores {
	t.Helper()
	spec := check.Get(sentencepairs.TaskOf("mrpc"))(t)
	half := eval.Correlation{Spearman: .5, Pearson: .25}
	return Scores{Rules: []string{"fixed", "probe"}, Notes: []string{"mrpc: left out of 9 rows: 1 without a label"}, Feature: "mean", Width: 3,
		Picture: &Picture{Task: "mrpc", Pairs: []sentencepairs.Pair{{A: "a", B: "b", Label: 1}, {A: "c", B: "d"}}, First: []float32{1, 0, 0, 0, 1, 0}, Second: []float32{1, 1, 0, 0, 0, 1}, Width: 3,
			Cosines: []float64{.7, .1, .2}, Labels: []int32{1, 0, 0}, Scores: []float64{0, 0, 0}, Spec: spec},
		Tasks: []PairScores{
			{Task: "mrpc", Split: "val", Pairs: 3, Classes: spec.Classes, Rules: map[string]float64{"fixed": 60}, WordRules: map[string]float64{"fixed": 55}, Constant: []float64{66, 34}, Nearest: 1, Skipped: "there is no file"},
			{Task: "stsb", Pairs: 10, Words: &eval.Correlation{Spearman: .4, Pearson: .1}, STS: &eval.STS{Parts: []eval.STSPart{{Pairs: 10, Correlation: half}}, All: half, Mean: half, Weighted: half}},
			{Task: "sts12", Pairs: 20, STS: &eval.STS{Parts: []eval.STSPart{{Name: "x", Pairs: 5, Correlation: half}, {Name: "y", Pairs: 15}}, All: eval.Correlation{Spearman: .3}, Mean: eval.Correlation{Spearman: .25}, Weighted: eval.Correlation{Spearman: .125}},
				Isotropy: &eval.Isotropy{Rows: 4, Width: 3, Cosine: .9, EffectiveRank: 2, Positives: 1, Spectrum: []float64{2, 1}}},
		}}
}

// TestSentencesScores: names of the log, and what people read.
func TestSentencesScores(t *testing.T) {
	s := sentenceOutcome(t)
	values := s.Values()
	for name, want := range map[string]float64{
		"pairs/mrpc/fixed": 60, "pairs/mrpc/tfidf_fixed": 55, "sts/stsb/tfidf_spearman": 40, "sts/mean/tfidf_spearman": 20, "pairs/mrpc/majority": 66, "pairs/mrpc/constant": 34, "sts/stsb/spearman": 50, "sts/stsb/pearson": 25,
		"sts/sts12/spearman": 30, "sts/sts12/mean_spearman": 25, "sts/sts12/weighted_spearman": 12.5, "sts/sts12/x/spearman": 50, "sts/mean/spearman": 40,
		"isotropy/sts12/mean_cosine": .9, "isotropy/sts12/effective_rank": 2, "isotropy/sts12/alignment": 0,
	} {
		if v, ok := values[name]; !ok || !(math.Abs(v-want) <= 1e-9) {
			t.Errorf("%s is %g (%v), want %g", name, v, ok, want)
		}
	}
	if _, ok := values["pairs/mrpc/probe"]; ok {
		t.Error("a rule that was left out is logged")
	}
	if m := s.Metric(); m != (checkpoint.Metric{Name: "eval/pairs/mrpc/fixed", Value: 60}) {
		t.Errorf("%+v", m)
	}
	only := s
	only.Rules = []string{"probe"}
	if m := only.Metric(); m.Name != "eval/pairs/mrpc/majority" || m.Value != 66 {
		t.Errorf("%+v", m)
	}
	only.Tasks = s.Tasks[1:]
	if m := only.Metric(); m.Name != "eval/sts/stsb/spearman" || m.Value != 50 {
		t.Errorf("%+v", m)
	}
	text := s.Table()
	for _, want := range []string{
		"similarity, %         pairs  Spearman  Pearson\nstsb                     10     50.00    25.00\nstsb, TF-IDF             10     40.00    10.00\nsts12 x                   5     50.00    25.00\n",
		"mrpc val, TF-IDF      3         0  55.00      -",
		"sts12, all pairs         20     30.00     0.00\n", "accuracy, %       pairs  training  fixed  probe", "66.00 (not_equivalent)", "34.00 (equivalent)", "mrpc: there is no file\n", "1 without a label\n", "mean cosine",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if line := s.Line(); line != "mrpc fixed 60.00 (majority 66.00), stsb Spearman 50.00, sts12 Spearman 30.00" {
		t.Error(line)
	}
	if size := s.Size(); size != "3 tasks of sentence pairs, 33 pairs, by the mean of the tokens (3 numbers)" {
		t.Error(size)
	}
	if b, err := json.Marshal(s.JSON("", "x")); err != nil || !strings.Contains(string(b), `"thresholds"`) && !strings.Contains(string(b), `"sts/mean/spearman":40`) {
		t.Errorf("%s, %v", b, err)
	}
}

// TestSentencesPage: the page has the tables, the pairs in the plane and a hill for each class.
func TestSentencesPage(t *testing.T) {
	s := sentenceOutcome(t)
	p := check.Get(s.Page(7, true, 1))(t)
	var b bytes.Buffer
	check.OK(t, report.WriteSentences(&b, report.SentencesPage{Title: "x", Sentences: p}))
	for _, want := range []string{"Similarity, %", "Accuracy, %", "Isotropy", "mrpc, PCA", "mrpc, t-SNE", "2 pairs of mrpc: dots are first sentences", "not_equivalent", "singular values", "<title>a | b</title>"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q", want)
		}
	}
	p.Places.TSNE = p.Places.TSNE[1:]
	check.Error(t, report.WriteSentences(&b, report.SentencesPage{Sentences: p}), "need two places each")
	s.Picture.Second[0] = float32(math.NaN())
	check.Fails(s.Page(7, true, 1))(t, "not finite numbers")
	s.Picture.Spec = sentencepairs.Task{High: 5}
	s.Picture.Scores = []float64{0, 2, 5}
	list := cosinesOf(s.Picture)
	if len(list) != 3 || len(list[0].Values) != 1 || len(list[2].Values) != 1 || list[1].Name != "score 1.7 to 3.3" {
		t.Errorf("%+v", list)
	}
}

// TestNotesOf: what is left out or cut of a task is told.
func TestNotesOf(t *testing.T) {
	spec := check.Get(sentencepairs.TaskOf("mrpc"))(t)
	tok := check.Get(tokenizer.Learn(slices.Values([]string{"one two three"}), 100))(t)
	set := &sentencepairs.Set{Task: spec, Pairs: []sentencepairs.Pair{{A: "one two three", B: "two"}, {A: "!", B: "two"}}, Counts: sentencepairs.Counts{Counts: table.Counts{Rows: 3, Empty: 1}, Ignored: []string{"STS.gs.SMT.txt"}}}
	got := strings.Join(notesOf(set, sentencepairs.Measure{Tokenizer: tok, Clean: "albef", MaxWords: 2, Tokens: 9}), "\n")
	want := "mrpc: left out of 3 rows: 1 with an empty sentence\nmrpc: scores without sentences: STS.gs.SMT.txt\nmrpc: the end of 1 of 3 sentences is cut (data.max_words, data.tokens)\nmrpc: nothing is left of 1 sentence by data.clean"
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
